import pytest

from penstock.common.errors import KeySelectorError, StateAccessError, UserFunctionError
from penstock.core.functions import FilterFunction, FlatMapFunction, MapFunction
from penstock.core.output_tag import OutputTag
from penstock.core.state import ValueStateDescriptor
from penstock.runtime.operators.keyed_stateless import KeyedFilterOperator, KeyedFlatMapOperator, KeyedMapOperator


def first(value):
    return value[0]


class Counting:
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def increment(self):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        return count


class CountMap(Counting, MapFunction):
    def map(self, value):
        return value[0], self.increment()


class FirstOnly(Counting, FilterFunction):
    def filter(self, value):
        return self.increment() == 1


class Repeat(Counting, FlatMapFunction):
    def flat_map(self, value):
        count = self.increment()  # in a generator: the key must still be in scope when it is drawn
        for _ in range(count):
            yield value
        if count == 2:
            yield OutputTag("second"), value


def test_map_on_a_keyed_stream_has_state_per_key(drive):
    driver = drive(KeyedMapOperator(CountMap(), first))
    driver.send("a1", "b1", "a2", at=[1, 2, 3])
    assert driver.output.take() == [(("a", 1), 1), (("b", 1), 2), (("a", 2), 3)]


def test_filter_on_a_keyed_stream_has_state_per_key(drive):
    driver = drive(KeyedFilterOperator(FirstOnly(), first))
    driver.send("a1", "b1", "a2", at=[1, 2, 3])
    driver.send("b2", "c1")
    assert driver.output.take() == [("a1", 1), ("b1", 2), ("c1", None)]


def test_flat_map_on_a_keyed_stream_has_state_per_key(drive):
    driver = drive(KeyedFlatMapOperator(Repeat(), first), sides=["second"])
    driver.send("a1", "b1", "a2", at=[1, 2, 3])
    assert driver.output.take() == [("a1", 1), ("b1", 2), ("a2", 3), ("a2", 3)]
    assert driver.sides["second"].take() == [("a2", 3)]


def test_state_survives_a_restore(drive):
    driver = drive(KeyedMapOperator(CountMap(), first))
    driver.send("a", "a", "b")
    assert driver.restored(KeyedMapOperator(CountMap(), first)).send("a", "b", "c") == [("a", 3), ("b", 2), ("c", 1)]


def test_no_key_is_in_scope_outside_a_record(drive):
    driver = drive(KeyedMapOperator(CountMap(), first))
    driver.send("a")
    with pytest.raises(StateAccessError, match="my operator"):
        driver.operator.function.count.value()


def test_a_failing_key_selector_is_named_as_such(drive):
    with pytest.raises(KeySelectorError, match=r"my operator.*''"):
        drive(KeyedMapOperator(CountMap(), first)).send("a", "")


def test_a_key_that_cannot_be_hashed_is_named_as_such(drive):
    with pytest.raises(KeySelectorError, match="return a hashable value"):
        drive(KeyedFlatMapOperator(Repeat(), lambda value: [value])).send("a")


def test_a_failing_function_is_not_blamed_on_the_key_selector(drive):
    class Fails(MapFunction):
        def map(self, value):
            raise ValueError("bad")

    with pytest.raises(UserFunctionError, match="method map"):
        drive(KeyedMapOperator(Fails(), first)).send("a")
