"""Savepoints as data: keyed state, timers and windows are read by uid and name."""

import pytest
from tests.state_processor.state_jobs import ELEMENTS, Elements, Job, by_key, expiring, totals

from penstock.common import Time
from penstock.common.errors import SavepointError
from penstock.core.window import CountTrigger, GlobalWindow, GlobalWindows, TimeEvictor, TimeWindow
from penstock.datastream import (
    AggregateFunction,
    KeyedProcessFunction,
)
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from penstock.state_processor import (
    KeyedStateReaderFunction,
    SavepointWriter,
)
from penstock.state_processor.views import windows_in


def test_keyed_state_is_read_by_uid_and_name(tmp_path):
    reader = Job(totals, *ELEMENTS).save(tmp_path)
    assert reader.operators() == ["totals"]
    assert reader.states("totals") == {
        "total": "value state",
        "seen": "list state with TTL",
        "by parity": "map state with TTL",
    }
    assert dict(reader.read_keyed_state("totals", "total")) == {"a": 6, "b": 6, "c": 6}
    assert dict(reader.read_keyed_state("totals", "seen")) == {key: [0, 1, 2, 3] for key in "abc"}
    assert dict(reader.read_keyed_state("totals", "by parity")) == {key: {0: 2, 1: 3} for key in "abc"}
    assert reader.source_positions("source") == {"0": len(ELEMENTS)}
    with pytest.raises(SavepointError, match=r"no keyed state 'x'; it has: 'total', 'seen', 'by parity'"):
        reader.read_keyed_state("totals", "x")
    with pytest.raises(SavepointError, match=r"no operator with uid 'y'; it has: .*'totals'"):
        reader.read_keyed_state("y", "x")


def test_state_of_keys_and_state_of_windows_are_not_read_as_each_other(tmp_path):
    def job(stream):
        windows = stream.key_by(by_key).window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
        counted = windows.trigger(CountTrigger.of(100)).process(Elements()).uid("windows")
        return counted.union(totals(stream))

    reader = Job(job, *ELEMENTS).save(tmp_path)
    assert min(reader.read_window_state("windows", "count-trigger")) == ("a", TimeWindow(0, 8), 4)
    for name in ("window-contents", "count-trigger"):
        with pytest.raises(SavepointError, match=rf"'{name}' of operator .* keys and windows: use read_window_state"):
            reader.read_keyed_state("windows", name)
    for uid, name in (("totals", "by parity"), ("windows", "merging-window-set")):
        with pytest.raises(SavepointError, match=rf"'{name}' of operator .* is state of keys: use read_keyed_state"):
            reader.read_window_state(uid, name)


def test_timers_are_read_with_their_domain(tmp_path):
    reader = Job(totals, *ELEMENTS).save(tmp_path)
    timers = sorted(reader.read_timers("totals"))
    assert [timer[1:] for timer in timers if timer[0] == "b"] == [
        *(("EVENT_TIME", 1_000 + number, None) for number in range(4)),
        ("PROCESSING_TIME", 9_000, None),
    ]
    assert len(timers) == 15


class WholeKey(KeyedStateReaderFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))
        self.seen = runtime_context.get_list_state(expiring(ListStateDescriptor("seen")))
        self.unknown = runtime_context.get_state(ValueStateDescriptor("unknown", default_value="-"))

    def read_key(self, key, ctx):
        timers = ctx.registered_event_time_timers(), ctx.registered_processing_time_timers()
        yield key, self.total.value(), list(self.seen.get()), self.unknown.value(), timers


def test_a_reader_function_sees_all_states_of_a_key(tmp_path):
    reader = Job(totals, *ELEMENTS).save(tmp_path)
    found = sorted(reader.read_keyed_state("totals", WholeKey()))
    timers = ([1_000, 1_001, 1_002, 1_003], [9_000])
    assert found == [(key, 6, [0, 1, 2, 3], "-", timers) for key in "abc"]


@pytest.mark.parametrize(
    ("assigner", "expected"),
    [
        (TumblingEventTimeWindows.of(Time.milliseconds(3)), {TimeWindow(0, 3): [0, 1, 2], TimeWindow(3, 6): [3]}),
        (EventTimeSessionWindows.with_gap(Time.milliseconds(5)), {TimeWindow(0, 8): [0, 1, 2, 3]}),
        (
            SlidingEventTimeWindows.of(Time.milliseconds(4), Time.milliseconds(2)),
            {TimeWindow(0, 2): [0, 1], TimeWindow(2, 4): [2, 3]},
        ),
    ],
    ids=["tumbling", "sessions", "sliding"],
)
def test_open_windows_are_read_with_their_contents(tmp_path, assigner, expected):
    reader = Job(
        lambda stream: stream.key_by(by_key).window(assigner).process(Elements()).uid("windows"), *ELEMENTS
    ).save(tmp_path)
    found = {(key, window): [v[1] for v in contents] for key, window, contents in reader.read_window_state("windows")}
    assert found == {(key, window): numbers for key in "abc" for window, numbers in expected.items()}


def test_windows_with_a_trigger_and_count_windows_are_read_too(tmp_path):
    def triggered(stream):
        windows = stream.key_by(by_key).window(GlobalWindows.create()).trigger(CountTrigger.of(9))
        return windows.reduce(lambda a, b: (a[0], a[1] + b[1])).uid("windows")

    reader = Job(triggered, *ELEMENTS).save(tmp_path)
    assert sorted(reader.read_window_state("windows")) == [(key, GlobalWindow(), (key, 6)) for key in "abc"]
    (count,) = [name for name, kind in reader.states("windows").items() if kind.startswith("windowed")]
    assert sorted(reader.read_window_state("windows", count)) == [(key, GlobalWindow(), 4) for key in "abc"]
    assert list(windows_in("count windows with reduced values", [2, "x"])) == [(GlobalWindow(), "x")]


def counted(stream):
    return stream.count_window(8).process(Elements())


def sliding_counts(stream):
    return stream.count_window(8, 3).process(Elements())


def sliding_counts_reduced(stream):
    return stream.count_window(8, 3).reduce(lambda a, b: (a[0], a[1] + b[1]))


def evicting(stream):
    return (
        stream.window(GlobalWindows.create()).trigger(CountTrigger.of(9)).evictor(TimeEvictor.of(3)).process(Elements())
    )


@pytest.mark.parametrize("windows", [counted, sliding_counts, sliding_counts_reduced, evicting])
def test_windows_that_count_or_evict_hold_elements_or_what_was_made_of_them(tmp_path, windows):
    reader = Job(lambda stream: windows(stream.key_by(by_key)).uid("windows"), *ELEMENTS).save(tmp_path)
    held = {key: [] for key in "abc"}
    for key, window, contents in reader.read_window_state("windows"):
        assert window == GlobalWindow()
        held[key] += [contents] if windows is sliding_counts_reduced else contents


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        raise AssertionError("this value was not requested")

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class Folds(KeyedProcessFunction):
    """Adds, and never asks."""

    def open(self, runtime_context):
        self.sum = runtime_context.get_reducing_state(ReducingStateDescriptor("sum", lambda a, b: a + b))
        self.mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Mean()))

    def process_element(self, value, ctx):
        self.sum.add(value[1])
        self.mean.add(value[1])
        yield value


def test_state_keeps_the_aggregate_and_computes_the_result_on_request(tmp_path):
    job = Job(lambda numbers: numbers.key_by(by_key).process(Folds()).uid("folds"), ("a", 1), ("a", 2), ("b", 5))
    reader = job.save(tmp_path)
    assert dict(reader.read_keyed_state("folds", "sum")) == {"a": 3, "b": 5}
    assert dict(reader.read_keyed_state("folds", "mean")) == {"a": (3, 2), "b": (5, 1)}


def test_a_source_that_is_not_there_is_named_with_those_that_are(tmp_path):
    reader = Job(totals, *ELEMENTS).save(tmp_path)
    for ask in (reader.source_positions, SavepointWriter.from_existing_savepoint(reader.location).remove_source):
        with pytest.raises(SavepointError, match=r"no source with uid 'x'; it has: 'Source: Script' \(uid 'source'\)"):
            ask("x")
