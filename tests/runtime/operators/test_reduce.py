from dataclasses import dataclass
from typing import NamedTuple

import pytest

from penstock.common.errors import InvalidProgramError, KeySelectorError, UserFunctionError
from penstock.common.types import Row
from penstock.common.watermark import MAX_WATERMARK
from penstock.core.functions import ReduceFunction
from penstock.runtime.operators.reduce import ReduceOperator
from penstock.runtime.operators.rolling import RollingMax, RollingMaxBy, RollingMin, RollingMinBy, RollingSum


@dataclass(frozen=True)
class Reading:
    sensor: str
    value: float


class Point(NamedTuple):
    key: str
    x: int
    y: int


def first(value):
    return value[0]


def test_reduce_emits_the_first_element_unchanged_and_an_update_per_record(drive):
    driver = drive(ReduceOperator(lambda a, b: (a[0], a[1] + b[1]), first))
    driver.send(("a", 1), ("b", 5), ("a", 2), at=[1, 2, 3])
    assert driver.output.take() == [(("a", 1), 1), (("b", 5), 2), (("a", 3), 3)]


def test_reduce_gets_the_current_value_first_and_the_new_one_second(drive):
    driver = drive(ReduceOperator(lambda current, new: current + new, lambda value: len(value) > 0))
    assert driver.send("a", "b", "c") == ["a", "ab", "abc"]


def test_reduce_function_objects_are_opened(drive):
    class Add(ReduceFunction):
        def open(self, runtime_context):
            self.opened = True

        def reduce(self, value1, value2):
            assert self.opened
            return value1 + value2

    assert drive(ReduceOperator(Add(), lambda value: 0)).send(1, 2, 3) == [1, 3, 6]


def test_reduce_that_works_in_place_does_not_change_what_was_emitted(drive):
    def add_in_place(current, new):
        current[1] += new[1]
        return current

    driver = drive(ReduceOperator(add_in_place, first))
    assert driver.send(Row("a", 1), Row("a", 2), Row("a", 3)) == [Row("a", 1), Row("a", 3), Row("a", 6)]


def test_changing_an_emitted_record_does_not_change_the_state(drive):
    driver = drive(ReduceOperator(RollingMax(1), first))
    (emitted,) = driver.send(["a", 5])
    emitted[1] = 1000
    assert driver.send(["a", 3])[-1] == ["a", 5]


def test_reduced_values_survive_a_restore(drive):
    driver = drive(ReduceOperator(RollingSum(1), first))
    driver.send(("a", 1), ("b", 2))
    assert driver.restored(ReduceOperator(RollingSum(1), first)).send(("a", 10)) == [("a", 11)]


def test_batch_execution_emits_only_the_final_value_of_each_key_before_the_last_watermark(drive):
    driver = drive(ReduceOperator(RollingSum(1), first), batch=True)
    driver.send(("a", 1), ("b", 5), ("a", 2), at=[1, 2, 3])
    assert driver.output.take() == []
    driver.watermark(MAX_WATERMARK)
    driver.operator.end_input()
    *records, watermark = driver.output.take()
    assert sorted(records) == [(("a", 3), MAX_WATERMARK), (("b", 5), MAX_WATERMARK)]
    assert watermark == MAX_WATERMARK


def test_errors_name_the_method_or_the_key_selector(drive):
    with pytest.raises(UserFunctionError, match="method reduce"):
        drive(ReduceOperator(lambda a, b: a / b, lambda value: 0)).send(1, 0)
    with pytest.raises(KeySelectorError):
        drive(ReduceOperator(lambda a, b: a, lambda value: value["x"])).send(1)


def test_sum_min_max_change_only_their_field_the_rest_stays_from_the_first_record():
    assert RollingSum(1)(("first", 1, "x"), ("second", 2, "y")) == ("first", 3, "x")
    assert RollingMin(1)(("first", 5), ("second", 2)) == ("first", 2)
    assert RollingMax(1)(("first", 5), ("second", 9)) == ("first", 9)
    assert RollingMax(1)(("first", 5), ("second", 2)) == ("first", 5)


def test_min_by_and_max_by_give_the_whole_record_and_the_first_one_on_ties():
    assert RollingMinBy(1)(("first", 5), ("second", 2)) == ("second", 2)
    assert RollingMinBy(1)(("first", 5), ("second", 5)) == ("first", 5)
    assert RollingMaxBy(1)(("first", 5), ("second", 9)) == ("second", 9)
    assert RollingMaxBy(1)(("first", 5), ("second", 5)) == ("first", 5)
    assert RollingMaxBy(1, first=False)(("first", 5), ("second", 5)) == ("second", 5)


@pytest.mark.parametrize(
    ("field", "one", "two", "total"),
    [
        (1, ["a", 1], ["b", 2], ["a", 3]),
        (1, Row("a", 1), Row("b", 2), Row("a", 3)),
        ("n", Row(k="a", n=1), Row(k="b", n=2), Row(k="a", n=3)),
        ("f1", Row("a", 1), Row("b", 2), Row("a", 3)),
        ("value", Reading("a", 1.5), Reading("b", 2.0), Reading("a", 3.5)),
        (1, Reading("a", 1.5), Reading("b", 2.0), Reading("a", 3.5)),
        ("y", Point("a", 1, 2), Point("b", 3, 4), Point("a", 1, 6)),
        (2, Point("a", 1, 2), Point("b", 3, 4), Point("a", 1, 6)),
        ("n", {"k": "a", "n": 1}, {"k": "b", "n": 2}, {"k": "a", "n": 3}),
        ("f1", ("a", 1), ("b", 2), ("a", 3)),
        ("_2", ("a", 1), ("b", 2), ("a", 3)),
        ("1", ("a", 1), ("b", 2), ("a", 3)),
        ("in.n", {"in": Row(n=1)}, {"in": Row(n=2)}, {"in": Row(n=3)}),
        (0, 1, 2, 3),
        (0, 1.5, 2, 3.5),
    ],
)
def test_sum_works_on_every_kind_of_record_by_position_or_name(field, one, two, total):
    result = RollingSum(field)(one, two)
    assert result == total
    assert type(result) is type(total)


def test_a_sum_of_rows_keeps_field_names_and_leaves_the_input_alone():
    one = Row(k="a", n=1)
    result = RollingSum("n")(one, Row(k="b", n=2))
    assert result.as_dict() == {"k": "a", "n": 3}
    assert one.n == 1


def test_a_field_that_is_not_there_is_named(drive):
    with pytest.raises(UserFunctionError, match=r"no field 'nope'"):
        drive(ReduceOperator(RollingSum("nope"), lambda value: 0)).send(("a", 1), ("a", 2))
    with pytest.raises(UserFunctionError, match="reduce"):
        drive(ReduceOperator(RollingSum(7), lambda value: 0)).send(("a", 1), ("a", 2))


@pytest.mark.parametrize("field", [-1, 1.5, None, "a..b", "_.a", True])
def test_impossible_field_expressions_are_refused(field):
    with pytest.raises(InvalidProgramError):
        RollingSum(field)
