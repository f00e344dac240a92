from typing import NamedTuple

import pytest

from penstock.common.errors import TypeMismatchError
from penstock.common.typeinfo import Types
from penstock.common.types import Row, RowKind
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
        (Types.TUPLE([Types.STRING(), Types.INT()]), [("a", 1), ("a", None)], ("a", "b")),
        (Types.ROW([Types.STRING(), Types.INT()]), [Row(f0="a", f1=1), Row(k="a", n=1)], Row("a")),
        (Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.INT()]), [Row(k="a", n=1), None], 5),
        (Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.INT()]), [], Row(k="a", m=1)),
        (Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.INT()]), [], Row(n="a", k=1)),
        (Types.LIST(Types.INT()), [[1, 2]], [1, "a"]),
        (Types.TUPLE([Types.ROW([Types.INT()])]), [(Row(f0=1),)], (Row("x"),)),
    ],
)
def test_records_that_fit_pass_and_others_are_named(drive, output_type, good, bad):
    assert emit_through(drive, output_type, good) == good
    with pytest.raises(TypeMismatchError, match=r"declared output type.*my operator"):
        emit_through(drive, output_type, [*good, bad])


class Reading(NamedTuple):
    sensor: str
    degrees: float


def test_a_named_tuple_stays_one(drive):
    (emitted,) = emit_through(drive, Types.TUPLE([Types.STRING(), Types.DOUBLE()]), [Reading("a", 20)])
    assert emitted.sensor == "a"
    assert type(emitted.degrees) is float


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


@pytest.mark.parametrize(
    ("output_type", "given", "expected"),
    [
        (Types.DOUBLE(), 2, 2.0),
        (Types.FLOAT(), None, None),
        (Types.TUPLE([Types.STRING(), Types.DOUBLE()]), ["a", 1], ("a", 1.0)),
        (Types.TUPLE([Types.STRING(), Types.DOUBLE()]), ("a", 1), ("a", 1.0)),
        (Types.TUPLE([Types.STRING(), Types.INT()]), ["a", 1], ("a", 1)),
        (Types.LIST(Types.DOUBLE()), [1, None, 2.5], [1.0, None, 2.5]),
        (Types.MAP(Types.STRING(), Types.DOUBLE()), {"a": 1}, {"a": 1.0}),
        (Types.ROW_NAMED(["k", "x"], [Types.STRING(), Types.DOUBLE()]), Row(x=1, k="a"), Row(k="a", x=1.0)),
        (Types.TUPLE([Types.TUPLE([Types.DOUBLE()])]), ((1,),), ((1.0,),)),
    ],
)
def test_records_have_the_form_of_their_type_as_behind_its_serializer(drive, output_type, given, expected):
    (record,) = emit_through(drive, output_type, [given])
    assert repr(record) == repr(expected)  # 1 == 1.0


PAIR = Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.INT()])


@pytest.mark.parametrize("given", [Row("a", 1), ("a", 1), ["a", 1], {"n": 1, "k": "a"}, Row(n=1, k="a")])
def test_rows_get_the_names_of_the_declared_type(drive, given):
    (record,) = emit_through(drive, PAIR, [given])
    assert record == Row(k="a", n=1)
    assert (record.n, record.as_dict()) == (1, {"k": "a", "n": 1})


@pytest.mark.parametrize(
    ("output_type", "given", "expected"),
    [
        (Types.ROW([Types.INT()]), Row(1), Row(f0=1)),
        (Types.ROW_NAMED(["pair"], [PAIR]), Row(Row("a", 1)), Row(pair=Row(k="a", n=1))),
        (Types.LIST(PAIR), [Row("a", 1)], [Row(k="a", n=1)]),
        (Types.MAP(Types.STRING(), PAIR), {"x": Row("a", 1)}, {"x": Row(k="a", n=1)}),
        (Types.TUPLE([Types.INT(), PAIR]), (5, Row("a", 1)), (5, Row(k="a", n=1))),
        (Types.ROW_NAMED(["pair"], [PAIR]), Row(None), Row(pair=None)),
    ],
)
def test_rows_inside_records_get_their_names_too(drive, output_type, given, expected):
    assert emit_through(drive, output_type, [given]) == [expected]


def test_the_kind_of_a_change_stays_when_a_row_is_named(drive):
    (record,) = emit_through(drive, PAIR, [Row.of_kind(RowKind.DELETE, "a", 1)])
    assert (record.get_row_kind(), record.k) == (RowKind.DELETE, "a")


def test_rows_without_names_get_those_of_their_type_and_others_keep_theirs(drive):
    kind = Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.LONG()])
    emitted = emit_through(drive, kind, [Row("a", 1), Row(n=2, k="b"), ("c", 3), Row("d", None)])
    assert emitted == [Row(k="a", n=1), Row(k="b", n=2), Row(k="c", n=3), Row(k="d", n=None)]
    plain = [Row("a", 1), Row("b", 2)]
    assert emit_through(drive, kind, plain) == [Row(k="a", n=1), Row(k="b", n=2)]


@pytest.mark.parametrize("bad", [Row("a", 2**70), Row("a", True), Row(1, 1), Row("a"), Row("a", 1, 2)])
def test_a_plain_row_that_does_not_fit_is_refused(drive, bad):
    kind = Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.LONG()])
    with pytest.raises(TypeMismatchError, match="declared output type"):
        emit_through(drive, kind, [Row("a", 1), bad])
