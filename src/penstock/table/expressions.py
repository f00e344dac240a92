"""The start of expressions: `col`, `lit` and functions without an operand, under PyFlink's names."""

from __future__ import annotations

from typing import Any

from penstock.core.table.types import DataType
from penstock.table.expression import Expression, JsonOnNull, TimePointUnit, node_of
from penstock.table.expression import call as _call
from penstock.table.plan import ast

__all__ = [
    "CURRENT_RANGE",
    "CURRENT_ROW",
    "UNBOUNDED_RANGE",
    "UNBOUNDED_ROW",
    "and_",
    "array",
    "atan2",
    "call",
    "call_sql",
    "col",
    "concat",
    "concat_ws",
    "convert_tz",
    "current_database",
    "current_date",
    "current_time",
    "current_timestamp",
    "current_watermark",
    "date_format",
    "descriptor",
    "e",
    "from_unixtime",
    "if_then_else",
    "json",
    "json_array",
    "json_array_agg",
    "json_object",
    "json_object_agg",
    "json_string",
    "lit",
    "local_time",
    "local_timestamp",
    "log",
    "map_",
    "negative",
    "not_",
    "null_of",
    "or_",
    "pi",
    "rand",
    "rand_integer",
    "range_",
    "row",
    "row_interval",
    "source_watermark",
    "temporal_overlaps",
    "timestamp_diff",
    "to_date",
    "to_timestamp",
    "to_timestamp_ltz",
    "unix_timestamp",
    "uuid",
    "with_columns",
    "without_columns",
]

UNBOUNDED_ROW: Expression[Any] = Expression(ast.FunctionCall("$UNBOUNDED_ROW"))
UNBOUNDED_RANGE: Expression[Any] = Expression(ast.FunctionCall("$UNBOUNDED_RANGE"))
CURRENT_ROW: Expression[Any] = Expression(ast.FunctionCall("$CURRENT_ROW"))
CURRENT_RANGE: Expression[Any] = Expression(ast.FunctionCall("$CURRENT_RANGE"))


def col(name: str) -> Expression[Any]:
    """Refer to a column."""
    return Expression(ast.Star()) if name == "*" else Expression(ast.Ref((name,)))


def lit(v: Any, data_type: DataType | None = None) -> Expression[Any]:
    """Create a constant."""
    return Expression(ast.Literal(v, data_type))


def null_of(data_type: DataType) -> Expression[Any]:
    """Create a NULL of a type."""
    return Expression(ast.Literal(None, data_type))


def call(f: Any, *args: Any) -> Expression[Any]:
    """Call a function by its name, or a user-defined function."""
    arguments = tuple(map(node_of, args))
    return Expression(ast.FunctionCall(f, arguments) if isinstance(f, str) else ast.UserFunctionCall(f, arguments))


def call_sql(sql_expression: str) -> Expression[Any]:
    """Parse an expression in SQL."""
    from penstock.table.sql.parser import parse_expression

    return Expression(parse_expression(sql_expression))


def if_then_else(condition: Any, if_true: Any, if_false: Any) -> Expression[Any]:
    """Return one of two values, depending on a condition."""
    return _call("IF", condition, if_true, if_false)


def and_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression[bool]:
    """Return TRUE if all predicates are TRUE."""
    return _call("AND", predicate0, predicate1, *predicates)


def or_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression[bool]:
    """Return TRUE if at least one predicate is TRUE."""
    return _call("OR", predicate0, predicate1, *predicates)


def not_(expression: Any) -> Expression[bool]:
    """Negate a predicate."""
    return _call("NOT", expression)


def range_(start: str | int, end: str | int) -> Expression[Any]:
    """Refer to a range of columns, for `with_columns` and `without_columns`."""
    return _call("$RANGE", start, end)


def with_columns(head: Any, *tails: Any) -> Expression[Any]:
    """Select some columns."""
    return _call("$WITH_COLUMNS", head, *tails)


def without_columns(head: Any, *tails: Any) -> Expression[Any]:
    """Select all columns except some."""
    return _call("$WITHOUT_COLUMNS", head, *tails)


def descriptor(*column_names: str) -> Expression[Any]:
    """Pass column names as an argument of a function."""
    return Expression(ast.FunctionCall("$DESCRIPTOR", tuple(ast.Literal(name) for name in column_names)))


def current_database() -> Expression[str]:
    """Return the current database."""
    return _call("CURRENT_DATABASE")


def current_date() -> Expression[Any]:
    """Return the current date in the session's time zone."""
    return _call("CURRENT_DATE")


def current_time() -> Expression[Any]:
    """Return the current time of day in the session's time zone."""
    return _call("CURRENT_TIME")


def current_timestamp() -> Expression[Any]:
    """Return the current time as a point in time."""
    return _call("CURRENT_TIMESTAMP")


def current_watermark(rowtimeAttribute: Any) -> Expression[Any]:  # noqa: N803 - PyFlink's name
    """Return the watermark before the row, or NULL before the first watermark."""
    return _call("CURRENT_WATERMARK", rowtimeAttribute)


def local_time() -> Expression[Any]:
    """Return the current time of day in the session's time zone."""
    return _call("LOCALTIME")


def local_timestamp() -> Expression[Any]:
    """Return the current local date and time in the session's time zone."""
    return _call("LOCALTIMESTAMP")


def source_watermark() -> Expression[Any]:
    """Use the watermarks of the stream itself."""
    return _call("SOURCE_WATERMARK")


def temporal_overlaps(
    left_time_point: Any, left_temporal: Any, right_time_point: Any, right_temporal: Any
) -> Expression[bool]:
    """Whether two time intervals overlap."""
    return _call("OVERLAPS", left_time_point, left_temporal, right_time_point, right_temporal)


def date_format(timestamp: Any, format: Any) -> Expression[str]:  # noqa: A002 - PyFlink's name
    """Format a time with a pattern."""
    return _call("DATE_FORMAT", timestamp, format)


def timestamp_diff(time_point_unit: TimePointUnit, time_point1: Any, time_point2: Any) -> Expression[int]:
    """Return the number of units between two times."""
    return _call("TIMESTAMPDIFF", time_point1, time_point2, options=(time_point_unit.name,))


def array(head: Any, *tail: Any) -> Expression[Any]:
    """Create an array."""
    return _call("ARRAY", head, *tail)


def row(head: Any, *tail: Any) -> Expression[Any]:
    """Create a row."""
    return _call("ROW", head, *tail)


def map_(key: Any, value: Any, *tail: Any) -> Expression[Any]:
    """Create a map from alternating keys and values."""
    return _call("MAP", key, value, *tail)


def row_interval(rows: int) -> Expression[Any]:
    """Create an interval of rows, for windows."""
    return Expression(ast.FunctionCall("$ROWS", (ast.Literal(rows),)))


def pi() -> Expression[float]:
    """Return pi."""
    return _call("PI")


def e() -> Expression[float]:
    """Return the base of natural logarithms."""
    return _call("E")


def rand(seed: Any = None) -> Expression[float]:
    """Return a random number from 0 to 1."""
    return _call("RAND") if seed is None else _call("RAND", seed)


def rand_integer(bound: Any, seed: Any = None) -> Expression[int]:
    """Return a random integer below a bound."""
    return _call("RAND_INTEGER", bound) if seed is None else _call("RAND_INTEGER", seed, bound)


def atan2(y: Any, x: Any) -> Expression[float]:
    """Return the angle of a point."""
    return _call("ATAN2", y, x)


def negative(v: Any) -> Expression[Any]:
    """Negate a number."""
    return _call("NEGATE", v)


def concat(first: Any, *others: Any) -> Expression[str]:
    """Concatenate texts."""
    return _call("CONCAT", first, *others)


def concat_ws(separator: Any, first: Any, *others: Any) -> Expression[str]:
    """Concatenate texts with a separator."""
    return _call("CONCAT_WS", separator, first, *others)


def uuid() -> Expression[str]:
    """Return a random UUID."""
    return _call("UUID")


def log(v: Any, base: Any = None) -> Expression[float]:
    """Return the logarithm. The default base is e."""
    return _call("LN", v) if base is None else _call("LOG", base, v)


def json(value: Any) -> Expression[Any]:
    """Mark text as JSON, inside another JSON function."""
    return _call("JSON", value)


def json_string(value: Any) -> Expression[str]:
    """Convert a value to JSON."""
    return _call("JSON_STRING", value)


def json_object(on_null: JsonOnNull = JsonOnNull.NULL, *args: Any) -> Expression[str]:
    """Create a JSON object from alternating keys and values."""
    return _call("JSON_OBJECT", *args, options=(on_null.name,))


def json_object_agg(on_null: JsonOnNull, key_expr: Any, value_expr: Any) -> Expression[str]:
    """Create a JSON object from all rows."""
    return _call("JSON_OBJECTAGG", key_expr, value_expr, options=(on_null.name,))


def json_array(on_null: JsonOnNull = JsonOnNull.ABSENT, *args: Any) -> Expression[str]:
    """Create a JSON array."""
    return _call("JSON_ARRAY", *args, options=(on_null.name,))


def json_array_agg(on_null: JsonOnNull, item_expr: Any) -> Expression[str]:
    """Create a JSON array from all rows."""
    return _call("JSON_ARRAYAGG", item_expr, options=(on_null.name,))


def to_timestamp_ltz(*args: Any) -> Expression[Any]:
    """Convert a number or text to a point in time."""
    return _call("TO_TIMESTAMP_LTZ", *args)


def from_unixtime(unixtime: Any, format: Any = None) -> Expression[str]:  # noqa: A002 - PyFlink's name
    """Convert seconds since the epoch to text."""
    return _call("FROM_UNIXTIME", unixtime) if format is None else _call("FROM_UNIXTIME", unixtime, format)


def to_date(date_str: Any, format: Any = None) -> Expression[Any]:  # noqa: A002 - PyFlink's name
    """Convert text to a date."""
    return _call("TO_DATE", date_str) if format is None else _call("TO_DATE", date_str, format)


def to_timestamp(timestamp_str: Any, format: Any = None) -> Expression[Any]:  # noqa: A002 - PyFlink's name
    """Convert text to a timestamp."""
    return _call("TO_TIMESTAMP", timestamp_str) if format is None else _call("TO_TIMESTAMP", timestamp_str, format)


def convert_tz(date_str: Any, tz_from: Any, tz_to: Any) -> Expression[str]:
    """Convert a time to another time zone."""
    return _call("CONVERT_TZ", date_str, tz_from, tz_to)


def unix_timestamp(date_str: Any = None, format: Any = None) -> Expression[int]:  # noqa: A002 - PyFlink's name
    """Return the seconds since the epoch."""
    arguments = [one for one in (date_str, format) if one is not None]
    return _call("UNIX_TIMESTAMP", *arguments)
