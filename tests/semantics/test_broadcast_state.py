"""Broadcast state, keyed and not (rules 5.4, C01 to C12)."""

import pytest
from support import At, Wm, script

from penstock.common import Types
from penstock.common.errors import StateAccessError
from penstock.datastream import BroadcastProcessFunction, KeyedBroadcastProcessFunction, OutputTag, RuntimeContext
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor

RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
NAMES = MapStateDescriptor("names", Types.STRING(), Types.STRING())
SEEN = OutputTag("seen")


class Thresholds(BroadcastProcessFunction):
    """Readings above the threshold of their kind."""

    def open(self, runtime_context: RuntimeContext):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def process_element(self, value, ctx):
        threshold = ctx.get_broadcast_state(RULES).get(value[0])
        if threshold is not None and value[1] > threshold:
            yield value

    def process_broadcast_element(self, value, ctx):
        if value[1] is None:
            ctx.get_broadcast_state(RULES).remove(value[0])
        else:
            ctx.get_broadcast_state(RULES).put(*value)
        ctx.output(SEEN, (self.subtask, value[0]))


class CountSinceRule(KeyedBroadcastProcessFunction):
    """Counts records of each key; a broadcast element emits and resets all counts; a timer reports the rule."""

    def open(self, runtime_context: RuntimeContext):
        self.descriptor = ValueStateDescriptor("count", Types.INT(), 0)
        self.count = runtime_context.get_state(self.descriptor)

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        ctx.timer_service().register_event_time_timer(value[1])

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(NAMES).put("current", value)
        collected = []

        def visit(key, state):
            collected.append(("reset", value, key, state.value()))
            state.clear()

        ctx.apply_to_keyed_state(self.descriptor, visit)
        yield from collected

    def on_timer(self, timestamp, ctx):
        names = ctx.get_broadcast_state(NAMES)
        yield "timer", ctx.get_current_key(), timestamp, names.get("current"), names.contains("other")


def test_rules_that_came_before_are_applied_in_every_subtask(hand):
    rules = script(hand.env, [("temperature", 30), ("pressure", 5)], bounded=False)
    readings = script(hand.env, [], bounded=False)
    matched = readings.rebalance().connect(rules.broadcast(RULES)).process(Thresholds())
    hand.watch(matched)
    assert hand.step() == []
    add = readings._source.source.add
    add(*[("temperature", 29 + n % 3) for n in range(12)])
    assert sorted(hand.step()) == [("temperature", 31)] * 4
    rules._source.source.add(("temperature", None), ("pressure", 0))
    assert hand.step() == []
    add(("temperature", 99), ("pressure", 1))
    assert hand.step() == [("pressure", 1)]


@pytest.mark.variants(modes=["STREAMING"])
@pytest.mark.on_spark((4, "STREAMING"))
def test_every_subtask_sees_every_broadcast_element(env, run, variant):
    rules = env.from_collection([("temperature", 30), ("pressure", 5)])
    readings = env.from_sequence(1, 8).map(lambda n: ("temperature", n * 10))
    matched = readings.connect(rules.broadcast(RULES)).process(Thresholds())
    results = run(main=matched, seen=matched.get_side_output(SEEN))
    subtasks = range(variant.parallelism)
    assert sorted(results["seen"]) == sorted((n, rule) for n in subtasks for rule in ("temperature", "pressure"))
    assert set(results["main"]) <= {
        ("temperature", n * 10) for n in range(4, 9)
    }  # what came before the rule is not there


def test_keyed_broadcast_function(hand):
    readings = script(hand.env, [At(("a", 10), 1), At(("b", 20), 1), At(("a", 30), 1)], bounded=False)
    rules = script(hand.env, [], bounded=False)
    hand.watch(readings.key_by(0).connect(rules.broadcast(NAMES)).process(CountSinceRule()))
    assert hand.step() == []
    rules._source.source.add("first")
    assert sorted(hand.step()) == [("reset", "first", "a", 2), ("reset", "first", "b", 1)]
    readings._source.source.add(At(("c", 40), 1))
    assert hand.step() == []
    rules._source.source.add("second")
    assert hand.step() == [("reset", "second", "c", 1)]  # the other keys have no state any more
    # Both inputs decide on event time.
    readings._source.source.add(Wm(25))
    assert hand.step() == []
    rules._source.source.add(Wm(15))
    assert hand.step() == [("timer", "a", 10, "second", False)]
    rules._source.source.add(Wm(100))
    assert hand.step() == [("timer", "b", 20, "second", False)]


@pytest.mark.variants(modes=["BATCH"])
@pytest.mark.on_spark((4, "BATCH"))
def test_in_batch_mode_the_broadcast_side_comes_first(env, run):
    """So every record meets all rules, keyed or not."""
    rules = env.from_collection([("temperature", 30)])
    readings = env.from_sequence(1, 8).map(lambda n: ("temperature", n * 10))
    names = env.from_collection(["only"])
    keyed = env.from_collection([("a", 1), ("b", 2), ("a", 3)]).key_by(0)
    results = run(
        plain=readings.connect(rules.broadcast(RULES)).process(Thresholds()),
        keyed=keyed.connect(names.broadcast(NAMES)).process(CountSinceRule()),
    )
    assert sorted(results["plain"]) == [("temperature", n * 10) for n in range(4, 9)]
    assert sorted(results["keyed"]) == [("timer", key, n, "only", False) for key, n in (("a", 1), ("a", 3), ("b", 2))]


def test_several_broadcast_states_on_one_stream(hand):
    class TwoStates(BroadcastProcessFunction):
        def process_element(self, value, ctx):
            yield value, ctx.get_broadcast_state(RULES).get("n"), ctx.get_broadcast_state(NAMES).get("s")

        def process_broadcast_element(self, value, ctx):
            ctx.get_broadcast_state(RULES).put("n", value)
            ctx.get_broadcast_state(NAMES).put("s", str(value))

    control, data = script(hand.env, [1, 2], bounded=False), script(hand.env, [], bounded=False)
    hand.watch(data.connect(control.broadcast(RULES, NAMES)).process(TwoStates()))
    hand.step()
    data._source.source.add("x")
    assert hand.step() == [("x", 2, "2")]


def test_the_element_side_cannot_write_broadcast_state(hand):
    class Writes(BroadcastProcessFunction):
        def process_element(self, value, ctx):
            ctx.get_broadcast_state(RULES).put("a", 1)

        def process_broadcast_element(self, value, ctx):
            pass

    data, control = script(hand.env, [1], bounded=False), script(hand.env, [], bounded=False)
    hand.watch(data.connect(control.broadcast(RULES)).process(Writes()))
    with pytest.raises(StateAccessError, match=r"broadcast state 'rules' is read-only here.*process_broadcast_element"):
        hand.step()


def test_keyed_state_cannot_be_touched_on_a_broadcast_element(hand):
    class Touches(CountSinceRule):
        def process_broadcast_element(self, value, ctx):
            self.count.update(1)

    data, control = script(hand.env, [], bounded=False), script(hand.env, ["rule"], bounded=False)
    hand.watch(data.key_by(0).connect(control.broadcast(NAMES)).process(Touches()))
    with pytest.raises(StateAccessError, match=r"accessed without a current key.*not in open.*broadcast element"):
        hand.step()


def test_a_function_without_keys_has_no_timers(hand):
    class Timers(BroadcastProcessFunction):
        def process_element(self, value, ctx):
            yield hasattr(ctx, "timer_service")

        def process_broadcast_element(self, value, ctx):
            pass

    data, control = script(hand.env, [1], bounded=False), script(hand.env, [], bounded=False)
    hand.watch(data.connect(control.broadcast(RULES)).process(Timers()))
    assert hand.step() == [False]


def test_apply_to_keyed_state_reaches_every_key_also_those_that_are_not_in_memory(hand):
    """And each of them once, whatever the function does to its state."""
    numbers = script(hand.env, [At((n, n), 1) for n in range(500)], bounded=False)
    rules = script(hand.env, [], bounded=False)
    hand.watch(numbers.key_by(0).connect(rules.broadcast(NAMES)).process(CountSinceRule()))
    assert hand.step() == []
    numbers._source.source.add(*[At((n, n), 1) for n in range(0, 500, 5)])
    assert hand.step() == []
    rules._source.source.add("first")
    assert sorted(hand.step()) == [("reset", "first", n, 2 if n % 5 == 0 else 1) for n in range(500)]
    rules._source.source.add("second")
    assert hand.step() == []


ALL = MapStateDescriptor("all")


class ChangesInPlace(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value, tuple(ctx.get_broadcast_state(ALL).get("all") or ())

    def process_broadcast_element(self, value, ctx):
        state = ctx.get_broadcast_state(ALL)
        if state.is_empty():
            state.put("all", [])
        state.get("all").append(value)


def test_an_object_in_broadcast_state_that_is_changed_in_place_is_kept(hand):
    elements, rules = script(hand.env, [], bounded=False), script(hand.env, [], bounded=False)
    hand.watch(elements.connect(rules.broadcast(ALL)).process(ChangesInPlace()))
    for number in range(1, 4):
        rules._source.source.add(number)
        hand.step()
        elements._source.source.add(f"after {number}")
        assert hand.step() == [(f"after {number}", tuple(range(1, number + 1)))]
