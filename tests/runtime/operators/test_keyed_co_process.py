import pytest

from penstock.common.errors import StateAccessError, UserFunctionError
from penstock.core.functions import KeyedCoProcessFunction
from penstock.core.output_tag import OutputTag
from penstock.core.state import ValueStateDescriptor
from penstock.core.time_domain import TimeDomain
from penstock.runtime.operators.keyed_co_process import KeyedCoProcessOperator

TAG = OutputTag("side")


class Pairing(KeyedCoProcessFunction):
    """Keeps the first record of the left side; the right side pairs with it; a timer clears it."""

    def open(self, runtime_context):
        self.left = runtime_context.get_state(ValueStateDescriptor("left"))

    def process_element1(self, value, ctx):
        self.left.update(value)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)

    def process_element2(self, value, ctx):
        yield ctx.get_current_key(), self.left.value(), value

    def on_timer(self, timestamp, ctx):
        left, domain = self.left.value(), ctx.time_domain()
        self.left.clear()
        yield "expired", left, timestamp, domain
        yield TAG, ctx.get_current_key()


def operator(function=None):
    return KeyedCoProcessOperator(function or Pairing(), lambda value: value[0], lambda value: value)


def test_both_inputs_share_state_and_timers_of_a_key(drive):
    driver = drive(operator(), sides=["side"])
    driver.send(("a", 1), at=100)
    driver.send2("a", "b", at=[101, 102])
    driver.watermark(109)
    driver.watermark(110)
    driver.send2("a", at=111)
    assert driver.output.take() == [
        (("a", ("a", 1), "a"), 101),
        (("b", None, "b"), 102),
        109,
        (("expired", ("a", 1), 110, TimeDomain.EVENT_TIME), 110),
        110,
        (("a", None, "a"), 111),
    ]
    assert driver.sides["side"].take() == [109, ("a", 110), 110]


def test_timers_survive_a_restore(drive):
    driver = drive(operator())
    driver.send(("a", 1), at=100)
    again = driver.restored(operator())
    again.watermark(200)
    assert again.output.values == [("expired", ("a", 1), 110, TimeDomain.EVENT_TIME)]


def test_a_processing_timer_of_the_past_fires_right_after_the_method(drive):
    class Past(Pairing):
        def process_element2(self, value, ctx):
            ctx.timer_service().register_processing_time_timer(1)
            yield "element", value

        def on_timer(self, timestamp, ctx):
            yield "timer", ctx.get_current_key()

    driver = drive(operator(Past()), now=50)
    driver.send2("a", "b", at=[1, 2])
    assert driver.output.take() == [
        (("element", "a"), 1),
        (("timer", "a"), None),
        (("element", "b"), 2),
        (("timer", "b"), None),
    ]


def test_no_key_is_in_scope_after_a_batch(drive):
    driver = drive(operator())
    driver.send(("a", 1), at=1)
    with pytest.raises(StateAccessError):
        driver.operator.function.left.value()


def test_errors_name_the_method(drive):
    class Fails(Pairing):
        def process_element2(self, value, ctx):
            raise ValueError(value)

        def on_timer(self, timestamp, ctx):
            raise KeyError(timestamp)

    driver = drive(operator(Fails()))
    with pytest.raises(UserFunctionError, match="process_element2"):
        driver.send2("x")
    driver.send(("a", 1), at=1)
    with pytest.raises(UserFunctionError, match="on_timer"):
        driver.watermark(100)
