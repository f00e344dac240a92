"""Processing-time timers (rule 6.3): they fire with no input arriving, and survive restarts."""

import pytest
from support import At, by_key, script

from penstock.datastream import KeyedProcessFunction, ProcessFunction, RuntimeContext, TimeDomain
from penstock.datastream.state import ValueStateDescriptor


class SetTimers(KeyedProcessFunction):
    """A record is (key, [(command, timestamp), ...]); records and firings are emitted."""

    def process_element(self, value, ctx):
        for command, timestamp in value[1]:
            getattr(ctx.timer_service(), f"{command}_processing_time_timer")(timestamp)
        yield ctx.get_current_key(), "record", ctx.timer_service().current_processing_time()

    def on_timer(self, timestamp, ctx):
        assert ctx.time_domain() is TimeDomain.PROCESSING_TIME
        yield ctx.get_current_key(), timestamp, ctx.timer_service().current_processing_time()


def register(key, *timestamps):
    return key, [("register", timestamp) for timestamp in timestamps]


def delete(key, *timestamps):
    return key, [("delete", timestamp) for timestamp in timestamps]


@pytest.fixture
def timers(hand):
    """A job whose input is written while it runs."""
    source = script(hand.env, [], bounded=False)
    hand.watch(source.key_by(0).process(SetTimers()))

    class Input:
        def __call__(self, *elements):
            source._source.source.add(*elements)
            return hand.step()

    return Input()


def test_a_timer_fires_when_the_clock_reaches_it_though_nothing_comes(hand, timers):
    assert timers(register("a", 100)) == [("a", "record", 0)]
    assert hand.advance(99) == []
    assert hand.advance(1) == [("a", 100, 100)]
    assert hand.advance(1000) == []


def test_a_timer_for_the_past_fires_right_after_the_method_that_registered_it(hand, timers):
    hand.advance(500)
    assert timers(register("a", 300), register("a")) == [("a", "record", 500), ("a", 300, 500), ("a", "record", 500)]


def test_timers_fire_in_time_order_once_for_each_timestamp(hand, timers):
    timers(register("a", 30, 10, 20, 10))
    assert hand.advance(25) == [("a", 10, 25), ("a", 20, 25)]
    assert hand.advance(25) == [("a", 30, 50)]


def test_a_deleted_timer_does_not_fire(hand, timers):
    timers(register("a", 10, 20), delete("a", 10, 15), delete("b", 20))
    assert hand.advance(50) == [("a", 20, 50)]


def test_timers_of_many_keys(hand, timers):
    timers(*[register(f"k{n}", 10 * n) for n in range(1, 31)])
    fired = []
    for _ in range(30):
        fired += hand.advance(10)
    assert fired == [(f"k{n}", 10 * n, 10 * n) for n in range(1, 31)]


def test_a_timer_that_expired_while_the_job_was_down_fires_when_it_resumes(hand, timers):
    timers(register("a", 100), register("b", 200))
    hand.restart(downtime=150)
    assert hand.step() == [("a", 100, 150)]
    hand.restart(downtime=10)
    assert hand.step() == []
    assert hand.advance(40) == [("b", 200, 200)]


class PastTimer(KeyedProcessFunction):
    """Sets a timer that is due at once, and shows the timestamps it meets."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() - value)
        yield value, ctx.timestamp()

    def on_timer(self, timestamp, ctx):
        yield "timer", ctx.timestamp()


class OutputTimestamps(ProcessFunction):
    def process_element(self, value, ctx):
        yield *value, ctx.timestamp()


def test_a_timer_between_two_records_does_not_touch_their_timestamps(hand):
    hand.clock.advance(1000)
    records = [1, 2, At(3, 77), 4]
    stream = script(hand.env, records, bounded=False).key_by(lambda v: 0).process(PastTimer())
    hand.watch(stream.process(OutputTimestamps()))
    # A timer knows its own time, but what it emits has no event time.
    assert hand.step() == [
        (1, None, None),
        ("timer", 999, None),
        (2, None, None),
        ("timer", 998, None),
        (3, 77, 77),
        ("timer", 997, None),
        (4, None, None),
        ("timer", 996, None),
    ]


def test_the_same_within_one_batch_of_records_without_timestamps(hand):
    hand.clock.advance(1000)
    source = hand.env.from_collection([1, 2, 3])
    hand.watch(source.key_by(lambda v: 0).process(PastTimer()))
    assert hand.step() == [(1, None), ("timer", 999), (2, None), ("timer", 998), (3, None), ("timer", 997)]


class Rising(KeyedProcessFunction):
    """Warns if a temperature rises for a second (example E28)."""

    def open(self, runtime_context: RuntimeContext):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", default_value=0.0))
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", default_value=0))

    def process_element(self, value, ctx):
        previous, timer = self.last.value(), self.timer.value()
        self.last.update(value[1])
        if previous == 0.0 or value[1] < previous:
            ctx.timer_service().delete_processing_time_timer(timer)
            self.timer.clear()
        elif value[1] > previous and timer == 0:
            due = ctx.timer_service().current_processing_time() + 1000
            ctx.timer_service().register_processing_time_timer(due)
            self.timer.update(due)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp
        self.timer.clear()


def test_a_temperature_that_rises_for_a_second_is_reported(hand):
    source = script(hand.env, [], bounded=False)
    hand.watch(source.key_by(0).process(Rising()))
    add = source._source.source.add

    def read(*readings):
        add(*readings)
        return hand.advance(400)

    assert read(("s1", 20.0), ("s2", 20.0)) == []  # now 400
    assert read(("s1", 21.0), ("s2", 21.0)) == []  # both rise at 800: due at 1800
    assert read(("s1", 22.0), ("s2", 19.0)) == []  # s2 drops
    assert read(("s1", 22.0), ("s2", 20.0)) == []  # equal: the timer stays; s2 rises at 1600: due at 2600
    assert hand.advance(200) == [("s1", 1800)]
    assert read(("s1", 23.0)) == []  # goes on rising: a new second begins at 2200
    assert hand.advance(400) == [("s2", 2600)]
    assert hand.advance(600) == [("s1", 3200)]


class Both(KeyedProcessFunction):
    """The same timestamp in both domains: two timers."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(50)
        ctx.timer_service().register_event_time_timer(50)
        ctx.timer_service().delete_processing_time_timer(60)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), ctx.time_domain().name, timestamp


def test_the_two_domains_do_not_mix(hand):
    from support import Wm

    source = script(hand.env, [("a", 0)], bounded=False)
    hand.watch(source.key_by(0).process(Both()))
    assert hand.step() == []
    assert hand.advance(60) == [("a", "PROCESSING_TIME", 50)]
    source._source.source.add(Wm(50))
    assert hand.step() == [("a", "EVENT_TIME", 50)]


@pytest.mark.variants(modes=["BATCH"])
@pytest.mark.on_spark((4, "BATCH"))
def test_in_batch_mode_processing_timers_fire_at_the_end_of_each_key(env, run):
    class AtEnd(KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_processing_time_timer(2**60 + value[1])
            yield value

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), "timer", timestamp - 2**60

    records = run(env.from_collection([("a", 1), ("b", 2), ("a", 3)]).key_by(0).process(AtEnd()))
    assert by_key(records) == {
        "a": [("a", 1), ("a", 3), ("a", "timer", 1), ("a", "timer", 3)],
        "b": [("b", 2), ("b", "timer", 2)],
    }
