"""Side outputs: both ways to emit, several tags, types of their own (rule 6.3)."""

import pytest
from support import BY_SECOND_FIELD

from penstock.common import Types
from penstock.datastream import FlatMapFunction, KeyedProcessFunction, OutputTag, ProcessFunction

FREEZING = OutputTag("freezing-alarms", Types.STRING())
LARGE, SMALL = OutputTag("large"), OutputTag("small")


class FreezingMonitor(ProcessFunction):
    """Forwards every reading, with an alarm to the side for cold ones (example E29)."""

    def process_element(self, value, ctx):
        if value[1] < 32:
            ctx.output(FREEZING, f"Freezing Alarm for {value[0]}")
        yield value


class SplitNumbers(ProcessFunction):
    """PyFlink's way: ``yield tag, value``; a record may go to several outputs or to none."""

    def process_element(self, value, ctx):
        if value >= 1000:
            yield LARGE, value
        if value <= 1000:
            yield SMALL, value
        if value < 0:
            yield value


class KeyedSides(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1] + 10)
        ctx.output(SMALL, ("element", ctx.get_current_key()))
        yield LARGE, ("yielded", ctx.get_current_key())

    def on_timer(self, timestamp, ctx):
        ctx.output(SMALL, ("timer", ctx.get_current_key()))
        yield LARGE, ("timer", timestamp)


class FlatMapSides(FlatMapFunction):
    def flat_map(self, value):
        yield value
        yield SMALL, -value


@pytest.mark.on_spark((4, "STREAMING"), (1, "BATCH"))
def test_side_outputs_of_every_kind_of_operator(env, run):
    readings = [("sensor_1", 20.0), ("sensor_2", 40.0), ("sensor_3", 31.9)]
    monitored = env.from_collection(readings).process(FreezingMonitor())
    numbers = env.from_collection([5, 1000, 2000, -1])
    split = numbers.process(SplitNumbers())
    keyed = (
        env.from_collection([("a", 1), ("b", 2)])
        .assign_timestamps_and_watermarks(BY_SECOND_FIELD)
        .key_by(0)
        .process(KeyedSides())
    )
    flat = numbers.flat_map(FlatMapSides())
    plain = numbers.flat_map(lambda n: [n, (LARGE, n)] if n > 0 else [(LARGE, n)])
    results = run(
        monitored=monitored,
        alarms=monitored.get_side_output(OutputTag("freezing-alarms", Types.STRING())),  # tags match by their id
        main=split,
        large=split.get_side_output(LARGE),
        small=split.get_side_output(SMALL),
        small_again=split.get_side_output(SMALL).map(lambda n: -n),
        keyed_main=keyed,
        keyed_small=keyed.get_side_output(SMALL),
        keyed_large=keyed.get_side_output(LARGE),
        flat_main=flat,
        flat_side=flat.get_side_output(SMALL),
        plain_main=plain,
        plain_side=plain.get_side_output(LARGE),
    )
    results = {name: sorted(records) for name, records in results.items()}
    assert results["monitored"] == sorted(readings)
    assert results["alarms"] == ["Freezing Alarm for sensor_1", "Freezing Alarm for sensor_3"]
    assert (results["main"], results["large"], results["small"]) == ([-1], [1000, 2000], [-1, 5, 1000])
    assert results["small_again"] == [-1000, -5, 1]
    assert results["keyed_main"] == []
    assert results["keyed_small"] == [("element", "a"), ("element", "b"), ("timer", "a"), ("timer", "b")]
    assert results["keyed_large"] == [("timer", 11), ("timer", 12), ("yielded", "a"), ("yielded", "b")]
    assert results["flat_main"] == [-1, 5, 1000, 2000]
    assert results["flat_side"] == [-2000, -1000, -5, 1]
    assert results["plain_main"] == [5, 1000, 2000]
    assert results["plain_side"] == [-1, 5, 1000, 2000]


def test_a_side_output_nobody_reads_is_dropped(env, run):
    assert sorted(run(env.from_collection([5, 2000]).process(SplitNumbers()).union(env.from_collection([1])))) == [1]


def test_side_outputs_can_be_keyed_and_united(env, run):
    split = env.from_collection([1, 2000, 3, 4000]).process(SplitNumbers())
    both = split.get_side_output(LARGE).union(split.get_side_output(SMALL))
    summed = both.map(lambda n: ("all", n)).key_by(0).sum(1)
    assert max(run(summed)) == ("all", 6004)


def test_side_output_records_keep_timestamps_and_watermarks(env, run):
    class Stamp(ProcessFunction):
        def process_element(self, value, ctx):
            yield value, ctx.timestamp()

    class ToSide(ProcessFunction):
        def process_element(self, value, ctx):
            yield LARGE, value

    class AtEnd(KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(ctx.timestamp())

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), timestamp

    stamped = env.from_collection([("a", 7), ("b", 9)]).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    side = stamped.process(ToSide()).get_side_output(LARGE)
    results = run(stamps=side.process(Stamp()), timers=side.key_by(0).process(AtEnd()))
    assert sorted(results["stamps"]) == [(("a", 7), 7), (("b", 9), 9)]
    assert sorted(results["timers"]) == [("a", 7), ("b", 9)]
