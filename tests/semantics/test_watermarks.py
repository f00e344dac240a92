"""Timestamps and watermarks (rules 3.6, 6.2)."""

from typing import ClassVar

import pytest
from support import BY_SECOND_FIELD, IDLE, At, Script, Wm, by_key, script

from penstock.common import Duration, Watermark, WatermarkStrategy
from penstock.common.watermark_strategy import WatermarkGenerator
from penstock.datastream import (
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    SinkFunction,
    SourceFunction,
)

MIN_WATERMARK, MAX_WATERMARK = -(2**63), 2**63 - 1


class Fired(KeyedProcessFunction):
    """Sets a timer at each record's own timestamp; so its firings show how far event time has come."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp())

    def on_timer(self, timestamp, ctx):
        yield timestamp, ctx.timer_service().current_watermark()


class Clock(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


class KeyedClock(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


class Punctuated(WatermarkGenerator):
    """A watermark one minute behind, only from sensor_1 (example E26)."""

    def on_event(self, event, event_timestamp, output):
        if event[0] == "sensor_1":
            output.emit_watermark(Watermark(event_timestamp - 60))

    def on_periodic_emit(self, output):
        pass


class Periodic(WatermarkGenerator):
    """The largest timestamp minus ten, asked for at the end of a batch at the latest."""

    def __init__(self):
        self.largest = None

    def on_event(self, event, event_timestamp, output):
        self.largest = event_timestamp if self.largest is None else max(self.largest, event_timestamp)

    def on_periodic_emit(self, output):
        if self.largest is not None:
            output.emit_watermark(Watermark(self.largest - 10))


class Backwards(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(Watermark(event[1]))

    def on_periodic_emit(self, output):
        pass


def strategy(base):
    return base.with_timestamp_assigner(lambda value: value[1])


def timed(env, records, base):
    return env.from_collection(records).assign_timestamps_and_watermarks(strategy(base))


@pytest.mark.variants(modes=["STREAMING"])
@pytest.mark.on_spark((4, "STREAMING"))
def test_every_strategy_ends_with_the_last_watermark(env, run):
    records = [("sensor_1", 100), ("sensor_2", 300), ("sensor_1", 200)]
    strategies = {
        "monotonous": WatermarkStrategy.for_monotonous_timestamps(),
        "bounded": WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(150)),
        "punctuated": WatermarkStrategy.for_generator(lambda ctx: Punctuated()),
        "periodic": WatermarkStrategy.for_generator(lambda ctx: Periodic()),
        "none": WatermarkStrategy.no_watermarks(),
    }
    streams = {
        name: timed(env, records, base).key_by(lambda r: 0).process(Fired()) for name, base in strategies.items()
    }
    stamped = {f"{name}_stamps": timed(env, records, base).process(Clock()) for name, base in strategies.items()}
    results = run(**streams, **stamped)
    for name in strategies:
        assert sorted(timestamp for timestamp, _ in results[name]) == [100, 200, 300], name
        assert sorted(record[:2] for record in results[f"{name}_stamps"]) == sorted((r, r[1]) for r in records), name
    # Nothing but the end of the input could fire these.
    assert {watermark for _, watermark in results["none"]} == {MAX_WATERMARK}
    assert (300, MAX_WATERMARK) in results["bounded"]


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        # The watermark is one behind: a record of the same timestamp may follow.
        (WatermarkStrategy.for_monotonous_timestamps(), [MIN_WATERMARK, 99, 299]),
        (WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(150)), [MIN_WATERMARK, -51, 149]),
        (WatermarkStrategy.for_generator(lambda ctx: Periodic()), [MIN_WATERMARK, 90, 290]),
        (WatermarkStrategy.for_generator(lambda ctx: Punctuated()), [MIN_WATERMARK, 40, 40]),
        (WatermarkStrategy.no_watermarks(), [MIN_WATERMARK] * 3),
    ],
    ids=["monotonous", "bounded", "periodic", "punctuated", "none"],
)
@pytest.mark.variants(executors=["one"], parallelism=[1], modes=["STREAMING"])
def test_the_watermark_each_record_meets(env, run, base, expected):
    records = [("sensor_1", 100), ("sensor_2", 300), ("sensor_1", 200)]
    seen = run(timed(env, records, base).key_by(lambda r: 0).process(KeyedClock()))
    assert [watermark for _, _, watermark in seen] == expected


@pytest.mark.variants(modes=["STREAMING"])
def test_a_punctuated_watermark_comes_right_behind_its_record(env, run):
    records = [("sensor_1", 100), ("sensor_2", 30), ("sensor_2", 300), ("sensor_1", 150), ("sensor_2", 80)]
    generator = WatermarkStrategy.for_generator(lambda ctx: Punctuated())
    stream = timed(env, records, generator).set_parallelism(1)  # like its source: several assigners are several clocks
    seen = run(stream.key_by(lambda r: 0).process(KeyedClock()))
    assert [watermark for _, _, watermark in seen] == [MIN_WATERMARK, 40, 40, 40, 90]


@pytest.mark.variants(modes=["STREAMING"])
def test_watermarks_never_go_back(env, run):
    generator = WatermarkStrategy.for_generator(lambda ctx: Backwards())
    stream = timed(env, [("a", n) for n in (5, 3, 8, 8, 1, 9)], generator).set_parallelism(1)
    seen = run(stream.key_by(lambda r: 0).process(KeyedClock()))
    assert [watermark for _, _, watermark in seen] == [MIN_WATERMARK, 5, 5, 8, 8, 8]


def test_the_clock_of_a_task_is_the_minimum_over_its_inputs(hand):
    source = script(hand.env, [At("x", 5), Wm(20)], [At("y", 7)], bounded=False)
    hand.watch(source.key_by(lambda v: 0).process(Fired()))
    elements = source._source.source
    assert hand.step() == []  # the second split has said nothing yet
    elements.add(Wm(5), split=1)
    assert hand.step() == [(5, 5)]
    elements.add(Wm(50), split=0)
    assert hand.step() == []
    elements.add(Wm(6), Wm(3), split=1)
    assert hand.step() == []
    elements.add(Wm(60), split=1)
    assert hand.step() == [(7, 50)]


def test_a_union_and_a_connection_wait_for_the_slower_stream(hand):
    first = script(hand.env, [At(("a", 10), 10), Wm(30)], bounded=False)
    second = script(hand.env, [At(("b", 10), 10), Wm(5)], bounded=False)
    hand.watch(first.union(second).key_by(0).process(Fired()))
    assert hand.step() == []
    second._source.source.add(Wm(12))
    assert hand.step() == [(10, 12), (10, 12)]


def test_the_clock_waits_for_a_split_that_is_discovered_later(hand):
    source = Script([At("x", 5), Wm(20)], bounded=False)
    stream = hand.env.from_source(source, WatermarkStrategy.no_watermarks(), "growing")
    hand.watch(stream.key_by(lambda v: 0).process(Fired()))
    assert hand.step() == [(5, 20)]
    source.splits.append([At("y", 30)])
    source.add(At("x", 40), Wm(50))
    assert hand.step() == []
    source.add(Wm(45), split=1)
    assert hand.step() == [(30, 45), (40, 45)]


@pytest.mark.variants(modes=["STREAMING"])
@pytest.mark.on_spark
def test_an_assigner_sees_the_records_of_one_subtask_in_their_order(env, run):
    class InOrder(WatermarkGenerator):
        last = 0

        def on_event(self, event, event_timestamp, output):
            assert event_timestamp == self.last + 1
            self.last = event_timestamp

        def on_periodic_emit(self, output):
            pass

    base = WatermarkStrategy.for_generator(lambda ctx: InOrder())
    stamped = timed(env, [("a", n) for n in range(1, 101)], base)
    assert len(run(stamped)) == 100


class TestReassignment:
    """An assigner overwrites timestamps and watermarks that are there, except the last watermark."""

    @pytest.mark.variants(modes=["STREAMING"])
    def test_the_second_assigner_wins(self, env, run):
        first = timed(env, [("a", 1, 100), ("b", 2, 200)], WatermarkStrategy.for_monotonous_timestamps())
        assert_again = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value: value[2])
        again = first.map(lambda value: value).assign_timestamps_and_watermarks(assert_again)
        seen = run(clock=again.process(Clock()), fired=again.key_by(lambda v: 0).process(Fired()))
        assert sorted(seen["clock"]) == [(("a", 1, 100), 100, MIN_WATERMARK), (("b", 2, 200), 200, MIN_WATERMARK)]
        assert seen["fired"] == [(100, MAX_WATERMARK), (200, MAX_WATERMARK)]

    def test_an_assigner_sees_the_timestamp_before(self, env, run):
        first = timed(env, [("a", 5), ("b", 6)], WatermarkStrategy.for_monotonous_timestamps())
        shifted = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            lambda value, before: before + 100
        )
        assert sorted(r[:2] for r in run(first.assign_timestamps_and_watermarks(shifted).process(Clock()))) == [
            (("a", 5), 105),
            (("b", 6), 106),
        ]


def test_timestamps_survive_map_filter_key_by_and_union(env, run):
    stream = timed(env, [("a", 5), ("b", 6), ("c", 7)], WatermarkStrategy.for_monotonous_timestamps())
    mapped = (
        stream.map(lambda v: (v[0].upper(), v[1])).filter(lambda v: v[0] != "B").rebalance().flat_map(lambda v: [v, v])
    )
    keyed = mapped.union(stream).key_by(0).process(KeyedClock())
    assert sorted(record[:2] for record in run(keyed)) == [
        (("A", 5), 5),
        (("A", 5), 5),
        (("C", 7), 7),
        (("C", 7), 7),
        (("a", 5), 5),
        (("b", 6), 6),
        (("c", 7), 7),
    ]


def test_a_stream_without_timestamps_has_none(env, run):
    assert run(env.from_collection(["a"]).process(Clock())) == [("a", None, MIN_WATERMARK)]


@pytest.mark.parametrize(
    "strategy",
    [
        WatermarkStrategy.for_monotonous_timestamps(),
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)),
    ],
)
def test_a_strategy_without_assigner_passes_records_without_timestamps_on(env, run, strategy):
    stamped = env.from_collection(["a", "b"]).assign_timestamps_and_watermarks(strategy)
    assert sorted(run(stamped.process(Clock()))) == [("a", None, MIN_WATERMARK), ("b", None, MIN_WATERMARK)]


def test_a_strategy_without_assigner_takes_the_timestamps_that_are_there(hand):
    stamped = hand.env.from_source(
        Script([At("x", 12), "no timestamp"], bounded=False), WatermarkStrategy.for_monotonous_timestamps(), "script"
    )
    hand.watch(stamped.key_by(lambda value: 0).process(KeyedClock()))
    assert hand.step() == [("x", 12, MIN_WATERMARK), ("no timestamp", None, MIN_WATERMARK)]


@pytest.mark.variants(executors=["one"], modes=["STREAMING"])
def test_a_process_function_without_keys_sees_the_watermark(env, run):
    """Readings behind the watermark to the side (example E43)."""
    late = OutputTag("late")

    class LateReadings(ProcessFunction):
        def process_element(self, value, ctx):
            if ctx.timestamp() <= ctx.timer_service().current_watermark():
                yield late, value
            else:
                yield value

    records = [("a", 10), ("a", 20), ("a", 5), ("a", 30), ("a", 19)]
    stamped = timed(env, records, WatermarkStrategy.for_monotonous_timestamps()).set_parallelism(1)
    stream = stamped.process(LateReadings()).set_parallelism(1)
    results = run(main=stream, late=stream.get_side_output(late))
    assert sorted(results["main"]) == [("a", 10), ("a", 20), ("a", 30)]
    assert sorted(results["late"]) == [("a", 5), ("a", 19)]


class Numbers(SourceFunction):
    """Makes its own timestamps and watermarks."""

    def run(self, ctx):
        ctx.collect_with_timestamp("x", 5)
        ctx.emit_watermark(Watermark(10))
        ctx.collect_with_timestamp("y", 12)
        ctx.collect("no timestamp")

    def cancel(self):
        pass


@pytest.mark.variants(executors=["warm"], modes=["STREAMING"])
@pytest.mark.on_spark((1, "STREAMING"))
def test_a_source_function_emits_timestamps_and_watermarks(env, run):
    class FiredIfStamped(Fired):
        def process_element(self, value, ctx):
            if ctx.timestamp() is not None:
                ctx.timer_service().register_event_time_timer(ctx.timestamp())

    source = env.add_source(Numbers())
    results = run(
        clock=source.map(lambda v: v).process(Clock()), fired=source.key_by(lambda v: 0).process(FiredIfStamped())
    )
    assert sorted(record[:2] for record in results["clock"]) == [("no timestamp", None), ("x", 5), ("y", 12)]
    assert results["fired"] == [(5, 10), (12, MAX_WATERMARK)]


class Marked(SourceFunction):
    """A watermark behind every third record, right up to it."""

    def run(self, ctx):
        for number in range(30):
            ctx.collect_with_timestamp(number, number)
            if number % 3 == 2:
                ctx.emit_watermark(Watermark(number))

    def cancel(self):
        pass


@pytest.mark.variants(modes=["STREAMING"], parallelism=[1, 4])
@pytest.mark.on_spark((4, "STREAMING"))
def test_tasks_that_read_their_parts_of_one_receiver_make_nothing_late(env, run):
    class Lateness(KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield value, ctx.timestamp() <= ctx.timer_service().current_watermark()

    records = env.add_source(Marked()).map(lambda number: number)
    results = run(late=records.key_by(lambda _: 0).process(Lateness()))
    assert sorted(results["late"]) == [(number, False) for number in range(30)]


def test_bounded_out_of_orderness_does_not_wrap_around_before_the_first_record(hand):
    source = Script([], bounded=False)
    bounded = strategy(WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(1)))
    hand.watch(hand.env.from_source(source, bounded, "script").key_by(lambda v: 0).process(KeyedClock()))
    assert hand.step() == []
    assert hand.advance(1000) == []
    source.add(("a", 0))
    assert hand.advance(1000) == [(("a", 0), 0, MIN_WATERMARK)]


def test_the_assigner_of_book_example_works(env, run):
    stream = env.from_collection([("a", 1)]).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    assert run(stream.process(Clock()))[0][:2] == (("a", 1), 1)


@pytest.mark.variants(modes=["STREAMING"], parallelism=[1])
def test_the_clock_behind_a_source_function_survives_batches_without_watermarks(env, run):
    seen = run(env.add_source(Numbers()).process(Clock()))
    assert seen == [("x", 5, MIN_WATERMARK), ("y", 12, 10), ("no timestamp", None, 10)]


class ClockOfSink(SinkFunction):
    seen: ClassVar[list] = []

    def invoke(self, value, context):
        self.seen.append((value, context.current_watermark()))


@pytest.mark.variants(modes=["STREAMING"], parallelism=[1])
def test_the_clock_of_a_sink_function_survives_batches_without_watermarks(env):
    ClockOfSink.seen.clear()
    env.add_source(Numbers()).add_sink(ClockOfSink())
    env.execute()
    assert ClockOfSink.seen == [("x", MIN_WATERMARK), ("y", 10), ("no timestamp", 10)]


def behind_splits(hand, source, base):
    stream = hand.env.from_source(source, strategy(base), "script")
    hand.watch(stream.key_by(lambda record: record[0]).process(KeyedClock()))


OWN = WatermarkStrategy.for_generator(lambda ctx: Periodic())


def clocks(results):
    return {watermark for _, _, watermark in results}


def test_every_split_has_a_generator_of_its_own(hand):
    source = Script([("a", 1000)], [("b", 100)], bounded=False)
    behind_splits(hand, source, OWN)
    hand.step()
    source.add(("a", 1001))
    assert clocks(hand.step()) == {90}  # the slower split's largest timestamp, minus ten
    source.add(("b", 2000), split=1)
    hand.step()
    source.add(("a", 1002))
    assert clocks(hand.step()) == {991}


def test_a_split_without_records_holds_a_users_generator_back_until_it_is_idle(hand):
    source = Script([("a", 1000)], [], bounded=False)
    behind_splits(hand, source, OWN.with_idleness(Duration.of_millis(500)))
    hand.step()
    source.add(("a", 1001))
    assert clocks(hand.step()) == {MIN_WATERMARK}
    source.add(("a", 1002))
    hand.advance(600)
    source.add(("a", 1003))
    assert clocks(hand.advance(1)) == {992}
    source.add(("b", 100), split=1)  # back, and late: event time does not go back
    assert clocks(hand.advance(1)) == {993}


@pytest.mark.variants(executors=["one"], modes=["STREAMING"])
def test_a_finished_split_no_longer_holds_a_users_generator_back(env, run):
    source = Script([("a", 10)], [("b", 1000), ("b", 1001), ("b", 1002)])
    stream = env.from_source(source, strategy(OWN), "script").key_by(lambda record: record[0]).process(KeyedClock())
    assert by_key(run(stream), key=lambda record: record[0][0])["b"] == [
        (("b", 1000), 1000, MIN_WATERMARK),
        (("b", 1001), 1001, 990),
        (("b", 1002), 1002, 991),
    ]


@pytest.mark.variants(executors=["warm"], modes=["BATCH"])
def test_a_users_generator_makes_no_watermarks_in_a_batch_job(env, run):
    base = WatermarkStrategy.for_generator(lambda ctx: Backwards())
    at_source = env.from_source(Script([("a", 5), ("a", 7)]), strategy(base), "script")
    results = run(at_source=at_source.process(Clock()), later=timed(env, [("a", 5), ("a", 7)], base).process(Clock()))
    assert [clocks(results[name]) for name in ("at_source", "later")] == [{MIN_WATERMARK}] * 2


def watched_script(hand, source):
    stream = hand.env.from_source(source, WatermarkStrategy.no_watermarks(), "script")
    hand.watch(stream.key_by(lambda value: value).process(KeyedClock()))


def test_a_finished_split_beside_an_idle_one_does_not_end_event_time(hand):
    source = Script([At("a", 5), Wm(10)], [At("b", 1), Wm(3), IDLE], bounded=False)
    source.ended.add(0)
    watched_script(hand, source)
    hand.step()
    source.add(At("c", 20), split=1)
    assert hand.step() == [("c", 20, 10)]
    source.add(Wm(15), At("d", 21), split=1)
    assert hand.step() == [("d", 21, 15)]


def test_splits_that_come_when_all_others_are_finished_are_not_late(hand):
    source = Script([At("a", 5), Wm(10)], bounded=False)
    source.ended.update(range(10))
    watched_script(hand, source)
    hand.step()
    for number in range(1, 10):
        source.splits.append([At("b", 10 * number + 5), Wm(10 * number + 10)])
        assert hand.step() == [("b", 10 * number + 5, 10 * number)]
        hand.step()
    clocks = [task.clocks.snapshot()[3] for stage in hand.job.engine.stages.values() for task in stage._tasks.values()]
    assert all(len(splits) <= 4 for splits in clocks)  # what is finished is forgotten


def test_a_drained_job_of_finished_splits_ends_event_time(hand):
    source = Script([At("a", 5), Wm(10)], bounded=False)
    source.ended.add(0)
    stream = hand.env.from_source(source, WatermarkStrategy.no_watermarks(), "script")
    hand.watch(stream.key_by(lambda value: value).process(Fired()))
    assert hand.step() == [(5, 10)]
    hand.step()
    source.splits.append([At("b", 15)])
    assert hand.step() == []
    assert hand.drain() == [(15, MAX_WATERMARK)]


def test_the_end_of_a_job_is_heard_though_all_its_splits_were_finished_before(hand):
    source = Script([At("a", 50), Wm(10)], bounded=False)
    source.ended.add(0)
    stream = hand.env.from_source(source, WatermarkStrategy.no_watermarks(), "script").rebalance().map(lambda v: v)
    hand.watch(stream.key_by(lambda value: value).process(Fired()))
    assert hand.step() == []
    assert hand.step() == []
    assert hand.drain() == [(50, MAX_WATERMARK)]
