import pytest

from penstock.common import Time
from penstock.common.errors import InvalidProgramError, MissingTimestampError
from penstock.core.window import CountEvictor, DeltaEvictor, TimeEvictor, TimestampedValue


def after(evictor, *elements, when="before"):
    values = [TimestampedValue(*e) if isinstance(e, tuple) else TimestampedValue(e) for e in elements]
    evict = evictor.evict_before if when == "before" else evictor.evict_after
    evict(values, len(values), None, None)
    return [value.get_value() for value in values]


def test_count_keeps_the_last_elements():
    assert after(CountEvictor.of(2), 1, 2, 3, 4) == [3, 4]
    assert after(CountEvictor.of(9), 1, 2) == [1, 2]
    assert after(CountEvictor.of(0), 1, 2) == []


def test_time_counts_back_from_the_newest_element():
    assert after(TimeEvictor.of(Time.milliseconds(10)), ("a", 5), ("b", 20), ("c", 11), ("d", 10)) == ["b", "c"]


def test_time_leaves_elements_without_timestamps_alone():
    assert after(TimeEvictor.of(10), "a", "b") == ["a", "b"]
    assert after(TimeEvictor.of(10)) == []


def test_delta_removes_what_is_far_from_the_last_element():
    distance = DeltaEvictor.of(3, lambda element, last: abs(element - last))
    assert after(distance, 10, 4, 5, 6, 7) == [5, 6, 7]
    assert after(distance) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda *late: CountEvictor.of(1, *late),
        lambda *late: TimeEvictor.of(0, *late),
        lambda *late: DeltaEvictor.of(1, lambda a, b: abs(a - b), *late),
    ],
)
def test_evictors_work_before_or_after_the_function(make):
    elements = [(1, 1), (2, 2)]
    assert after(make(), *elements) != [1, 2]
    assert after(make(), *elements, when="after") == [1, 2]
    assert after(make(True), *elements) == [1, 2]
    assert after(make(True), *elements, when="after") != [1, 2]


def test_a_timestamped_value_without_timestamp_says_so():
    with pytest.raises(MissingTimestampError):
        TimestampedValue("a").get_timestamp()


@pytest.mark.parametrize(
    "define", [lambda: CountEvictor.of(-1), lambda: TimeEvictor.of(-1), lambda: DeltaEvictor.of(1, None)]
)
def test_wrong_definitions_are_refused(define):
    with pytest.raises(InvalidProgramError):
        define()
