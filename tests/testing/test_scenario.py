"""given(pipeline): a part of a job, step by step."""

import gc
from datetime import datetime

import pytest

from penstock.common.errors import InvalidProgramError, PenstockError
from penstock.core.functions import MapFunction
from penstock.core.window.shorthand import sessions, tumbling
from penstock.testing import given


def per_minute(clicks):
    return clicks.key_by(0).window(tumbling(minutes=1)).count()


def test_a_window_gives_its_result_when_event_time_passes_its_end():
    scenario = given(per_minute).receive(("ann", "/"), ("bob", "/"), at="10 s").receive(("ann", "/cart"), at=50_000)
    scenario.at("59 s").expect_nothing()
    scenario.at("1 min").expect(("ann", 2), ("bob", 1)).at("10 min").expect_nothing()


def test_what_comes_after_its_window_is_late():
    given(per_minute).at("1 min").receive(("ann", "/"), at="59 s").receive(("ann", "/"), at="61 s").end().expect(
        ("ann", 1)
    )


def test_the_end_of_the_input_fires_everything():
    scenario = given(lambda clicks: clicks.key_by(0).window(sessions(gap="1 min")).count())
    scenario.receive(("ann", 1), at="2026-05-01T12:00:00").receive(("ann", 2), at=datetime(2026, 5, 1, 12, 0, 59))
    scenario.expect_nothing().end().expect(("ann", 2))


def test_processing_time_waits():
    given(lambda clicks: clicks.key_by(0).window(tumbling("1 min", processing_time=True)).count()).receive(
        ("ann", 1)
    ).wait("59 s").expect_nothing().wait("1 s").expect(("ann", 1))


def test_a_pipeline_with_its_own_event_time_is_moved_by_its_records():
    scenario = given(lambda numbers: per_minute(numbers.with_event_time(1)))
    scenario.receive(("ann", 5_000)).receive(("ann", 61_001)).expect(("ann", 1)).end().expect(("ann", 1))
    with pytest.raises(InvalidProgramError, match=r"assigns timestamps and watermarks, so at\(\) has no effect on it"):
        scenario.at("1 h")


def test_results_may_come_in_any_order():
    scenario = given(lambda numbers: numbers.map(lambda n: [n]), parallelism=2).receive(1, 2, 2)
    scenario.expect([2], [1], [2], in_any_order=True)
    with pytest.raises(AssertionError, match="in any order"):
        scenario.receive(1, 2).expect([1], [1], in_any_order=True)


def test_a_failed_expectation_shows_both_sides():
    scenario = given(per_minute).receive(("ann", 1), at=0).at("1 min")
    with pytest.raises(AssertionError) as caught:
        scenario.expect(("bob", 1))
    assert str(caught.value) == "at event time 60000 ms, expected\n  ('bob', 1)\nbut got\n  ('ann', 1)"
    with pytest.raises(AssertionError, match="after the end of the input, expected\n  5\nbut got nothing"):
        scenario.end().expect(5)


def test_a_failure_names_the_record():
    with pytest.raises(PenstockError, match="ZeroDivisionError"):
        given(lambda numbers: numbers.map(lambda n: 1 / n)).receive(0)


closed = []


class Closing(MapFunction):
    def map(self, value):
        return value

    def close(self):
        closed.append(True)


def test_functions_are_closed():
    given(lambda numbers: numbers.map(Closing())).receive(1).close()
    assert closed.pop()
    scenario = given(lambda numbers: numbers.map(Closing())).receive(1)
    del scenario
    gc.collect()
    assert closed.pop()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: given(lambda stream: None), r"given\(\) takes a function that returns a stream, but it returned None"),
        (lambda: given(5), r"given\(\) takes a function from a stream to a stream, got 5"),
        (lambda: given(per_minute).at("2 s").at("1 s"), "event time cannot go back from 2000 ms to 1000 ms; to send a"),
        (lambda: given(per_minute).at("noon"), "'noon' is not a point in time: write for example '90 s'"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, message):
    with pytest.raises(InvalidProgramError, match=message):
        wrong()
