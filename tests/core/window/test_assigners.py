from datetime import timedelta
from types import SimpleNamespace

import pytest

from penstock.common import Duration, Time
from penstock.common.errors import InvalidProgramError, MissingTimestampError
from penstock.core.window import (
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    CountWindow,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindows,
    NeverTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

MINUTE = 60_000
MIN_TIMESTAMP = -(2**63)


class Context:
    """An assigner's context with a clock set by hand and one value state per name."""

    def __init__(self, now=0):
        self.now = now
        self.values = {}

    def get_current_processing_time(self):
        return self.now

    def get_runtime_context(self):
        return self

    def get_state(self, descriptor):
        return SimpleNamespace(
            value=lambda: self.values.get(descriptor.name),
            update=lambda value: self.values.__setitem__(descriptor.name, value),
        )


def starts(assigner, timestamp, context=None):
    return [window.start for window in assigner.assign_windows("e", timestamp, context)]


def test_tumbling_windows_begin_at_multiples_of_their_size():
    windows = TumblingEventTimeWindows.of(Time.seconds(5))
    assert windows.assign_windows("e", 4999, None) == [TimeWindow(0, 5000)]
    assert windows.assign_windows("e", 5000, None) == [TimeWindow(5000, 10_000)]


def test_tumbling_windows_before_the_epoch():
    assert TumblingEventTimeWindows.of(Time.seconds(1)).assign_windows("e", -1, None) == [TimeWindow(-1000, 0)]


def test_an_offset_shifts_tumbling_windows():
    windows = TumblingEventTimeWindows.of(Time.hours(1), Time.minutes(15))
    assert windows.assign_windows("e", 15 * MINUTE - 1, None) == [TimeWindow(-45 * MINUTE, 15 * MINUTE)]
    assert windows.assign_windows("e", 15 * MINUTE, None) == [TimeWindow(15 * MINUTE, 75 * MINUTE)]


def test_a_negative_offset_is_allowed():
    windows = TumblingEventTimeWindows.of(Time.days(1), Time.hours(-8))
    assert windows.assign_windows("e", 0, None) == [TimeWindow(-8 * 60 * MINUTE, 16 * 60 * MINUTE)]


def test_sliding_windows_are_given_latest_first():
    windows = SlidingEventTimeWindows.of(Time.minutes(60), Time.minutes(15))
    assert starts(windows, 60 * MINUTE) == [60 * MINUTE, 45 * MINUTE, 30 * MINUTE, 15 * MINUTE]


def test_elements_in_the_gaps_of_sliding_windows_are_in_none():
    windows = SlidingEventTimeWindows.of(10, 15)
    assert starts(windows, 12) == []
    assert starts(windows, 25) == []
    assert windows.assign_windows("e", 15, None) == [TimeWindow(15, 25)]
    assert windows.assign_windows("e", 24, None) == [TimeWindow(15, 25)]


def test_sliding_windows_whose_slide_does_not_divide_their_size():
    assert starts(SlidingEventTimeWindows.of(10, 4), 9) == [8, 4, 0]
    assert starts(SlidingEventTimeWindows.of(10, 4), 10) == [8, 4]


def test_an_offset_shifts_sliding_windows():
    assert starts(SlidingEventTimeWindows.of(10, 5, 2), 6) == [2, -3]


def test_processing_time_windows_follow_the_clock_and_not_the_timestamp():
    assert starts(TumblingProcessingTimeWindows.of(10), 99, Context(now=12)) == [10]
    assert starts(SlidingProcessingTimeWindows.of(10, 5), 99, Context(now=12)) == [10, 5]
    assert ProcessingTimeSessionWindows.with_gap(5).assign_windows("e", 99, Context(now=12)) == [TimeWindow(12, 17)]


def test_sizes_may_be_given_in_any_unit():
    for size in (Time.seconds(2), Duration.of_seconds(2), timedelta(seconds=2), 2000):
        assert TumblingEventTimeWindows.of(size).size == 2000


@pytest.mark.parametrize("assigner", [TumblingEventTimeWindows.of(10), SlidingEventTimeWindows.of(10, 5)])
def test_event_time_windows_need_a_timestamp(assigner):
    with pytest.raises(MissingTimestampError, match="assign_timestamps_and_watermarks"):
        assigner.assign_windows("e", MIN_TIMESTAMP, None)


def test_sessions_do_not_ask_for_a_timestamp():
    assert EventTimeSessionWindows.with_gap(5).assign_windows("e", MIN_TIMESTAMP, None) == [
        TimeWindow(MIN_TIMESTAMP, MIN_TIMESTAMP + 5)
    ]


@pytest.mark.parametrize(
    "define",
    [
        lambda: TumblingEventTimeWindows.of(0),
        lambda: TumblingEventTimeWindows.of(-5),
        lambda: TumblingEventTimeWindows.of(10, 10),
        lambda: TumblingEventTimeWindows.of(10, -10),
        lambda: TumblingProcessingTimeWindows.of(10, 11),
        lambda: SlidingEventTimeWindows.of(0, 5),
        lambda: SlidingEventTimeWindows.of(10, 0),
        lambda: SlidingEventTimeWindows.of(10, 5, 5),
        lambda: SlidingProcessingTimeWindows.of(10, 5, -5),
        lambda: EventTimeSessionWindows.with_gap(0),
        lambda: ProcessingTimeSessionWindows.with_gap(-1),
        lambda: EventTimeSessionWindows.with_dynamic_gap(7),
        lambda: CountTumblingWindowAssigner.of(0),
        lambda: CountSlidingWindowAssigner.of(3, 0),
    ],
)
def test_wrong_definitions_are_refused(define):
    with pytest.raises(InvalidProgramError):
        define()


def test_sessions_give_each_element_a_window_of_its_own():
    assert EventTimeSessionWindows.with_gap(Time.seconds(10)).assign_windows("e", 7, None) == [TimeWindow(7, 10_007)]


class ByLength(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return len(element)


@pytest.mark.parametrize("extractor", [ByLength(), len])
def test_a_dynamic_gap_comes_from_the_element(extractor):
    sessions = EventTimeSessionWindows.with_dynamic_gap(extractor)
    assert sessions.assign_windows("abc", 7, None) == [TimeWindow(7, 10)]
    with pytest.raises(InvalidProgramError, match="longer than 0"):
        sessions.assign_windows("", 7, None)


def test_default_triggers():
    assert isinstance(TumblingEventTimeWindows.of(1).get_default_trigger(None), EventTimeTrigger)
    assert isinstance(SlidingProcessingTimeWindows.of(2, 1).get_default_trigger(None), ProcessingTimeTrigger)
    assert isinstance(EventTimeSessionWindows.with_gap(1).get_default_trigger(None), EventTimeTrigger)
    assert isinstance(ProcessingTimeSessionWindows.with_gap(1).get_default_trigger(None), ProcessingTimeTrigger)
    assert isinstance(GlobalWindows.create().get_default_trigger(None), NeverTrigger)
    count = CountTumblingWindowAssigner.of(3).get_default_trigger(None)
    assert isinstance(count, PurgingTrigger)
    assert isinstance(count.nested_trigger, CountTrigger)


def test_which_clock_an_assigner_follows():
    assert EventTimeSessionWindows.with_gap(1).is_event_time()
    assert not ProcessingTimeSessionWindows.with_dynamic_gap(len).is_event_time()
    assert not GlobalWindows.create().is_event_time()
    assert not CountTumblingWindowAssigner.of(3).is_event_time()


def test_the_global_window_takes_everything():
    assert GlobalWindows.create().assign_windows("e", MIN_TIMESTAMP, None) == [GlobalWindow.get()]


def test_count_windows_are_numbered_by_position():
    context = Context()
    tumbling = CountTumblingWindowAssigner.of(2)
    assert [tumbling.assign_windows("e", 0, context) for _ in range(5)] == [
        [CountWindow(0)],
        [CountWindow(0)],
        [CountWindow(1)],
        [CountWindow(1)],
        [CountWindow(2)],
    ]


def test_sliding_count_windows_overlap():
    context = Context()
    sliding = CountSlidingWindowAssigner.of(4, 3)
    assigned = [[window.id for window in sliding.assign_windows("e", 0, context)] for _ in range(8)]
    assert assigned == [[0], [0], [0], [1, 0], [1], [1], [2, 1], [2]]


@pytest.mark.parametrize("kind", [SlidingEventTimeWindows, SlidingProcessingTimeWindows])
def test_an_element_is_in_ten_million_sliding_windows_at_most(kind):
    kind.of(10_000_000, 1)
    with pytest.raises(InvalidProgramError, match=r"10,000,001 windows, and 10,000,000 is the limit: make the slide"):
        kind.of(10_000_001, 1)
