"""Idle splits, subtasks and inputs: who is left out of event time, and what happens when they return."""

import pytest
from support import IDLE, At, Script, Wm, script

from penstock.common import Duration, WatermarkStrategy
from penstock.common.watermark_strategy import Watermark, WatermarkGenerator
from penstock.datastream import KeyedCoProcessFunction, KeyedProcessFunction


class Fired(KeyedProcessFunction):
    """Sets a timer at each record's own timestamp; so its firings show how far event time has come."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp())

    def on_timer(self, timestamp, ctx):
        yield timestamp, ctx.timer_service().current_watermark()


class Periodic(WatermarkGenerator):
    """The largest timestamp minus ten, asked for at the end of a batch at the latest."""

    def __init__(self):
        self.largest = None

    def on_event(self, event, event_timestamp, output):
        self.largest = event_timestamp if self.largest is None else max(self.largest, event_timestamp)

    def on_periodic_emit(self, output):
        if self.largest is not None:
            output.emit_watermark(Watermark(self.largest - 10))


def strategy(base):
    return base.with_timestamp_assigner(lambda value: value[1])


OWN = WatermarkStrategy.for_generator(lambda ctx: Periodic())


def test_an_idle_split_does_not_hold_the_clock_back(hand):
    source = script(hand.env, [At("x", 5), Wm(20)], [At("y", 30), Wm(1), IDLE], bounded=False)
    hand.watch(source.key_by(lambda v: 0).process(Fired()))
    elements = source._source.source
    assert hand.step() == [(5, 20)]
    elements.add(Wm(25), split=0)
    elements.add(At("x", 22), split=0)
    assert hand.step() == []
    elements.add(Wm(26), split=0)
    assert hand.step() == [(22, 26)]
    # Back, but behind: left out until it has caught up.
    elements.add(At("y", 40), Wm(10), split=1)
    elements.add(Wm(32), split=0)
    assert hand.step() == [(30, 32)]
    elements.add(Wm(33), split=1)
    assert hand.step() == []
    elements.add(Wm(50), split=0)
    assert hand.step() == []
    elements.add(Wm(45), split=1)
    assert hand.step() == [(40, 45)]


class LatenessOf(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp() <= ctx.timer_service().current_watermark()


# Not "restored": a job that starts again gives every split the whole timeout.
@pytest.mark.parametrize("hand", ["warm-1", "cold-1", "warm-4", "cold-4"], indirect=True)
@pytest.mark.parametrize("generator", ["built-in", "user's"])
def test_a_split_that_returns_from_idleness_holds_those_of_its_subtask_back(hand, generator):
    source = Script([("x", 5)], [("y", 5)], bounded=False)
    base = WatermarkStrategy.for_monotonous_timestamps() if generator == "built-in" else OWN
    idle = strategy(base).with_idleness(Duration.of_millis(1000))
    stream = hand.env.from_source(source, idle, "two splits").set_parallelism(1)
    hand.watch(stream.key_by(lambda value: value[0]).process(LatenessOf()))
    hand.step()
    source.add(("x", 50), split=0)
    hand.advance(600)
    source.add(("x", 100), split=0)
    hand.advance(600)  # nothing from y since 0: event time is 99, or 90 by the user's generator
    source.add(("x", 200), split=0)
    source.add(("y", 110), split=1)
    assert sorted(hand.advance(1)) == [(("x", 200), False), (("y", 110), False)]
    source.add(("x", 300), split=0)
    source.add(("y", 120), split=1)
    assert sorted(hand.advance(1)) == [(("x", 300), False), (("y", 120), False)]
    source.add(("y", 119), split=1)
    assert hand.advance(1) == [(("y", 119), generator == "built-in")]


def test_a_split_that_returns_from_idleness_does_not_hold_other_subtasks_back(hand):
    source = script(hand.env, [At("x", 5), Wm(10)], [At("y", 5), Wm(10), IDLE], bounded=False)
    hand.watch(source.set_parallelism(2).key_by(lambda value: value).process(LatenessOf()))
    elements = source._source.source
    hand.step()
    elements.add(Wm(100), split=0)
    hand.step()
    elements.add(At("y", 110), Wm(50), split=1)
    assert hand.step() == [("y", False)]
    elements.add(Wm(200), split=0)
    hand.step()
    elements.add(At("y", 120), split=1)
    assert hand.step() == [("y", True)]


def test_an_input_that_returns_from_idleness_holds_the_other_input_back(hand):
    first = script(hand.env, [At("x", 5), Wm(10)], bounded=False, name="first")
    second = script(hand.env, [At("y", 5), Wm(10), IDLE], bounded=False, name="second")

    class BothSides(KeyedCoProcessFunction):
        def process_element1(self, value, ctx):
            yield value, ctx.timestamp() <= ctx.timer_service().current_watermark()

        process_element2 = process_element1

    def by_value(value):
        return value

    hand.watch(first.key_by(by_value).connect(second.key_by(by_value)).process(BothSides()))
    hand.step()
    first._source.source.add(Wm(100))
    hand.step()
    second._source.source.add(Wm(50))
    hand.step()
    first._source.source.add(Wm(200))
    hand.step()
    second._source.source.add(At("y", 120))
    assert hand.step() == [("y", False)]


def test_records_of_an_idle_task_do_not_hold_back_others(hand):
    """What processing-time timers of an idle stream emit says nothing about event time."""
    idle = script(hand.env, [At("tick", 5), Wm(10), IDLE], bounded=False, name="idle")
    busy = script(hand.env, [At("x", 20), Wm(10)], bounded=False, name="busy")

    class Later(KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_processing_time_timer(1000)

        def on_timer(self, timestamp, ctx):
            yield "late alarm"

    class FiredIfStamped(Fired):
        def process_element(self, value, ctx):
            if ctx.timestamp() is not None:
                ctx.timer_service().register_event_time_timer(ctx.timestamp())

    alarms = idle.key_by(lambda value: value).process(Later())
    hand.watch(alarms.union(busy).key_by(lambda value: value).process(FiredIfStamped()))
    hand.step()
    hand.advance(1000)
    busy._source.source.add(Wm(30))
    assert hand.step() == [(20, 30)]


@pytest.mark.parametrize("hand", ["warm-1", "cold-1", "warm-4", "cold-4"], indirect=True)
@pytest.mark.parametrize("generator", ["built-in", "user's"])
def test_when_all_splits_are_idle_event_time_is_that_of_the_largest(hand, generator):
    source = Script([("x", 100), ("x", 80)], [("y", 5)], bounded=False)
    base = WatermarkStrategy.for_monotonous_timestamps() if generator == "built-in" else OWN
    idle = strategy(base).with_idleness(Duration.of_millis(1000))
    stream = hand.env.from_source(source, idle, "two splits").set_parallelism(1)
    hand.watch(stream.key_by(lambda value: value[0]).process(Fired()))
    assert [timestamp for timestamp, _ in hand.step()] == []
    largest = 99 if generator == "built-in" else 90
    assert sorted(hand.advance(1001)) == [(5, largest), (80, largest)]


def test_an_idle_split_stays_idle_until_it_speaks(hand):
    source = script(hand.env, [At("x", 5), Wm(10), IDLE], [At("y", 15), Wm(5)], bounded=False)
    hand.watch(source.key_by(lambda v: 0).process(Fired()))
    assert hand.step() == [(5, 5)]
    source._source.source.add(Wm(20), split=1)
    assert hand.step() == [(15, 20)]


# Not "restored": a job that starts again gives every split the whole timeout.
@pytest.mark.parametrize("hand", ["warm-1", "cold-1", "warm-4", "cold-4"], indirect=True)
def test_a_split_without_records_becomes_idle_after_the_timeout(hand):
    source = Script([("x", 5)], [("y", 7)], bounded=False)
    idle = strategy(WatermarkStrategy.for_monotonous_timestamps()).with_idleness(Duration.of_millis(1000))
    hand.watch(hand.env.from_source(source, idle, "two splits").key_by(lambda v: 0).process(Fired()))
    assert hand.step() == []  # monotonous: one behind, 4
    source.add(("x", 20), split=0)
    assert hand.advance(500) == [(5, 6)]
    source.add(("x", 30), split=0)
    assert hand.advance(400) == []
    assert hand.advance(200) == [(7, 29), (20, 29)]  # nothing from y since 0
    source.add(("y", 40), split=1)  # active again, and not behind
    assert hand.advance(1) == []
    source.add(("x", 50), split=0)
    assert hand.advance(1) == [(30, 39)]


def test_all_inputs_idle_flush_to_the_largest_watermark(hand):
    source = script(hand.env, [At("x", 5), At("x", 15), Wm(20)], [Wm(3)], bounded=False)
    hand.watch(source.key_by(lambda v: 0).process(Fired()))
    assert hand.step() == []
    source._source.source.add(IDLE, split=1)
    assert hand.step() == [(5, 20), (15, 20)]
