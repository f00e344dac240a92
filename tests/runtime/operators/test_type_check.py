import pytest

from penstock.common.errors import TypeMismatchError
from penstock.common.typeinfo import Types
from penstock.common.types import Row
from penstock.runtime.operators.stateless import MapOperator
from penstock.runtime.operators.type_check import checked_output, compile_predicate, declare_output_type


def emit_through(drive, output_type, values):
    operator = MapOperator(lambda value: value)
    declare_output_type(operator, output_type)
    driver = drive(operator)
    operator.output = checked_output(driver.output, operator, driver.context)
    return driver.send(*values)


@pytest.mark.parametrize(
    ("output_type", "good", "bad"),
    [
        (Types.INT(), [1, None, -(2**31)], 2**31),
        (Types.LONG(), [2**40], 2**70),
        (Types.STRING(), ["a", None], 1),
        (Types.BOOLEAN(), [True], 1),
        (Types.DOUBLE(), [1.5, 2], "1.5"),
        (Types.TUPLE([Types.STRING(), Types.INT()]), [("a", 1), ["a", 1], ("a", None)], ("a", "b")),
        (Types.ROW([Types.STRING(), Types.INT()]), [Row("a", 1), ("a", 1)], Row("a")),
        (Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.INT()]), [Row(k="a", n=1), {"k": "a", "n": 1}], 5),
        (Types.LIST(Types.INT()), [[1, 2]], [1, "a"]),
        (Types.TUPLE([Types.ROW([Types.INT()])]), [(Row(1),)], (Row("x"),)),
    ],
)
def test_records_that_fit_pass_and_others_are_named(drive, output_type, good, bad):
    assert emit_through(drive, output_type, good) == good
    with pytest.raises(TypeMismatchError, match=r"declared output type.*my operator"):
        emit_through(drive, output_type, [*good, bad])


def test_nothing_is_checked_unless_a_type_was_declared(drive):
    driver = drive(MapOperator(lambda value: value))
    assert checked_output(driver.output, driver.operator, driver.context) is driver.output
    declare_output_type(driver.operator, Types.PICKLED_BYTE_ARRAY())
    assert checked_output(driver.output, driver.operator, driver.context) is driver.output


def test_the_quick_predicate_never_accepts_what_validate_refuses():
    values = [0, 1, -1, 2**31, 2**63, True, None, "a", 1.0, (1,), ("a", 1), Row("a", 1), [1], b"x"]
    types = [Types.INT(), Types.SHORT(), Types.BYTE(), Types.LONG(), Types.STRING(), Types.FLOAT(), Types.BIG_INT()]
    types += [Types.TUPLE([Types.STRING(), Types.INT()]), Types.ROW([Types.STRING(), Types.INT()])]
    for kind in types:
        accepts = compile_predicate(kind)
        assert [v for v in values if accepts(v) and kind.validate(v) is not None] == []
