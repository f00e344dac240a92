import pytest
from window_helpers import Contents, Values, at, windows

from penstock.common.errors import InvalidProgramError, MissingTimestampError, UserFunctionError
from penstock.core.window import (
    EventTimeTrigger,
    MergingWindowAssigner,
    TimeWindow,
    TumblingEventTimeWindows,
    Window,
    WindowAssigner,
)


class ThirtySecondsWindows(WindowAssigner):
    """The book's example 6-15."""

    def assign_windows(self, element, timestamp, context):
        start = timestamp - timestamp % 30_000
        return [TimeWindow(start, start + 30_000)]

    def get_default_trigger(self, env):
        return EventTimeTrigger.create()

    def is_event_time(self):
        return True


def test_a_custom_assigner_is_as_good_as_a_built_in_one():
    driver = windows(ThirtySecondsWindows()).send(*at((1, -1), (2, 0), (3, 29_999))).restart().advance(29_999)
    assert driver.take() == [(("a", -30_000, 0, [1]), -1), (("a", 0, 30_000, [2, 3]), 29_999)]


class Nowhere(ThirtySecondsWindows):
    def assign_windows(self, element, timestamp, context):
        return []


def test_an_element_in_no_window_is_late_only_behind_the_watermark():
    driver = windows(Nowhere()).advance(10).send(*at((1, 11)))
    assert driver.dropped == 0
    assert driver.send(*at((1, 10))).dropped == 1


class ByName(Window):
    """Equal if name and end are; kept in state, so it must survive pickling."""

    def __init__(self, name, end):
        self.name = name
        self.end = end

    def max_timestamp(self):
        return self.end - 1


class NamedWindows(ThirtySecondsWindows):
    def assign_windows(self, element, timestamp, context):
        return [ByName("odd" if element[1] % 2 else "even", 100)]


def test_windows_of_any_class_are_told_apart_by_equality():
    driver = windows(NamedWindows(), Contents()).send(*at((1, 1), (2, 2))).restart().send(*at((3, 3))).advance(99)
    assert sorted(driver.results()) == [[1, 3], [2]]


class CountedSessions(MergingWindowAssigner):
    """Merges all windows of a key that begin in the same ten milliseconds."""

    def assign_windows(self, element, timestamp, context):
        return [TimeWindow(timestamp, timestamp + 1)]

    def get_default_trigger(self, env):
        return EventTimeTrigger.create()

    def is_event_time(self):
        return True

    def merge_windows(self, windows, callback):
        groups = {}
        for window in windows:
            groups.setdefault(window.start // 10, []).append(window)
        for group in groups.values():
            if len(group) > 1:
                callback.merge(group, TimeWindow(min(w.start for w in group), max(w.end for w in group)))


def test_a_custom_merging_assigner():
    driver = windows(CountedSessions(), Values()).send(*at((1, 1), (2, 17), (3, 8), (4, 12))).advance(100)
    assert sorted(driver.results()) == [("a", 1, 9, [1, 3]), ("a", 12, 18, [2, 4])]
    assert driver.stored_keys == 0


class Shrinking(CountedSessions):
    def merge_windows(self, windows, callback):
        windows = list(windows)
        if len(windows) > 1:
            callback.merge(windows, TimeWindow(0, 2))


def test_an_assigner_must_not_merge_into_the_past():
    driver = windows(Shrinking()).advance(50).send(*at((1, 100)))
    with pytest.raises(InvalidProgramError, match="must not be earlier"):
        driver.send(*at((2, 101)))


def test_assigners_see_the_clock_and_the_state_of_the_key():
    seen = []

    class Curious(ThirtySecondsWindows):
        def assign_windows(self, element, timestamp, context):
            seen.append((context.get_current_processing_time(), context.get_runtime_context().get_task_name()))
            return []

    windows(Curious()).tick(77).send(*at((1, 1)))
    assert seen == [(77, "windows")]


@pytest.mark.parametrize("send", [lambda d: d.send_bare(("a", 1)), lambda d: d.send((("a", 0), 1), (("a", 1), None))])
def test_records_without_timestamps_are_refused_by_event_time_windows(send):
    driver = windows(TumblingEventTimeWindows.of(10))
    with pytest.raises(MissingTimestampError, match=r"assign_timestamps_and_watermarks.*\('a', 1\)"):
        send(driver)


def test_an_error_in_an_assigner_names_the_record():
    class Broken(ThirtySecondsWindows):
        def assign_windows(self, element, timestamp, context):
            raise RuntimeError("no window for you")

    with pytest.raises(UserFunctionError, match=r"(?s)\('a', 1\).*no window for you"):
        windows(Broken()).send(*at((1, 1)))
