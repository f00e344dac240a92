import pytest
from window_helpers import Contents, Sum, at, windows
from window_programs import EveryIntervalTrigger

from penstock.common import Time
from penstock.common.errors import InvalidProgramError
from penstock.core.functions import ProcessWindowFunction
from penstock.core.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.core.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    DeltaTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    ProcessingTimeoutTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

TEN = TumblingEventTimeWindows.of(10)


class CountWithWatermark(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield len(elements), context.current_watermark()


def counts(driver):
    return [count for count, _ in driver.results()]


@pytest.mark.parametrize("restart", [False, True])
def test_the_books_interval_trigger(restart):
    driver = windows(TumblingEventTimeWindows.of(30_000), CountWithWatermark(), trigger=EveryIntervalTrigger(1000))
    steps = [500, "e100", "e900", 1000, "e1500", 2500, 2999, 3000, "e9000", 28_500, 29_999, 30_000]
    for step in steps:
        if isinstance(step, str):
            driver.send(*at((0, int(step[1:]))))
        else:
            driver.advance(step)
        if restart:
            driver.restart()
    assert counts(driver) == [2, 3, 3, 4, 4, 4]
    assert driver.stored_keys == 0


def test_the_books_interval_trigger_when_the_watermark_jumps():
    driver = windows(TumblingEventTimeWindows.of(30_000), CountWithWatermark(), trigger=EveryIntervalTrigger(1000))
    driver.advance(500).send(*at((0, 100))).advance(45_000)
    assert driver.results() == [(1, 45_000), (1, 45_000)]


def test_a_trigger_replaces_the_default_one():
    driver = windows(TEN, trigger=CountTrigger.of(3)).send(*at((1, 1), (2, 2))).advance(100)
    assert driver.results() == []
    assert driver.stored_keys == 0


def test_fire_keeps_the_contents():
    driver = windows(TEN, trigger=CountTrigger.of(2)).send(*at((1, 1), (2, 2), (3, 3), (4, 4)))
    assert driver.results() == [("a", 0, 10, [1, 2]), ("a", 0, 10, [1, 2, 3, 4])]


def test_fire_and_purge_drops_the_contents():
    driver = windows(TEN, trigger=PurgingTrigger.of(CountTrigger.of(2))).send(*at((1, 1), (2, 2), (3, 3), (4, 4)))
    assert driver.results() == [("a", 0, 10, [1, 2]), ("a", 0, 10, [3, 4])]


class Scripted(Trigger):
    """Does what the element says; notes when it is asked to clear."""

    note = ValueStateDescriptor("note")

    def __init__(self):
        self.cleared = []

    def on_element(self, element, timestamp, window, ctx):
        ctx.get_partitioned_state(self.note).update("seen")
        return getattr(TriggerResult, element[1])

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def clear(self, window, ctx):
        note = ctx.get_partitioned_state(self.note)
        self.cleared.append((window.start, note.value()))
        note.clear()


def test_purge_drops_contents_only_and_trigger_state_stays_until_cleanup():
    trigger = Scripted()
    driver = windows(TEN, trigger=trigger).send(*at(("CONTINUE", 1), ("PURGE", 2)))
    assert driver.results() == []
    assert trigger.cleared == []
    driver.send(*at(("FIRE", 3))).advance(9)
    assert driver.results() == [("a", 0, 10, ["FIRE"]), ("a", 0, 10, ["FIRE"])]
    assert trigger.cleared == [(0, "seen")]
    assert driver.stored_keys == 0


def test_nothing_is_computed_for_a_window_without_contents():
    driver = windows(TEN, trigger=Scripted()).send(*at(("FIRE_AND_PURGE", 1))).advance(9)
    assert driver.results() == [("a", 0, 10, ["FIRE_AND_PURGE"])]


def test_the_cleanup_timer_goes_through_the_trigger_first():
    driver = windows(TEN, trigger=Scripted(), allowed_lateness_ms=5).send(*at(("CONTINUE", 1))).advance(13)
    assert driver.results() == []
    assert driver.advance(14).results() == [("a", 0, 10, ["CONTINUE"])]


class TimerPerWindow(Scripted):
    """One timer at the same moment in every window."""

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(5)
        ctx.register_event_time_timer(5)
        return TriggerResult.CONTINUE


def test_timers_are_per_window_and_moment():
    driver = windows(SlidingEventTimeWindows.of(10, 5), Contents(), trigger=TimerPerWindow())
    driver.send(*at((1, 6), (2, 7))).advance(5)
    assert driver.results() == [[1, 2], [1, 2]]


def test_deleted_timers_do_not_fire():
    class Fickle(TimerPerWindow):
        def on_element(self, element, timestamp, window, ctx):
            super().on_element(element, timestamp, window, ctx)
            ctx.delete_event_time_timer(5)
            ctx.delete_processing_time_timer(5)
            return TriggerResult.CONTINUE

    driver = windows(TEN, trigger=Fickle()).send(*at((1, 6))).advance(8)
    assert driver.results() == []


def test_continuous_event_time_triggers_give_early_results():
    driver = windows(TEN, trigger=ContinuousEventTimeTrigger.of(4)).send(*at((1, 1), (2, 5)))
    assert driver.advance(3).results() == []
    assert driver.advance(4).results() == [("a", 0, 10, [1, 2])]
    assert driver.restart().advance(100).results() == [("a", 0, 10, [1, 2]), ("a", 0, 10, [1, 2])]
    assert driver.stored_keys == 0


def test_a_continuous_processing_time_trigger_fires_no_more_when_the_clock_has_passed_an_event_time_window():
    driver = windows(TumblingEventTimeWindows.of(100), trigger=ContinuousProcessingTimeTrigger.of(40))
    driver.tick(10).send(*at((1, 1)))
    fired = ("a", 0, 100, [1])
    assert driver.tick(41).results() == [fired]
    assert driver.tick(81).restart().tick(100).results() == [fired, fired]
    assert driver.tick(500).results() == []
    assert driver.send(*at((2, 2))).tick(1000).results() == []  # the end of the window has fired
    assert driver.advance(99).results() == []
    assert driver.stored_keys == 0


def test_a_continuous_processing_time_trigger_fires_once_for_an_event_time_window_in_the_past():
    driver = windows(TEN, trigger=ContinuousProcessingTimeTrigger.of(100)).tick(1050).send(*at((1, 1)))
    assert driver.results() == [("a", 0, 10, [1])]
    assert driver.send(*at((2, 2))).tick(1250).results() == []
    assert driver.advance(9).results() == []
    assert driver.stored_keys == 0


def test_continuous_processing_time_triggers_on_processing_time_windows():
    driver = windows(TumblingProcessingTimeWindows.of(10), trigger=ContinuousProcessingTimeTrigger.of(4))
    driver.tick(1).send_bare(("a", 1)).tick(5).send_bare(("a", 2))
    assert driver.results() == [("a", 0, 10, [1])]
    assert driver.tick(100).results() == [("a", 0, 10, [1, 2]), ("a", 0, 10, [1, 2])]
    assert driver.stored_keys == 0


def test_delta_triggers_compare_with_the_element_that_fired_last():
    trigger = DeltaTrigger.of(10, lambda last, current: current[1] - last[1])
    driver = windows(GlobalWindows.create(), Contents(), trigger=PurgingTrigger.of(trigger))
    driver.send(*at((0, 0), (5, 0), (11, 0))).restart().send(*at((15, 0), (22, 0)))
    assert driver.results() == [[0, 5, 11], [15, 22]]


def timeouts(nested, **options):
    trigger = PurgingTrigger.of(ProcessingTimeoutTrigger.of(nested, 50, **options))
    return windows(GlobalWindows.create(), Contents(), trigger=trigger).tick(1000)


def test_a_timeout_fires_what_the_nested_trigger_still_waits_for():
    driver = timeouts(CountTrigger.of(3)).send(*at((1, 0))).restart().tick(1020).send(*at((2, 0))).tick(1049)
    assert driver.results() == []
    assert driver.tick(1051).results() == [[1, 2]]
    assert driver.send(*at((3, 0), (4, 0), (5, 0))).tick(2000).results() == [[3, 4, 5]]


def test_a_timeout_counts_from_the_last_element_if_each_one_resets_it():
    driver = timeouts(CountTrigger.of(3), reset_timer_on_new_record=True).send(*at((1, 0))).tick(1040).send(*at((2, 0)))
    assert driver.tick(1089).results() == []
    assert driver.tick(1091).results() == [[1, 2]]


def test_a_timeout_keeps_the_count_of_the_nested_trigger_if_it_does_not_clear_it():
    driver = timeouts(CountTrigger.of(3), should_clear_on_timeout=False).send(*at((1, 0), (2, 0))).tick(1051)
    assert driver.send(*at((3, 0))).results() == [[1, 2], [3]]


def test_a_timeout_purges_if_the_nested_trigger_does():
    trigger = ProcessingTimeoutTrigger.of(PurgingTrigger.of(EventTimeTrigger.create()), "50 ms")
    driver = windows(TEN, Contents(), trigger=trigger).send(*at((1, 1), (2, 2))).advance(9)
    assert driver.results() == [[1, 2]]
    assert driver.tick(100).results() == []


def test_processing_timers_for_the_past_fire_right_after_the_element():
    class Past(Scripted):
        def on_element(self, element, timestamp, window, ctx):
            ctx.register_processing_time_timer(ctx.get_current_processing_time() - 1)
            return TriggerResult.CONTINUE

        def on_processing_time(self, time, window, ctx):
            return TriggerResult.FIRE

    driver = windows(TEN, trigger=Past()).tick(500).send(*at((1, 1), (2, 2)))
    assert driver.results() == [("a", 0, 10, [1]), ("a", 0, 10, [1, 2])]


def test_event_timers_for_the_past_fire_with_the_next_watermark():
    driver = windows(TumblingEventTimeWindows.of(100), trigger=TimerPerWindow()).advance(50).send(*at((1, 60)))
    assert driver.results() == []
    assert driver.advance(51).results() == [("a", 0, 100, [1])]


def test_a_trigger_may_use_metrics():
    class Metered(Scripted):
        def on_element(self, element, timestamp, window, ctx):
            ctx.get_metric_group().counter("seen").inc()
            return TriggerResult.CONTINUE

    driver = windows(TEN, trigger=Metered()).send(*at((1, 1), (2, 2)))
    assert driver.metrics.counter("seen").get_count() == 2


def test_triggers_work_with_incremental_functions():
    driver = windows(TEN, aggregate_function=Sum(), trigger=CountTrigger.of(2)).send(
        *at((1, 1), (2, 2), (3, 3), (4, 4))
    )
    assert driver.take() == [(3, 9), (10, 9)]


# -- triggers of windows that merge ----------------------------------------------------------------------------------


class MergingTrigger(Trigger):
    """Fires when the values it has seen, kept in state, reach a sum; merges whatever state it is given."""

    def __init__(self, descriptor, limit=10):
        self.descriptor = descriptor
        self.limit = limit

    def on_element(self, element, timestamp, window, ctx):
        state = ctx.get_partitioned_state(self.descriptor)
        state.add(element[1])
        return TriggerResult.FIRE if sum(state.get()) >= self.limit else TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def can_merge(self):
        return True

    def on_merge(self, window, ctx):
        ctx.merge_partitioned_state(self.descriptor)

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.descriptor).clear()


def test_list_state_of_a_trigger_is_merged_with_its_windows():
    driver = windows(EventTimeSessionWindows.with_gap(10), trigger=MergingTrigger(ListStateDescriptor("values")))
    driver.send(*at((3, 0), (4, 16))).restart().send(*at((1, 30), (3, 8)))
    assert driver.results() == [("a", 0, 26, [3, 4, 3])]
    assert driver.advance(1000).stored_keys == 0


class TotalTrigger(MergingTrigger):
    """The same with state that holds one number."""

    def on_element(self, element, timestamp, window, ctx):
        state = ctx.get_partitioned_state(self.descriptor)
        state.add(element[1])
        return TriggerResult.FIRE if state.get() >= self.limit else TriggerResult.CONTINUE


class Total(Sum):
    def add(self, value, accumulator):
        return accumulator + value


def expiring(descriptor):
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(100)).build())
    return descriptor


MERGING_STATES = {
    "list": (MergingTrigger, lambda: ListStateDescriptor("values")),
    "reducing": (TotalTrigger, lambda: ReducingStateDescriptor("total", lambda left, right: left + right)),
    "aggregating": (TotalTrigger, lambda: AggregatingStateDescriptor("total", Total())),
}


@pytest.mark.parametrize("kind", MERGING_STATES)
def test_state_with_time_to_live_of_a_trigger_is_merged_with_its_windows(kind):
    trigger, descriptor = MERGING_STATES[kind]
    driver = windows(EventTimeSessionWindows.with_gap(10), trigger=trigger(expiring(descriptor())))
    driver.send(*at((3, 0), (4, 16))).tick(99).restart().send(*at((1, 30), (3, 8)))
    assert driver.results() == [("a", 0, 26, [3, 4, 3])]
    assert driver.advance(1000).stored_keys == 0


@pytest.mark.parametrize("kind", MERGING_STATES)
def test_expired_state_of_a_trigger_is_left_behind_when_its_windows_merge(kind):
    trigger, descriptor = MERGING_STATES[kind]
    driver = windows(EventTimeSessionWindows.with_gap(10), trigger=trigger(expiring(descriptor())))
    driver.send(*at((3, 0))).tick(50).send(*at((4, 16))).tick(100).send(*at((3, 8)))
    assert driver.results() == []  # the 3 is too old to count, though not to be in the window
    assert driver.tick(149).send(*at((3, 9))).results() == [("a", 0, 26, [3, 4, 3, 3])]


@pytest.mark.parametrize(
    "descriptor", [ValueStateDescriptor("v"), MapStateDescriptor("m"), expiring(ValueStateDescriptor("v"))]
)
def test_value_and_map_state_cannot_be_merged(descriptor):
    class Broken(MergingTrigger):
        def on_element(self, element, timestamp, window, ctx):
            return TriggerResult.CONTINUE

    driver = windows(EventTimeSessionWindows.with_gap(10), trigger=Broken(descriptor)).send(*at((1, 0)))
    with pytest.raises(InvalidProgramError, match="list, reducing or aggregating state"):
        driver.send(*at((2, 5)))


def test_timers_of_windows_that_were_merged_are_void():
    class Noting(MergingTrigger):
        seen = ()

        def on_element(self, element, timestamp, window, ctx):
            ctx.register_event_time_timer(window.start + 2)
            return TriggerResult.CONTINUE

        def on_event_time(self, time, window, ctx):
            self.seen = (*self.seen, (time, window.start, window.end))
            return TriggerResult.CONTINUE

    trigger = Noting(ListStateDescriptor("values"))
    windows(EventTimeSessionWindows.with_gap(10), trigger=trigger).send(*at((1, 5), (2, 0))).advance(1000)
    assert trigger.seen == ((2, 0, 15), (14, 0, 15))
