import enum
import pickle
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Instant, Row, RowKind, Types
from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError
from penstock.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    ExternalTypeInfo,
    RowTypeInfo,
    SqlTimeTypeInfo,
    TypeInformation,
)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
PERSON = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())

# type, a value of it, how Flink prints the value, the type in Spark
CASES = [
    (Types.STRING(), "a", "a", "string"),
    (Types.CHAR(), "c", "c", "string"),
    (Types.BOOLEAN(), True, "true", "boolean"),
    (Types.BOOLEAN(), False, "false", "boolean"),
    (Types.BYTE(), -128, "-128", "tinyint"),
    (Types.SHORT(), 32767, "32767", "smallint"),
    (Types.INT(), -(2**31), "-2147483648", "int"),
    (Types.LONG(), 2**63 - 1, "9223372036854775807", "bigint"),
    (Types.BIG_INT(), 2**100, str(2**100), "decimal(38,0)"),
    (Types.BIG_DEC(), Decimal("1.50"), "1.50", "decimal(38,18)"),
    (Types.BIG_DEC(), Decimal("1E+10"), "1E+10", "decimal(38,18)"),
    (Types.FLOAT(), 0.5, "0.5", "float"),
    (Types.DOUBLE(), 1e10, "1.0E10", "double"),
    (Types.DOUBLE(), 3, "3.0", "double"),
    (Types.INSTANT(), Instant.of_epoch_milli(1), "1970-01-01T00:00:00.001Z", "timestamp"),
    (Types.SQL_DATE(), date(2020, 1, 2), "2020-01-02", "date"),
    (Types.SQL_TIME(), time(1, 2, 3), "01:02:03", "string"),
    (Types.SQL_TIMESTAMP(), datetime(2020, 1, 2, 3, 4, 5), "2020-01-02 03:04:05.0", "timestamp_ntz"),
    (Types.LOCAL_DATE(), date(2020, 1, 2), "2020-01-02", "date"),
    (Types.LOCAL_TIME(), time(1, 2), "01:02", "string"),
    (Types.LOCAL_DATE_TIME(), datetime(2020, 1, 2, 3, 4), "2020-01-02T03:04", "timestamp_ntz"),
    (Types.ENUM(Color), Color.RED, "RED", "string"),
    (Types.VOID(), None, "null", "void"),
    (Types.GENERIC(complex), 1j, "1j", "binary"),
    (Types.PICKLED_BYTE_ARRAY(), {"a": True}, "{'a': True}", "binary"),
    (Types.PICKLED_BYTE_ARRAY(), None, "None", "binary"),
    (PAIR, ("a", 1), "(a,1)", "struct<f0:string,f1:int>"),
    (PAIR, ("a", None), "(a,null)", "struct<f0:string,f1:int>"),
    (Types.ROW([Types.STRING(), Types.DOUBLE()]), Row("a", 1.0), "+I[a, 1.0]", "struct<f0:string,f1:double>"),
    (PERSON, Row(name="Alice", age=11), "+I[Alice, 11]", "struct<name:string,age:int>"),
    (PERSON, Row.of_kind(RowKind.DELETE, "Alice", 11), "-D[Alice, 11]", "struct<name:string,age:int>"),
    (Types.ROW_NAMED(["a b"], [PAIR]), Row(("x", 1)), "+I[(x,1)]", "struct<`a b`:struct<f0:string,f1:int>>"),
    (Types.LIST(Types.STRING()), ["a", None], "[a, null]", "array<string>"),
    (Types.BASIC_ARRAY(Types.BOOLEAN()), [True], "[true]", "array<boolean>"),
    (Types.OBJECT_ARRAY(PAIR), [("a", 1)], "[(a,1)]", "array<struct<f0:string,f1:int>>"),
    (Types.PRIMITIVE_ARRAY(Types.DOUBLE()), [1.0, 2.5], "[1.0, 2.5]", "array<double>"),
    (BYTES, b"a\xff", "[97, -1]", "binary"),
    (Types.SET(Types.INT()), {1}, "[1]", "array<int>"),
    (Types.MAP(Types.STRING(), Types.INT()), {"a": 1, "b": None}, "{a=1, b=null}", "map<string,int>"),
    (ExternalTypeInfo(Types.INT()), 1, "1", "int"),
]


@pytest.mark.parametrize(("type_info", "value", "text", "ddl"), CASES, ids=lambda case: repr(case)[:60])
def test_value_fits_prints_as_in_flink_and_has_a_spark_type(type_info, value, text, ddl):
    assert type_info.validate(value) is None
    assert type_info.format(value) == text
    assert type_info.to_ddl() == ddl


@pytest.mark.parametrize(("type_info", "value", "text", "ddl"), CASES, ids=lambda case: repr(case)[:60])
def test_internal_form_gives_the_value_back(type_info, value, text, ddl):
    back = type_info.from_internal_type(type_info.to_internal_type(value))
    assert type_info.format(back) == type_info.format(value) or isinstance(value, Row)
    if not isinstance(value, Row):
        assert back == value
    if not type_info.need_conversion():
        assert type_info.to_internal_type(value) is value


@pytest.mark.parametrize("type_info", {repr(case[0]): case[0] for case in CASES}.values(), ids=repr)
def test_types_are_values_none_fits_and_pickling_keeps_them(type_info):
    twin = pickle.loads(pickle.dumps(type_info))
    assert twin == type_info
    assert hash(twin) == hash(type_info)
    assert type_info != Types.LIST(type_info)
    assert type_info.validate(None) is None
    assert type_info.format(None) in ("null", "None")
    assert type_info.from_internal_type(type_info.to_internal_type(None)) is None
    with pytest.raises(UnsupportedFeatureError):
        type_info.get_java_type_info()


@pytest.mark.parametrize(
    ("type_info", "value", "reason"),
    [
        (Types.INT(), "x", "expected INT, got str 'x'"),
        (Types.INT(), True, "expected INT, got bool True"),
        (Types.INT(), 1.0, "expected INT, got float 1.0"),
        (Types.SHORT(), 43878, "43878 is out of the range of SHORT (-32768 to 32767)"),
        (Types.BYTE(), 128, "128 is out of the range of BYTE (-128 to 127)"),
        (Types.INT(), 2**31, "2147483648 is out of the range of INT (-2147483648 to 2147483647)"),
        (Types.LONG(), -(2**63) - 1, "-9223372036854775809 is out of the range of LONG"),
        (Types.STRING(), 1, "expected STRING, got int 1"),
        (Types.CHAR(), "ab", "expected CHAR (one character), got str 'ab'"),
        (Types.BOOLEAN(), 1, "expected BOOLEAN, got int 1"),
        (Types.DOUBLE(), "1.0", "expected DOUBLE, got str '1.0'"),
        (Types.DOUBLE(), False, "expected DOUBLE, got bool False"),
        (Types.BIG_INT(), 1.5, "expected BIG_INT, got float 1.5"),
        (Types.BIG_DEC(), 1.5, "expected BIG_DEC, got float 1.5"),
        (Types.INSTANT(), 5, "expected INSTANT, got int 5"),
        (Types.SQL_DATE(), datetime(2020, 1, 1), "expected SQL_DATE, got datetime"),
        (Types.SQL_TIME(), 5, "expected SQL_TIME, got int 5"),
        (Types.SQL_TIMESTAMP(), date(2020, 1, 1), "expected SQL_TIMESTAMP, got date"),
        (Types.LOCAL_DATE(), 5, "expected LOCAL_DATE, got int 5"),
        (Types.ENUM(Color), "RED", "expected Enum<Color>, got str 'RED'"),
        (Types.GENERIC(complex), "a", "expected complex, got str 'a'"),
        (Types.VOID(), 0, "expected VOID, got int 0"),
        (PAIR, ("a",), "expected a tuple of 2 fields, got tuple ('a',)"),
        (PAIR, ("a", "b"), "field 1: expected INT, got str 'b'"),
        (PAIR, "ab", "expected a tuple of 2 fields, got str 'ab'"),
        (PERSON, Row("Alice", "11"), "field 'age': expected INT, got str '11'"),
        (PERSON, Row("Alice"), "expected a row of 2 fields (name, age), got Row <Row('Alice')>"),
        (PERSON, {"nmae": "Alice"}, "expected a row of 2 fields (name, age), got dict {'nmae': 'Alice'}"),
        (Types.LIST(Types.INT()), [1, "2"], "element 1: expected INT, got str '2'"),
        (Types.LIST(Types.INT()), "12", "expected List<Integer>, got str '12'"),
        (Types.PRIMITIVE_ARRAY(Types.INT()), [None], "a primitive array cannot hold None"),
        (Types.SET(Types.INT()), [1], "expected Set<Integer>, got list [1]"),
        (Types.MAP(Types.STRING(), Types.INT()), {1: 1}, "key: expected STRING, got int 1"),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": "b"}, "value of key 'a': expected INT, got str 'b'"),
        (Types.MAP(Types.STRING(), Types.INT()), [("a", 1)], "expected Map<String, Integer>, got list"),
    ],
)
def test_wrong_values_are_refused_with_a_reason(type_info, value, reason):
    assert type_info.validate(value).startswith(reason)


@pytest.mark.parametrize(
    "value", [("Alice", 11), ["Alice", 11], {"age": 11, "name": "Alice"}, Row(name="Alice", age=11)]
)
def test_a_row_type_takes_rows_tuples_lists_and_dicts(value):
    assert PERSON.validate(value) is None
    assert PERSON.format(value) == "+I[Alice, 11]"
    assert PERSON.to_internal_type(value) == ("Alice", 11)


def test_values_read_from_spark_become_named_rows():
    assert PERSON.from_internal_type(("Alice", 11)) == Row(name="Alice", age=11)
    assert PERSON.from_internal_type({"name": "Alice", "age": 11}) == Row(name="Alice", age=11)
    assert PAIR.from_internal_type({"f0": "a", "f1": 1}) == ("a", 1)
    assert Types.MAP(Types.STRING(), Types.INT()).from_internal_type([("a", 1)]) == {"a": 1}


def test_internal_forms_are_what_spark_takes():
    assert Types.INSTANT().to_internal_type(Instant(0)) == datetime(1970, 1, 1, tzinfo=UTC)
    assert Types.DOUBLE().to_internal_type(1).hex() == (1.0).hex()
    assert Types.BIG_INT().to_internal_type(5) == Decimal(5)
    assert Types.ENUM(Color).to_internal_type(Color.BLUE) == "BLUE"
    assert BYTES.to_internal_type([97, -1]) == b"a\xff"


def test_first_mismatch_names_the_position():
    assert Types.INT().first_mismatch([1, 2, "x"]) == (2, "expected INT, got str 'x'")
    assert Types.INT().first_mismatch([1, 2]) is None


def test_row_types_know_their_fields():
    assert PERSON.get_field_names() == ["name", "age"]
    assert PERSON.get_field_types() == [Types.STRING(), Types.INT()]
    assert PERSON.get_field_index("age") == 1
    assert PERSON.get_field_index("size") == -1
    assert Types.ROW([Types.INT()]).get_field_names() == ["f0"]
    assert PAIR.get_field_types() == [Types.STRING(), Types.INT()]


@pytest.mark.parametrize(
    ("names", "types"),
    [
        (["a"], [Types.INT(), Types.INT()]),
        (["a", "a"], [Types.INT(), Types.INT()]),
        (["a"], [int]),
        (["a"], [Types.INT]),
    ],
)
def test_wrong_row_types_are_refused(names, types):
    with pytest.raises(InvalidProgramError):
        RowTypeInfo(types, names)


def test_types_of_different_kind_or_parts_differ():
    assert Types.INT() != Types.LONG()
    assert Types.LIST(Types.INT()) != Types.BASIC_ARRAY(Types.INT())
    assert Types.ROW([Types.INT()]) != Types.TUPLE([Types.INT()])
    assert Types.ROW_NAMED(["a"], [Types.INT()]) != Types.ROW([Types.INT()])
    assert BasicTypeInfo(BasicType.INT) == Types.INT()
    assert SqlTimeTypeInfo.DATE() == Types.SQL_DATE()
    assert isinstance(Types.INT(), TypeInformation)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (100.0, "100.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (1e10, "1.0E10"),
        (-1.5e300, "-1.5E300"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (0.0001234, "1.234E-4"),
        (1e-5, "1.0E-5"),
        (5e-324, "4.9E-324"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (1e16, "1.0E16"),
        (123456789012345680.0, "1.2345678901234568E17"),
        (20.333333333333332, "20.333333333333332"),
    ],
)
def test_doubles_print_as_in_java(value, text):
    assert Types.DOUBLE().format(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (1 / 3, "0.33333334"), (1e10, "1.0E10"), (1e39, "Infinity"), (3, "3.0"), (1e-45, "1.4E-45")],
)
def test_floats_print_as_in_java(value, text):
    assert Types.FLOAT().format(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_printed_doubles_read_back(value):
    text = Types.DOUBLE().format(value)
    assert float(text.replace("E", "e")) == value
    assert "." in text


@given(st.integers())
def test_integers_fit_exactly_their_range(value):
    for bits, type_info in ((8, Types.BYTE()), (16, Types.SHORT()), (32, Types.INT()), (64, Types.LONG())):
        assert (type_info.validate(value) is None) == (-(2 ** (bits - 1)) <= value < 2 ** (bits - 1))


def test_the_type_of_pickled_objects_prints_as_in_pyflink():
    assert str(Types.PICKLED_BYTE_ARRAY()) == "PickledByteArrayTypeInfo"
