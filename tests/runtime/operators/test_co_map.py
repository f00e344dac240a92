import pytest

from penstock.common.errors import KeySelectorError, UserFunctionError
from penstock.core.functions import CoFlatMapFunction, CoMapFunction
from penstock.core.output_tag import OutputTag
from penstock.core.state import ValueStateDescriptor
from penstock.runtime.operators.co_map import (
    CoFlatMapOperator,
    CoMapOperator,
    KeyedCoFlatMapOperator,
    KeyedCoMapOperator,
)

TAG = OutputTag("side")


class Sides(CoMapFunction):
    def map1(self, value):
        return 1, value

    def map2(self, value):
        return 2, value


class Repeat(CoFlatMapFunction):
    def flat_map1(self, value):
        return [value] * value

    def flat_map2(self, value):
        yield TAG, value
        yield str(value)


class LastOfOther(CoMapFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))

    def map1(self, value):
        return value, self.last.value()

    def map2(self, value):
        self.last.update(value[1])
        return value


def test_co_map_calls_the_method_of_the_input(drive):
    driver = drive(CoMapOperator(Sides()))
    driver.send("a", at=5)
    driver.send2("b")
    assert driver.output.take() == [((1, "a"), 5), ((2, "b"), None)]


def test_co_flat_map_gives_any_number_and_side_outputs(drive):
    driver = drive(CoFlatMapOperator(Repeat()), sides=["side"])
    driver.send(0, 2, at=[1, 2])
    driver.send2(7, at=3)
    assert driver.output.take() == [(2, 2), (2, 2), ("7", 3)]
    assert driver.sides["side"].take() == [(7, 3)]


def test_both_inputs_share_the_state_of_a_key(drive):
    driver = drive(KeyedCoMapOperator(LastOfOther(), lambda value: value, lambda value: value[0]))
    driver.send2(("a", 1), ("b", 2))
    driver.send("a", "b", "c")
    assert driver.output.values[2:] == [("a", 1), ("b", 2), ("c", None)]


def test_keyed_co_flat_map_has_state_and_side_outputs(drive):
    class Stateful(Repeat):
        def open(self, runtime_context):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

        def flat_map1(self, value):
            self.count.update(self.count.value() + 1)
            yield value, self.count.value()

    driver = drive(KeyedCoFlatMapOperator(Stateful(), lambda v: v, lambda v: v), sides=["side"])
    driver.send("a", "b", "a", at=[1, 2, 3])
    driver.send2("a")
    assert driver.output.take() == [(("a", 1), 1), (("b", 1), 2), (("a", 2), 3), ("a", None)]
    assert driver.sides["side"].values == ["a"]


def test_errors_name_the_method_of_the_input(drive):
    class Fails(Sides):
        def map2(self, value):
            raise ValueError(value)

    with pytest.raises(UserFunctionError, match="map2"):
        drive(CoMapOperator(Fails())).send2("x")
    with pytest.raises(UserFunctionError, match="flat_map1"):
        drive(CoFlatMapOperator(Repeat())).send("x")
    with pytest.raises(KeySelectorError):
        drive(KeyedCoMapOperator(LastOfOther(), lambda v: v, lambda v: v[9])).send2("x")


class OnlyOdd(CoMapFunction):
    def map1(self, value):
        return value if value % 2 else None

    def map2(self, value):
        return None


@pytest.mark.parametrize("keyed", [False, True])
def test_a_co_map_that_returns_none_emits_nothing(drive, keyed):
    def key(value):
        return value

    driver = drive(KeyedCoMapOperator(OnlyOdd(), key, key) if keyed else CoMapOperator(OnlyOdd()))
    driver.send(1, 2, 3, at=[10, 20, 30])
    driver.send2(1, 3, at=5)
    driver.send(2, 5)
    assert driver.output.take() == [(1, 10), (3, 30), (5, None)]
