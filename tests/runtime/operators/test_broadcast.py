import pytest

from penstock.common.errors import InvalidProgramError, StateAccessError, UserFunctionError
from penstock.core.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from penstock.core.output_tag import OutputTag
from penstock.core.state import MapStateDescriptor, ValueStateDescriptor
from penstock.runtime.operators.broadcast import BroadcastProcessOperator, KeyedBroadcastProcessOperator

RULES = MapStateDescriptor("rules")
COUNT = ValueStateDescriptor("count")
TAG = OutputTag("side")


class Enrich(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.get_broadcast_state(RULES).get(value), ctx.timestamp(), ctx.current_processing_time()

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)
        ctx.output(TAG, ctx.current_watermark())


class CountPerKey(KeyedBroadcastProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(COUNT)

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(100)
        yield ctx.get_current_key(), self.count.value(), ctx.get_broadcast_state(RULES)["x"]

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES)["x"] = value
        ctx.apply_to_keyed_state(COUNT, lambda key, state: state.update(state.value() * 10))

    def on_timer(self, timestamp, ctx):
        yield "timer", ctx.get_current_key(), self.count.value(), ctx.get_broadcast_state(RULES).get("x")


def plain(function=None):
    return BroadcastProcessOperator(function or Enrich(), [RULES])


def keyed(function=None):
    return KeyedBroadcastProcessOperator(function or CountPerKey(), lambda value: value, [RULES])


def test_elements_read_what_broadcast_elements_wrote(drive):
    driver = drive(plain(), sides=["side"], now=7)
    driver.send("a", at=1)
    driver.watermark(2)
    driver.send2(("a", "rule a"), at=3)
    driver.send("a", at=4)
    assert driver.output.take() == [(("a", None, 1, 7), 1), 2, (("a", "rule a", 4, 7), 4)]
    assert driver.sides["side"].take() == [2, (2, 3)]


def test_broadcast_state_survives_a_restore(drive):
    driver = drive(plain())
    driver.send2(("a", 1))
    assert driver.restored(plain()).send("a") == [("a", 1, None, 0)]


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.put("a", 1),
        lambda state: state.put_all({"a": 1}),
        lambda state: state.remove("a"),
        lambda state: state.clear(),
        lambda state: state.__setitem__("a", 1),
        lambda state: state.__delitem__("a"),
    ],
)
def test_elements_cannot_change_broadcast_state(drive, change):
    class Writes(Enrich):
        def process_element(self, value, ctx):
            change(ctx.get_broadcast_state(RULES))

    with pytest.raises(StateAccessError, match="process_broadcast_element"):
        drive(plain(Writes())).send("a")


def test_the_read_only_view_reads_like_the_state(drive):
    class Reads(Enrich):
        def process_element(self, value, ctx):
            state = ctx.get_broadcast_state(RULES)
            yield sorted(state.items()), sorted(state.keys()), sorted(state.values()), "a" in state, state.is_empty()
            yield [*state], state["a"], state["nope"]

    driver = drive(plain(Reads()))
    driver.send2(("a", 1), ("b", 2))
    assert driver.send(0) == [
        ([("a", 1), ("b", 2)], ["a", "b"], [1, 2], True, False),
        (["a", "b"], 1, None),
    ]


def test_an_unknown_broadcast_state_is_refused(drive):
    class Asks(Enrich):
        def process_element(self, value, ctx):
            ctx.get_broadcast_state(MapStateDescriptor("other"))

    with pytest.raises(InvalidProgramError, match=r"'other'.*known: rules"):
        drive(plain(Asks())).send("a")


def test_keyed_elements_have_state_timers_and_the_broadcast_state(drive):
    driver = drive(keyed())
    driver.send2(5)
    driver.send("a", "a", "b")
    driver.watermark(100)
    assert sorted(driver.output.values) == [
        ("a", 1, 5),
        ("a", 2, 5),
        ("b", 1, 5),
        ("timer", "a", 2, 5),
        ("timer", "b", 1, 5),
    ]


def test_apply_to_keyed_state_visits_every_key_that_has_the_state(drive):
    driver = drive(keyed())
    driver.send("a", "a", "b")
    again = driver.restored(keyed())
    again.send2("rule")
    assert again.send("a", "b", "c") == [("a", 21, "rule"), ("b", 11, "rule"), ("c", 1, "rule")]


def test_apply_to_keyed_state_may_clear_the_state(drive):
    class Clears(CountPerKey):
        def process_broadcast_element(self, value, ctx):
            ctx.apply_to_keyed_state(COUNT, lambda key, state: state.clear())

    driver = drive(keyed(Clears()))
    driver.send("a", "b")
    driver.send2("clear")
    assert driver.send("a")[-1] == ("a", 1, None)


def test_keyed_state_and_timers_are_out_of_reach_on_the_broadcast_side(drive):
    class Touches(CountPerKey):
        def process_broadcast_element(self, value, ctx):
            self.count.value()

    class SetsTimer(CountPerKey):
        def process_broadcast_element(self, value, ctx):
            ctx.timer_service()

    with pytest.raises(StateAccessError):
        drive(keyed(Touches())).send2(1)
    with pytest.raises(InvalidProgramError, match="process_broadcast_element"):
        drive(keyed(SetsTimer())).send2(1)


def test_errors_name_the_method(drive):
    class Fails(Enrich):
        def process_broadcast_element(self, value, ctx):
            raise ValueError(value)

    with pytest.raises(UserFunctionError, match="process_broadcast_element"):
        drive(plain(Fails())).send2("x")
