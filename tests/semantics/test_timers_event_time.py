"""Event-time timers (rule 6.3)."""

import pytest
from support import BY_SECOND_FIELD, At, Wm, by_key, script

from penstock.datastream import KeyedProcessFunction, RuntimeContext, TimeDomain
from penstock.datastream.state import ValueStateDescriptor

MAX_WATERMARK = 2**63 - 1
ON_SPARK = pytest.mark.on_spark((4, "STREAMING"))


class SetTimers(KeyedProcessFunction):
    """A record is (key, [(command, timestamp), ...]); every firing is emitted."""

    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        for command, timestamp in value[1]:
            getattr(timers, f"{command}_event_time_timer")(timestamp)

    def on_timer(self, timestamp, ctx):
        assert ctx.time_domain() is TimeDomain.EVENT_TIME
        yield ctx.get_current_key(), timestamp, ctx.timer_service().current_watermark()


def register(key, *timestamps):
    return key, [("register", timestamp) for timestamp in timestamps]


def delete(key, *timestamps):
    return key, [("delete", timestamp) for timestamp in timestamps]


def fired(hand, source):
    """Watches timers set by the records of a scripted source."""
    hand.watch(source.key_by(0).process(SetTimers()))


def test_a_timer_fires_when_the_watermark_reaches_it(hand):
    source = script(hand.env, [At(register("a", 10), 1)], bounded=False)
    elements = source._source.source  # the script itself, to go on writing it
    fired(hand, source)
    assert hand.step() == []
    elements.add(Wm(9))
    assert hand.step() == []
    elements.add(Wm(10))
    assert hand.step() == [("a", 10, 10)]
    elements.add(Wm(11))
    assert hand.step() == []


def test_one_timer_per_key_and_timestamp(hand):
    fired(hand, script(hand.env, [register("a", 10, 10), register("a", 10), register("b", 10), Wm(20)], bounded=False))
    assert sorted(hand.step()) == [("a", 10, 20), ("b", 10, 20)]


def test_many_timestamps_per_key_fire_in_time_order(hand):
    timers = [30, 10, 20, 40, 50]
    fired(hand, script(hand.env, [register("a", *timers), Wm(45)], bounded=False))
    assert [timestamp for _, timestamp, _ in hand.step()] == [10, 20, 30, 40]


def test_a_deleted_timer_does_not_fire_and_deleting_none_is_harmless(hand):
    elements = [register("a", 10, 20), delete("a", 10, 15), delete("b", 20), Wm(30)]
    fired(hand, script(hand.env, elements, bounded=False))
    assert hand.step() == [("a", 20, 30)]


def test_a_deleted_timer_can_be_registered_again(hand):
    fired(hand, script(hand.env, [register("a", 10), delete("a", 10), register("a", 10), Wm(10)], bounded=False))
    assert hand.step() == [("a", 10, 10)]


def test_a_timer_for_the_past_fires_with_the_next_watermark(hand):
    source = script(hand.env, [Wm(100), At(register("a", 50), 101)], bounded=False)
    fired(hand, source)
    assert hand.step() == []
    source._source.source.add(Wm(101))
    assert hand.step() == [("a", 50, 101)]


def test_timers_of_a_key_survive_until_they_fire(hand):
    source = script(hand.env, [register(f"k{n}", 100 + n) for n in range(20)], bounded=False)
    fired(hand, source)
    assert hand.step() == []
    for n in range(20):
        source._source.source.add(Wm(100 + n))
        assert hand.step() == [(f"k{n}", 100 + n, 100 + n)]


def test_the_end_of_the_input_fires_all_timers(hand):
    fired(hand, script(hand.env, [register("a", 10, MAX_WATERMARK - 1)]))
    assert hand.step() == [("a", 10, MAX_WATERMARK), ("a", MAX_WATERMARK - 1, MAX_WATERMARK)]


class ChainOnce(KeyedProcessFunction):
    """Registers the next timer in the callback of the last, also for times that have passed."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp, ctx):
        if timestamp < 50:
            ctx.timer_service().register_event_time_timer(timestamp + 10)
        yield ctx.get_current_key(), timestamp


def test_a_timer_registered_in_a_callback_for_a_time_that_has_come_fires_at_once(hand):
    source = script(hand.env, [("a", 10), Wm(35)], bounded=False)
    hand.watch(source.key_by(0).process(ChainOnce()))
    assert hand.step() == [("a", 10), ("a", 20), ("a", 30)]
    source._source.source.add(Wm(60))
    assert hand.step() == [("a", 40), ("a", 50)]


class Alert(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1] + 5)
        yield "record", value[0], ctx.timestamp()

    def on_timer(self, timestamp, ctx):
        yield "timer", ctx.get_current_key(), ctx.timestamp()


class Late(KeyedProcessFunction):
    """Tells whether a record is behind the watermark when it comes."""

    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timestamp() <= ctx.timer_service().current_watermark()


def test_what_a_timer_emits_carries_its_timestamp_and_comes_before_its_watermark(hand):
    source = script(hand.env, [At(("a", 1), 1), Wm(6), At(("a", 8), 8), Wm(20)], bounded=False)
    downstream = source.key_by(0).process(Alert()).key_by(1).process(Late())
    hand.watch(downstream)
    assert hand.step() == [
        (("record", "a", 1), 1, False),
        (("timer", "a", 6), 6, False),
        (("record", "a", 8), 8, False),
        (("timer", "a", 13), 13, False),
    ]


class CountThenClear(KeyedProcessFunction):
    """Counts records until a timer clears the count: state and timers are of the same key."""

    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element(self, value, ctx):
        if self.count.value() == 0:
            ctx.timer_service().register_event_time_timer(value[1] + 10)
        self.count.update(self.count.value() + 1)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, self.count.value()
        self.count.clear()


@ON_SPARK
@pytest.mark.variants(modes=["STREAMING"])
def test_state_and_timers_of_a_key_belong_together(env, run):
    readings = [("a", 1), ("b", 2), ("a", 5), ("a", 20), ("b", 21), ("a", 22), ("b", 40)]
    timed = env.from_collection(readings).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
    chained = timed.key_by(0).process(Alert()).key_by(1).process(Late())
    results = run(
        counts=timed.key_by(0).process(CountThenClear()), chain=timed.key_by(0).process(ChainOnce()), late=chained
    )
    # How many records a pseudo window gets does not depend on where batches are cut: only timers are timed.
    assert sum(record[2] for record in results["counts"]) == len(readings)
    assert set(by_key(results["counts"])) == {"a", "b"}
    assert {timestamp for _, timestamp in results["chain"]} >= {11 - 10, 2, 5, 20, 21, 22, 40}
    timers = sorted(record[0][1:] for record in results["late"] if record[0][0] == "timer")
    assert timers == sorted((key, timestamp + 5) for key, timestamp in readings)


class TestBatchMode:
    """Keyed input comes key by key; timers fire at the end of each key, as if time had ended."""

    pytestmark = pytest.mark.variants(modes=["BATCH"])

    @pytest.mark.on_spark((4, "BATCH"))
    def test_keys_are_processed_one_after_the_other_in_time_order(self, env, run):
        class Watch(KeyedProcessFunction):
            def process_element(self, value, ctx):
                ctx.timer_service().register_event_time_timer(value[1])
                yield value[0], "record", value[1], ctx.timer_service().current_watermark()

            def on_timer(self, timestamp, ctx):
                yield ctx.get_current_key(), "timer", timestamp, ctx.timer_service().current_watermark()

        readings = [("a", 3), ("b", 2), ("a", 1), ("b", 9), ("a", 2)]
        timed = env.from_collection(readings).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
        records = run(timed.key_by(0).process(Watch()))
        expected = {
            key: [(key, "record", t, -(2**63)) for t in times] + [(key, "timer", t, MAX_WATERMARK) for t in times]
            for key, times in {"a": [1, 2, 3], "b": [2, 9]}.items()
        }
        assert by_key(records) == expected
        order = [record[0] for record in records]
        assert order in (["a"] * 6 + ["b"] * 4, ["b"] * 4 + ["a"] * 6)  # never mixed, at any parallelism of the sink

    def test_no_record_is_late(self, env, run):
        readings = [("a", 100), ("a", 1), ("a", 50)]
        timed = env.from_collection(readings).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
        assert [late for _, _, late in run(timed.key_by(0).process(Late()))] == [False, False, False]

    def test_timers_registered_in_timers_are_ignored(self, env, run):
        timed = env.from_collection([("a", 10), ("b", 40)]).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
        assert by_key(run(timed.key_by(0).process(ChainOnce()))) == {"a": [("a", 10)], "b": [("b", 40)]}
