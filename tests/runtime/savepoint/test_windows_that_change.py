"""Windows of a program that has changed since the savepoint: which are refused, and what becomes of open ones."""

import pytest
from support import At, Wm
from tests.runtime.savepoint.versions import Program

from penstock.common import Time
from penstock.common.errors import InvalidProgramError
from penstock.datastream import ProcessWindowFunction
from penstock.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    TumblingEventTimeWindows,
)


class Elements(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield sorted(elements)


def add(one, other):
    return one + other


def tumbling(keyed, size=100, offset=0):
    return keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(size), Time.milliseconds(offset)))


def sessions(keyed, gap):
    return keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(gap)))


def started(windows, savepoint=None):
    program = Program(1)
    windows(program.stream().key_by(lambda value: 0)).uid("windows").name("windows").sink_to(program.sink)
    return program.start(savepoint)


def saved(windows, tmp_path):
    program = started(windows)
    program.feed(*(At(number, 10 * number) for number in (1, 2, 3)))
    return program.stop(tmp_path)


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        (lambda keyed: tumbling(keyed, 200).reduce(add), "of 100 ms .* has tumbling event-time windows of 200 ms"),
        (lambda keyed: tumbling(keyed, 100, 10).reduce(add), "offset 0 ms .* offset 10 ms"),
        (lambda keyed: tumbling(keyed).process(Elements()), "with reduced values .* with elements"),
        (lambda keyed: tumbling(keyed).trigger(CountTrigger.of(9)).reduce(add), "tumbling .* has windows with"),
        (lambda keyed: tumbling(keyed).evictor(CountEvictor.of(9)).process(Elements()), "and their timestamps now"),
        (lambda keyed: sessions(keyed, 100).reduce(add), "tumbling .* has event-time sessions"),
    ],
    ids=["size", "offset", "function", "trigger", "evictor", "kind"],
)
def test_windows_that_cannot_become_others_are_refused_with_what_to_do(tmp_path, windows, message):
    path = saved(lambda keyed: tumbling(keyed).reduce(add), tmp_path)
    with pytest.raises(
        InvalidProgramError, match=rf"operator 'windows' had .*{message}.* Keep the old windows, or .*a new uid\(\)"
    ):
        started(windows, path).feed(At(4, 40))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (lambda keyed: sessions(keyed, 50).reduce(add), lambda keyed: sessions(keyed, 5).reduce(add), [10]),
        (lambda keyed: sessions(keyed, 50).reduce(add), lambda keyed: sessions(keyed, 500).reduce(add), [10]),
        (lambda keyed: keyed.count_window(9).reduce(add), lambda keyed: keyed.count_window(4).reduce(add), [10]),
        (lambda keyed: keyed.count_window(9).reduce(add), lambda keyed: keyed.count_window(2).reduce(add), [10]),
        (
            lambda keyed: tumbling(keyed).trigger(CountTrigger.of(9)).reduce(add),
            lambda keyed: tumbling(keyed).trigger(CountTrigger.of(4)).reduce(add),
            [10],
        ),
        (
            lambda keyed: tumbling(keyed).reduce(add),
            lambda keyed: tumbling(keyed).allowed_lateness(50).trigger(EventTimeTrigger.create()).reduce(add),
            [10],
        ),
    ],
    ids=["smaller gap", "larger gap", "count", "fewer than there are", "trigger", "lateness"],
)
def test_what_may_change_leaves_open_windows_as_they_are(tmp_path, before, after, expected):
    assert started(after, saved(before, tmp_path)).feed(At(4, 40), Wm(1_000)) == expected
