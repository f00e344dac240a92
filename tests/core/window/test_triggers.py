import pytest

from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError
from penstock.core.state import ReducingStateDescriptor
from penstock.core.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    GlobalWindow,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    TimeWindow,
    TriggerResult,
)

CONTINUE, FIRE, FIRE_AND_PURGE = TriggerResult.CONTINUE, TriggerResult.FIRE, TriggerResult.FIRE_AND_PURGE
WINDOW = TimeWindow(0, 100)


class State:
    """Value or reducing state in one cell."""

    def __init__(self, reduce=None):
        self.reduce = reduce
        self.content = None

    def value(self):
        return self.content

    get = value

    def update(self, value):
        self.content = value

    def add(self, value):
        self.content = value if self.content is None else self.reduce(self.content, value)

    def clear(self):
        self.content = None


class Context:
    """One window's trigger context: timers as sets, states in a dict."""

    def __init__(self, watermark=-1, now=0):
        self.watermark = watermark
        self.now = now
        self.event, self.processing, self.states, self.merged = set(), set(), {}, []

    def get_current_watermark(self):
        return self.watermark

    def get_current_processing_time(self):
        return self.now

    def register_event_time_timer(self, time):
        self.event.add(time)

    def delete_event_time_timer(self, time):
        self.event.discard(time)

    def register_processing_time_timer(self, time):
        self.processing.add(time)

    def delete_processing_time_timer(self, time):
        self.processing.discard(time)

    def get_partitioned_state(self, descriptor):
        if descriptor.name not in self.states:
            reducing = isinstance(descriptor, ReducingStateDescriptor)
            self.states[descriptor.name] = State(descriptor.get_reduce_function().reduce if reducing else None)
        return self.states[descriptor.name]

    def merge_partitioned_state(self, descriptor):
        self.merged.append(descriptor.name)

    @property
    def empty(self):
        return not self.event and not self.processing and all(s.content is None for s in self.states.values())


def feed(trigger, *times, ctx=None, window=WINDOW):
    ctx = ctx or Context()
    return [trigger.on_element(f"e{time}", time, window, ctx) for time in times], ctx


def test_event_time_fires_at_the_last_millisecond_of_the_window():
    trigger = EventTimeTrigger.create()
    results, ctx = feed(trigger, 5)
    assert results == [CONTINUE]
    assert ctx.event == {99}
    assert trigger.on_event_time(98, WINDOW, ctx) is CONTINUE
    assert trigger.on_event_time(99, WINDOW, ctx) is FIRE
    assert trigger.on_processing_time(99, WINDOW, ctx) is CONTINUE


def test_event_time_fires_at_once_for_every_late_element():
    results, ctx = feed(EventTimeTrigger.create(), 5, 6, ctx=Context(watermark=99))
    assert results == [FIRE, FIRE]
    assert ctx.event == set()


def test_event_time_sets_its_timer_anew_when_windows_merge():
    trigger = EventTimeTrigger.create()
    for watermark, timers in ((98, {99}), (99, set())):
        ctx = Context(watermark=watermark)
        trigger.on_merge(WINDOW, ctx)
        assert ctx.event == timers


def test_processing_time_fires_when_the_clock_reaches_the_end():
    trigger = ProcessingTimeTrigger.create()
    results, ctx = feed(trigger, 5)
    assert results == [CONTINUE]
    assert ctx.processing == {99}
    assert trigger.on_processing_time(99, WINDOW, ctx) is FIRE
    assert trigger.on_event_time(99, WINDOW, ctx) is CONTINUE


def test_count_fires_every_n_elements_and_begins_again():
    results, ctx = feed(CountTrigger.of(3), *range(7))
    assert results == [CONTINUE, CONTINUE, FIRE, CONTINUE, CONTINUE, FIRE, CONTINUE]
    assert ctx.event == set()


def test_count_merges_its_state():
    ctx = Context()
    CountTrigger.of(3).on_merge(WINDOW, ctx)
    assert ctx.merged == ["count-trigger"]


def test_purging_adds_a_purge_to_every_fire():
    results, _ = feed(PurgingTrigger.of(CountTrigger.of(2)), 1, 2, 3)
    assert results == [CONTINUE, FIRE_AND_PURGE, CONTINUE]


def test_purging_leaves_other_results_alone():
    class PurgeOnly(NeverTrigger):
        def on_element(self, element, timestamp, window, ctx):
            return TriggerResult.PURGE

    results, _ = feed(PurgingTrigger.of(PurgeOnly()), 1)
    assert results == [TriggerResult.PURGE]


def test_purging_can_merge_if_the_nested_trigger_can():
    assert PurgingTrigger.of(CountTrigger.of(1)).can_merge()
    assert not PurgingTrigger.of(NeverTrigger()).can_merge()


def test_continuous_event_time_fires_at_every_full_interval_and_at_the_end():
    trigger = ContinuousEventTimeTrigger.of(30)
    results, ctx = feed(trigger, 35, 40)
    assert results == [CONTINUE, CONTINUE]
    assert ctx.event == {60, 99}
    assert trigger.on_event_time(60, WINDOW, ctx) is FIRE
    assert ctx.event == {60, 90, 99}
    assert trigger.on_event_time(90, WINDOW, ctx) is FIRE
    assert trigger.on_event_time(77, WINDOW, ctx) is CONTINUE
    assert trigger.on_event_time(99, WINDOW, ctx) is FIRE


def test_continuous_event_time_never_plans_beyond_the_end():
    _, ctx = feed(ContinuousEventTimeTrigger.of(1000), 35)
    assert ctx.event == {99}


def test_continuous_event_time_fires_at_once_for_late_elements():
    results, _ = feed(ContinuousEventTimeTrigger.of(30), 35, ctx=Context(watermark=200))
    assert results == [FIRE]


def test_continuous_processing_time_fires_at_every_full_interval_of_the_clock():
    trigger = ContinuousProcessingTimeTrigger.of(30)
    _, ctx = feed(trigger, 5, ctx=Context(now=35))
    assert ctx.processing == {60}
    assert trigger.on_processing_time(60, WINDOW, ctx) is FIRE
    assert trigger.on_processing_time(90, WINDOW, ctx) is FIRE
    assert 99 in ctx.processing
    assert trigger.on_processing_time(99, WINDOW, ctx) is FIRE


def test_continuous_processing_time_plans_nothing_after_the_end_of_an_event_time_window():
    trigger = ContinuousProcessingTimeTrigger.of(30)
    _, ctx = feed(trigger, 5, ctx=Context(now=1000))
    assert ctx.processing == {99}
    assert trigger.on_processing_time(99, WINDOW, ctx) is FIRE
    assert ctx.processing == {99}


@pytest.mark.parametrize("kind", [ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger])
def test_continuous_triggers_merge_to_the_earliest_time(kind):
    trigger = kind.of(30)
    ctx = Context()
    ctx.get_partitioned_state(trigger._next_fire).add(40)
    ctx.get_partitioned_state(trigger._next_fire).add(60)
    trigger.on_merge(WINDOW, ctx)
    assert ctx.merged
    assert ctx.event | ctx.processing == {40}


def test_delta_fires_when_the_difference_exceeds_the_threshold():
    trigger = DeltaTrigger.of(10, lambda last, current: current - last)
    ctx = Context()
    results = [trigger.on_element(value, 0, WINDOW, ctx) for value in (0, 10, 11, 21, 22)]
    assert results == [CONTINUE, CONTINUE, FIRE, CONTINUE, FIRE]


def test_delta_takes_javas_kind_of_delta_function():
    class Distance:
        def get_delta(self, last, current):
            return abs(current - last)

    assert DeltaTrigger.of(1, Distance()).delta_function(5, 2) == 3


def test_never_never_fires():
    trigger = NeverTrigger()
    results, ctx = feed(trigger, 1, 2)
    assert results == [CONTINUE, CONTINUE]
    assert trigger.on_event_time(1, WINDOW, ctx) is CONTINUE
    assert not trigger.can_merge()


def test_end_of_stream_fires_with_the_last_watermark():
    trigger = EndOfStreamTrigger()
    _, ctx = feed(trigger, 1, window=GlobalWindow.get())
    assert ctx.event == {2**63 - 1}
    assert trigger.on_event_time(2**63 - 1, GlobalWindow.get(), ctx) is FIRE_AND_PURGE


@pytest.mark.parametrize(
    "trigger",
    [
        EventTimeTrigger.create(),
        ProcessingTimeTrigger.create(),
        CountTrigger.of(5),
        PurgingTrigger.of(CountTrigger.of(5)),
        DeltaTrigger.of(1, lambda a, b: 0),
        EndOfStreamTrigger(),
        NeverTrigger(),
    ],
)
def test_clear_leaves_nothing_behind(trigger):
    _, ctx = feed(trigger, 1, 2)
    trigger.clear(WINDOW, ctx)
    assert ctx.empty


@pytest.mark.parametrize("kind", [ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger])
def test_clear_of_continuous_triggers_frees_state_and_the_next_timer(kind):
    trigger = kind.of(30)
    _, ctx = feed(trigger, 1)
    trigger.clear(WINDOW, ctx)
    assert ctx.event <= {99}  # the end: the operator's own cleanup timer
    assert not ctx.processing
    assert all(state.content is None for state in ctx.states.values())


def test_a_trigger_that_cannot_merge_says_so():
    with pytest.raises(UnsupportedFeatureError, match="DeltaTrigger"):
        DeltaTrigger.of(1, lambda a, b: 0).on_merge(WINDOW, Context())


@pytest.mark.parametrize(
    "define",
    [
        lambda: CountTrigger.of(0),
        lambda: CountTrigger.of(1.5),
        lambda: ContinuousEventTimeTrigger.of(0),
        lambda: PurgingTrigger.of("count"),
        lambda: DeltaTrigger.of(1, "delta"),
    ],
)
def test_wrong_definitions_are_refused(define):
    with pytest.raises(InvalidProgramError):
        define()
