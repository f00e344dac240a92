"""BATCH and AUTOMATIC execution: the same program over bounded input, as one batch."""

import pytest
from support import BY_SECOND_FIELD, by_key, script

from penstock.common import Time, WatermarkStrategy
from penstock.connectors import DataGeneratorSource
from penstock.datastream import (
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
    RuntimeExecutionMode,
)
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
)

MIN_WATERMARK, MAX_WATERMARK = -(2**63), 2**63 - 1


def rolling(env):
    return env.from_collection([("a", 1), ("b", 5), ("a", 2)]).key_by(0).sum(1)


@pytest.mark.variants(executors=["warm"], modes=["STREAMING"])
def test_automatic_is_batch_if_all_sources_are_bounded(env, run):
    env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    assert sorted(run(rolling(env))) == [("a", 3), ("b", 5)]


@pytest.mark.variants(executors=["warm"], modes=["STREAMING"])
def test_automatic_is_streaming_if_a_source_never_ends(env, run):
    env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    endless = script(env, [("c", 1), ("c", 1)], bounded=False)
    results = run(bounded=rolling(env), endless=endless.key_by(0).sum(1))
    assert by_key(results["bounded"]) == {"a": [("a", 1), ("a", 3)], "b": [("b", 5)]}
    assert results["endless"] == [("c", 1), ("c", 2)]


class Clocks(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


@pytest.mark.variants(modes=["BATCH"])
def test_there_is_no_watermark_before_the_end(env, run):
    timed = env.from_collection([("a", 100), ("b", 50)]).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    assert sorted(run(timed.rebalance().process(Clocks()))) == [
        (("a", 100), 100, MIN_WATERMARK),
        (("b", 50), 50, MIN_WATERMARK),
    ]


class Sides(KeyedCoProcessFunction):
    """Tells the order in which both sides of a key came, and when its timer fired."""

    def open(self, runtime_context: RuntimeContext):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def note(self, what, ctx):
        self.seen.update([*(self.seen.value() or []), what])
        ctx.timer_service().register_event_time_timer(1)

    def process_element1(self, value, ctx):
        self.note(("first", value[1]), ctx)

    def process_element2(self, value, ctx):
        self.note(("second", value[1]), ctx)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), tuple(self.seen.value()), ctx.timer_service().current_watermark()


@pytest.mark.variants(modes=["BATCH"])
@pytest.mark.on_spark((4, "BATCH"))
def test_both_inputs_of_a_key_come_in_time_order_before_its_timers(env, run):
    first = env.from_collection([("a", 30), ("b", 10), ("a", 10)]).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    second = env.from_collection([("a", 20), ("c", 5)]).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    assert sorted(run(first.key_by(0).connect(second.key_by(0)).process(Sides()))) == [
        ("a", (("first", 10), ("second", 20), ("first", 30)), MAX_WATERMARK),
        ("b", (("first", 10),), MAX_WATERMARK),
        ("c", (("second", 5),), MAX_WATERMARK),
    ]


class Rearming(KeyedProcessFunction):
    """Timers that register the next one, in both domains."""

    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        timers.register_processing_time_timer(0)  # due at once, in a streaming job
        timers.register_event_time_timer(value[1])
        yield "record", value, timers.current_watermark()

    def on_timer(self, timestamp, ctx):
        timers = ctx.timer_service()
        timers.register_event_time_timer(timestamp + 20)
        timers.register_processing_time_timer(timestamp + 20)
        yield ctx.time_domain().name, (ctx.get_current_key(), timestamp), timers.current_watermark()


@pytest.mark.variants(modes=["BATCH"])
@pytest.mark.on_spark((4, "BATCH"))
def test_timers_fire_at_the_end_of_their_key_and_register_no_others(env, run):
    records = env.from_collection([("a", 5), ("b", 7), ("a", 3)]).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    assert by_key(run(records.key_by(0).process(Rearming())), key=lambda result: result[1][0]) == {
        "a": [
            ("record", ("a", 3), MIN_WATERMARK),
            ("record", ("a", 5), MIN_WATERMARK),
            ("EVENT_TIME", ("a", 3), MAX_WATERMARK),
            ("EVENT_TIME", ("a", 5), MAX_WATERMARK),
            ("PROCESSING_TIME", ("a", 0), MAX_WATERMARK),
        ],
        "b": [
            ("record", ("b", 7), MIN_WATERMARK),
            ("EVENT_TIME", ("b", 7), MAX_WATERMARK),
            ("PROCESSING_TIME", ("b", 0), MAX_WATERMARK),
        ],
    }


@pytest.mark.variants(executors=["one"], parallelism=[1], modes=["BATCH"])
def test_a_task_warns_once_of_timers_that_it_ignores(env, run, caplog):
    records = env.from_collection([("a", 5), ("b", 7), ("c", 3)]).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    run(records.key_by(0).process(Rearming()))
    ignored = [record.getMessage() for record in caplog.records if "ignores timers" in record.getMessage()]
    assert len(ignored) == 1
    assert "the event-time timer at " in ignored[0]


class CountElements(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, len(list(elements))


@pytest.mark.variants(modes=["BATCH"])
@pytest.mark.parametrize(
    ("assigner", "trigger", "expected"),
    [
        (
            TumblingEventTimeWindows.of(Time.milliseconds(10)),
            ContinuousEventTimeTrigger.of(Time.milliseconds(2)),
            [("a", 3)] * 2,  # the first interval and the end of the window
        ),
        (GlobalWindows.create(), ContinuousEventTimeTrigger.of(Time.milliseconds(2)), [("a", 3)] * 2),
        (GlobalWindows.create(), ContinuousProcessingTimeTrigger.of(Time.milliseconds(2)), [("a", 3)]),
    ],
)
def test_a_continuous_trigger_does_not_fire_again_after_the_end_of_a_key(env, run, assigner, trigger, expected):
    records = env.from_collection([("a", 1), ("a", 0), ("a", 3)]).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    windows = records.key_by(0).window(assigner).trigger(trigger)
    assert run(windows.process(CountElements())) == expected


@pytest.mark.variants(modes=["BATCH"])
def test_all_processing_time_windows_of_a_key_fire_at_its_end(env, run):
    windows = SlidingProcessingTimeWindows.of(Time.days(4000), Time.days(2000))
    counted = env.from_collection([("a", 1), ("a", 2)]).map(lambda value: (value[0], 1)).key_by(0).window(windows)
    assert run(counted.reduce(lambda left, right: (left[0], left[1] + right[1]))) == [("a", 2), ("a", 2)]


class CountKeys(KeyedProcessFunction):
    """A member that is shared by all keys of a task: keys come one after the other."""

    def open(self, runtime_context: RuntimeContext):
        self.current, self.changes = None, 0

    def process_element(self, value, ctx):
        if ctx.get_current_key() != self.current:
            self.current, self.changes = ctx.get_current_key(), self.changes + 1
        yield ctx.get_current_key(), self.changes


@pytest.mark.variants(modes=["BATCH"])
def test_keys_never_alternate(env, run):
    records = [(key, n) for n in range(5) for key in "abcdef"]
    seen = by_key(run(env.from_collection(records).key_by(0).process(CountKeys())))
    assert all(len({change for _, change in visits}) == 1 for visits in seen.values())


@pytest.mark.variants(modes=["BATCH"])
@pytest.mark.on_spark((4, "BATCH"))
def test_the_result_of_a_rolling_aggregate_has_the_largest_timestamp(env, run):
    timed = env.from_collection([("a", 7), ("b", 5), ("a", 2)]).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    assert sorted(run(timed.key_by(0).sum(1).process(Clocks()))) == [
        (("a", 9), MAX_WATERMARK, MIN_WATERMARK),
        (("b", 5), MAX_WATERMARK, MIN_WATERMARK),
    ]


@pytest.mark.variants(modes=["BATCH"])
@pytest.mark.parametrize("function", ["reduce", "process"])
@pytest.mark.parametrize(
    "assigner",
    [
        TumblingEventTimeWindows.of(Time.milliseconds(10)),
        SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(10)),
        EventTimeSessionWindows.with_gap(Time.milliseconds(10)),
    ],
)
def test_results_of_rolling_aggregates_meet_in_the_last_window(env, run, function, assigner):
    timed = env.from_collection([("a", 7), ("b", 5), ("a", 2)]).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    windows = timed.key_by(0).sum(1).key_by(lambda _: 0).window(assigner)
    if function == "reduce":
        results = run(windows.reduce(lambda left, right: (left[0], left[1] + right[1])).process(Clocks()))
        assert [(total, timestamp) for (_, total), timestamp, _ in results] == [(14, MAX_WATERMARK)]
    else:
        assert run(windows.process(CountElements())) == [(0, 2)]


@pytest.mark.variants(modes=["BATCH"])
def test_results_of_one_keyed_operator_are_the_input_of_the_next(env, run):
    totals = env.from_collection([("a", 1), ("b", 5), ("a", 2), ("c", 5)]).key_by(0).sum(1)
    by_total = totals.map(lambda pair: (pair[1], 1)).key_by(0).sum(1)
    assert sorted(run(by_total)) == [(3, 1), (5, 2)]


@pytest.mark.variants(executors=["warm"], modes=["BATCH"])
def test_a_paced_source_is_read_to_its_end(env, run):
    source = DataGeneratorSource(lambda index: index, 20, 2000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")

    assert sorted(run(numbers.key_by(lambda number: number % 2).reduce(lambda left, right: left + right))) == [90, 100]
