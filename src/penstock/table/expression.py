"""Expressions of the Table API, under PyFlink's names: `col("a") + 1`, `col("name").upper_case`.

An expression is unresolved: names and types are looked up when a table uses it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from penstock.core.table.types import DataType, DayTimeIntervalType, VarCharType, YearMonthIntervalType
from penstock.table.expression_options import (
    JsonExistsOnError,
    JsonOnNull,
    JsonQueryOnEmptyOrError,
    JsonQueryWrapper,
    JsonType,
    JsonValueOnEmptyOrError,
    TimeIntervalUnit,
    TimePointUnit,
)
from penstock.table.plan import ast

__all__ = [
    "Expression",
    "JsonExistsOnError",
    "JsonOnNull",
    "JsonQueryOnEmptyOrError",
    "JsonQueryWrapper",
    "JsonType",
    "JsonValueOnEmptyOrError",
    "TimeIntervalUnit",
    "TimePointUnit",
]

T = TypeVar("T")


def node_of(value: Any) -> ast.Node:
    """Return the unresolved node of an expression or a Python value."""
    return value.node if isinstance(value, Expression) else ast.Literal(value)


def call(name: str, *arguments: Any, options: tuple[Any, ...] = ()) -> Expression[Any]:
    """Call a built-in function."""
    return Expression(ast.FunctionCall(name, tuple(map(node_of, arguments)), options=options))


def _property(name: str) -> Any:
    def get(self: Expression[Any]) -> Expression[Any]:
        return call(name, self)

    get.__doc__ = f"{name}(x)."
    return property(get)


def _method(name: str) -> Any:
    def apply(self: Expression[Any], *arguments: Any) -> Expression[Any]:
        return call(name, self, *(argument for argument in arguments if argument is not None))

    apply.__doc__ = f"{name}(x, ...)."
    return apply


def _part(unit: str) -> Any:
    """Return the property for a unit: of a number it is an interval, otherwise a part of a time."""

    def get(self: Expression[Any]) -> Expression[Any]:
        if isinstance(self.node, ast.Literal) and isinstance(self.node.value, (int, float)):
            return _interval(self.node.value, unit)
        return Expression(ast.FunctionCall("EXTRACT", (self.node,), options=(unit,)))

    get.__doc__ = f"The {unit.lower()}."
    return property(get)


def _length(unit: str) -> Any:
    def get(self: Expression[Any]) -> Expression[Any]:
        if not isinstance(self.node, ast.Literal):
            raise TypeError(f"an interval of {unit.lower()}s needs a number: lit(5).{unit.lower()}s")
        return _interval(self.node.value, unit)

    get.__doc__ = f"That many {unit.lower()}s."
    return property(get)


_UNITS = {
    "WEEK": dt.timedelta(weeks=1),
    "DAY": dt.timedelta(days=1),
    "HOUR": dt.timedelta(hours=1),
    "MINUTE": dt.timedelta(minutes=1),
    "SECOND": dt.timedelta(seconds=1),
    "MILLI": dt.timedelta(milliseconds=1),
}
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}


def _interval(number: Any, unit: str) -> Expression[Any]:
    if unit in _MONTHS:
        return Expression(ast.Literal(number * _MONTHS[unit], YearMonthIntervalType(_nullable=False)))
    return Expression(ast.Literal(number * _UNITS[unit], DayTimeIntervalType(_nullable=False)))


def _reflected(name: str) -> Callable[[Any, Any], Any]:
    def apply(self: Expression[Any], other: Any) -> Expression[Any]:
        return call(name, other, self)

    return apply


def _binary(name: str) -> Callable[[Any, Any], Any]:
    def apply(self: Expression[Any], other: Any) -> Expression[Any]:
        return call(name, self, other)

    return apply


class Expression(Generic[T]):
    """A computation for a row, or for a group of rows."""

    __slots__ = ("node",)

    def __init__(self, node: ast.Node) -> None:
        self.node = node

    # Operators

    __add__, __radd__ = _binary("$PLUS"), _reflected("$PLUS")
    __sub__, __rsub__ = _binary("-"), _reflected("-")
    __mul__, __rmul__ = _binary("*"), _reflected("*")
    __truediv__, __rtruediv__ = _binary("/"), _reflected("/")
    __mod__, __rmod__ = _binary("%"), _reflected("%")
    __pow__, __rpow__ = _binary("POWER"), _reflected("POWER")
    __and__, __rand__ = _binary("AND"), _reflected("AND")
    __or__, __ror__ = _binary("OR"), _reflected("OR")
    __lt__, __le__ = _binary("<"), _binary("<=")
    __gt__, __ge__ = _binary(">"), _binary(">=")
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> Expression[bool]:  # type: ignore[override]
        return call("=", self, other)

    def __ne__(self, other: object) -> Expression[bool]:  # type: ignore[override]
        return call("<>", self, other)

    def __neg__(self) -> Expression[T]:
        return call("NEGATE", self)

    def __invert__(self) -> Expression[bool]:
        return call("NOT", self)

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value: use &, | and ~ in the place of and, or and not")

    def __str__(self) -> str:
        return describe(self.node)

    __repr__ = __str__

    # Names, types, order

    def alias(self, name: str, *extra_names: str) -> Expression[T]:
        """Name the expression, or the columns of a table function."""
        return Expression(ast.Named(self.node, (name, *extra_names)))

    def cast(self, data_type: DataType) -> Expression[Any]:
        """Convert the value to another type. The job fails if that is not possible."""
        return Expression(ast.Cast(self.node, data_type))

    def try_cast(self, data_type: DataType) -> Expression[Any]:
        """Convert the value to another type, or to NULL if that is not possible."""
        return Expression(ast.Cast(self.node, data_type, or_null=True))

    @property
    def asc(self) -> Expression[T]:
        """Sort in ascending order."""
        return Expression(ast.SortItem(self.node))

    @property
    def desc(self) -> Expression[T]:
        """Sort in descending order."""
        return Expression(ast.SortItem(self.node, descending=True))

    def as_argument(self, name: str) -> Expression[T]:
        """Use the expression as a named argument of a function."""
        return Expression(ast.Named(self.node, (name,)))

    # Logic

    is_null, is_not_null = _property("IS NULL"), _property("IS NOT NULL")
    is_true, is_false = _property("IS TRUE"), _property("IS FALSE")
    is_not_true, is_not_false = _property("IS NOT TRUE"), _property("IS NOT FALSE")
    if_null = _method("IFNULL")

    def then(self, if_true: Any, if_false: Any) -> Expression[Any]:
        """Return one of two values, depending on this condition."""
        return call("IF", self, if_true, if_false)

    def between(self, lower_bound: Any, upper_bound: Any) -> Expression[bool]:
        """Whether the value is within inclusive bounds."""
        return call("BETWEEN", self, lower_bound, upper_bound)

    def not_between(self, lower_bound: Any, upper_bound: Any) -> Expression[bool]:
        """Whether the value is outside inclusive bounds."""
        return call("NOT", self.between(lower_bound, upper_bound))

    def in_(self, first_element_or_table: Any, *remaining_elements: Any) -> Expression[bool]:
        """Whether the value is one of the others, or in a column of a table."""
        query = getattr(first_element_or_table, "as_subquery", None)
        if query is not None:
            return Expression(ast.Subquery("IN", query, (self.node,)))
        return call("IN", self, first_element_or_table, *remaining_elements)

    # Aggregates

    count, sum, sum0, avg = _property("COUNT"), _property("SUM"), _property("$SUM0"), _property("AVG")
    min, max = _property("MIN"), _property("MAX")
    stddev_pop, stddev_samp = _property("STDDEV_POP"), _property("STDDEV_SAMP")
    var_pop, var_samp = _property("VAR_POP"), _property("VAR_SAMP")
    first_value, last_value = _property("FIRST_VALUE"), _property("LAST_VALUE")
    collect, array_agg = _property("COLLECT"), _property("ARRAY_AGG")
    list_agg, percentile = _method("LISTAGG"), _method("PERCENTILE")
    bitmap_build_agg, bitmap_build_cardinality_agg = (
        _method("BITMAP_BUILD_AGG"),
        _method("BITMAP_BUILD_CARDINALITY_AGG"),
    )
    bitmap_and_agg, bitmap_and_cardinality_agg = _method("BITMAP_AND_AGG"), _method("BITMAP_AND_CARDINALITY_AGG")
    bitmap_or_agg, bitmap_or_cardinality_agg = _method("BITMAP_OR_AGG"), _method("BITMAP_OR_CARDINALITY_AGG")
    bitmap_xor_agg, bitmap_xor_cardinality_agg = _method("BITMAP_XOR_AGG"), _method("BITMAP_XOR_CARDINALITY_AGG")

    @property
    def distinct(self) -> Expression[T]:
        """Aggregate only distinct values: ``col("a").sum.distinct``."""
        node = self.node
        if not isinstance(node, (ast.FunctionCall, ast.UserFunctionCall)):
            raise TypeError("distinct is for aggregates: col('a').count.distinct")
        return Expression(_replace(node, distinct=True))

    def over(self, alias: Any) -> Expression[T]:
        """Aggregate over a window of rows that is named in `over_window`."""
        return Expression(ast.FunctionCall("$OVER", (self.node, node_of(alias))))

    # Windows

    start, end = _property("$START"), _property("$END")
    rowtime, proctime = _property("$ROWTIME"), _property("$PROCTIME")

    # Numbers

    abs, exp, sqrt, sign = _property("ABS"), _property("EXP"), _property("SQRT"), _property("SIGN")
    ln, log10, log2 = _property("LN"), _property("LOG10"), _property("LOG2")
    sin, cos, tan, cot = _property("SIN"), _property("COS"), _property("TAN"), _property("COT")
    asin, acos, atan = _property("ASIN"), _property("ACOS"), _property("ATAN")
    sinh, cosh, tanh = _property("SINH"), _property("COSH"), _property("TANH")
    degrees, radians = _property("DEGREES"), _property("RADIANS")
    bin, hex, unhex = _property("BIN"), _property("HEX"), _property("UNHEX")
    round, truncate = _method("ROUND"), _method("TRUNCATE")

    def log(self, base: Any = None) -> Expression[float]:
        """Return the logarithm. The default base is e."""
        return call("LN", self) if base is None else call("LOG", base, self)

    # Text

    upper_case, lower_case, init_cap = _property("UPPER"), _property("LOWER"), _property("INITCAP")
    char_length, ascii, chr, reverse = (
        _property("CHAR_LENGTH"),
        _property("ASCII"),
        _property("CHR"),
        _property("REVERSE"),
    )
    substring, substr = _method("SUBSTRING"), _method("SUBSTRING")
    lpad, rpad, left, right, repeat = (
        _method("LPAD"),
        _method("RPAD"),
        _method("LEFT"),
        _method("RIGHT"),
        _method("REPEAT"),
    )
    ltrim, rtrim, btrim = _method("LTRIM"), _method("RTRIM"), _method("BTRIM")
    replace, overlay, translate = _method("REPLACE"), _method("OVERLAY"), _method("TRANSLATE")
    like, similar, concat = _method("LIKE"), _method("SIMILAR TO"), _method("CONCAT")
    starts_with, ends_with = _method("STARTSWITH"), _method("ENDSWITH")
    regexp, regexp_replace, regexp_extract = _method("REGEXP"), _method("REGEXP_REPLACE"), _method("REGEXP_EXTRACT")
    regexp_count, regexp_instr, regexp_substr = (
        _method("REGEXP_COUNT"),
        _method("REGEXP_INSTR"),
        _method("REGEXP_SUBSTR"),
    )
    regexp_extract_all = _method("REGEXP_EXTRACT_ALL")
    split, split_index, instr, elt = _method("SPLIT"), _method("SPLIT_INDEX"), _method("INSTR"), _method("ELT")
    parse_url, url_decode, url_encode = _method("PARSE_URL"), _method("URL_DECODE"), _method("URL_ENCODE")
    inet_aton, inet_ntoa = _method("INET_ATON"), _method("INET_NTOA")
    printf, str_to_map = _method("PRINTF"), _method("STR_TO_MAP")
    encode, decode = _method("ENCODE"), _method("DECODE")
    from_base64, to_base64 = _property("FROM_BASE64"), _property("TO_BASE64")
    md5, sha1, sha224, sha256 = _property("MD5"), _property("SHA1"), _property("SHA224"), _property("SHA256")
    sha384, sha512, sha2 = _property("SHA384"), _property("SHA512"), _method("SHA2")

    def position(self, haystack: Any) -> Expression[int]:
        """Return the position of the text in another one, from 1."""
        return call("POSITION", self, haystack)

    def locate(self, s: Any, pos: Any = None) -> Expression[int]:
        """Return the position of the text in another one, from a start position on."""
        return call("LOCATE", self, s) if pos is None else call("LOCATE", self, s, pos)

    def trim(self, character: Any = None) -> Expression[str]:
        """Remove spaces, or another character, from both ends."""
        return _trimmed(self, character, "BOTH")

    def trim_leading(self, character: Any = None) -> Expression[str]:
        """Remove spaces, or another character, from the start."""
        return _trimmed(self, character, "LEADING")

    def trim_trailing(self, character: Any = None) -> Expression[str]:
        """Remove spaces, or another character, from the end."""
        return _trimmed(self, character, "TRAILING")

    # Time

    year, years, quarter, quarters = _part("YEAR"), _length("YEAR"), _part("QUARTER"), _length("QUARTER")
    month, months, week, weeks = _part("MONTH"), _length("MONTH"), _part("WEEK"), _length("WEEK")
    day, days, hour, hours = _part("DAY"), _length("DAY"), _part("HOUR"), _length("HOUR")
    minute, minutes, second, seconds = _part("MINUTE"), _length("MINUTE"), _part("SECOND"), _length("SECOND")
    milli, millis = _length("MILLI"), _length("MILLI")
    to_date, to_time, to_timestamp = _property("TO_DATE"), _property("$TO_TIME"), _property("TO_TIMESTAMP")

    def extract(self, time_interval_unit: TimeIntervalUnit) -> Expression[int]:
        """Return a part of a time."""
        return call("EXTRACT", self, options=(time_interval_unit.name,))

    def floor(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression[Any]:
        """Round down; a time to a unit."""
        return (
            call("FLOOR", self)
            if time_interval_unit is None
            else call("FLOOR TO", self, options=(time_interval_unit.name,))
        )

    def ceil(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression[Any]:
        """Round up; a time to a unit."""
        return (
            call("CEIL", self)
            if time_interval_unit is None
            else call("CEIL TO", self, options=(time_interval_unit.name,))
        )

    # Collections and rows

    at, cardinality, element = _method("ITEM"), _property("CARDINALITY"), _property("ELEMENT")
    array_append, array_prepend, array_concat = (
        _method("ARRAY_APPEND"),
        _method("ARRAY_PREPEND"),
        _method("ARRAY_CONCAT"),
    )
    array_contains, array_distinct, array_position = (
        _method("ARRAY_CONTAINS"),
        _method("ARRAY_DISTINCT"),
        _method("ARRAY_POSITION"),
    )
    array_remove, array_reverse, array_slice = _method("ARRAY_REMOVE"), _method("ARRAY_REVERSE"), _method("ARRAY_SLICE")
    array_sort, array_union, array_join = _method("ARRAY_SORT"), _method("ARRAY_UNION"), _method("ARRAY_JOIN")
    array_max, array_min = _method("ARRAY_MAX"), _method("ARRAY_MIN")
    array_except, array_intersect = _method("ARRAY_EXCEPT"), _method("ARRAY_INTERSECT")
    map_keys, map_values, map_entries = _property("MAP_KEYS"), _property("MAP_VALUES"), _property("MAP_ENTRIES")
    map_union, object_update, flatten = _method("MAP_UNION"), _method("OBJECT_UPDATE"), _property("$FLATTEN")
    bitmap_and, bitmap_or, bitmap_xor = _method("BITMAP_AND"), _method("BITMAP_OR"), _method("BITMAP_XOR")
    bitmap_andnot, bitmap_build = _method("BITMAP_ANDNOT"), _method("BITMAP_BUILD")
    bitmap_cardinality, bitmap_from_bytes = _method("BITMAP_CARDINALITY"), _method("BITMAP_FROM_BYTES")
    bitmap_to_array, bitmap_to_bytes = _method("BITMAP_TO_ARRAY"), _method("BITMAP_TO_BYTES")
    bitmap_to_string = _method("BITMAP_TO_STRING")

    def get(self, name_or_index: str | int) -> Expression[Any]:
        """Return a field of a row."""
        return call("FIELD", self, options=(name_or_index,))

    def __getitem__(self, index: Any) -> Expression[Any]:
        return self.at(index)  # type: ignore[no-any-return]

    # JSON

    json_quote, json_unquote = _method("JSON_QUOTE"), _method("JSON_UNQUOTE")

    def is_json(self, json_type: JsonType | None = None) -> Expression[bool]:
        """Whether the text is JSON."""
        return call("IS JSON", self, options=((json_type or JsonType.VALUE).name,))

    def json_exists(self, path: str, on_error: JsonExistsOnError | None = None) -> Expression[bool]:
        """Whether the JSON has a value at a path."""
        return call("JSON_EXISTS", self, path, options=((on_error or JsonExistsOnError.FALSE).name,))

    def json_value(
        self,
        path: str,
        returning_type: DataType | None = None,
        on_empty: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_empty: Any = None,
        on_error: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_error: Any = None,
    ) -> Expression[Any]:
        """Return the scalar at a path."""
        options = (returning_type or VarCharType(), on_empty.name, default_on_empty, on_error.name, default_on_error)
        return call("JSON_VALUE", self, path, options=options)

    def json_query(
        self,
        path: str,
        wrapping_behavior: JsonQueryWrapper = JsonQueryWrapper.WITHOUT_ARRAY,
        on_empty: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
        on_error: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
    ) -> Expression[Any]:
        """Return the JSON at a path."""
        return call("JSON_QUERY", self, path, options=(wrapping_behavior.name, on_empty.name, on_error.name))


def _trimmed(expression: Expression[Any], character: Any, where: str) -> Expression[str]:
    return call("TRIM", expression, " " if character is None else character, options=(where,))


def _replace(node: Any, **changes: Any) -> ast.Node:
    from dataclasses import replace

    replaced: ast.Node = replace(node, **changes)
    return replaced


def describe(node: ast.Node) -> str:
    """Return an expression as text, for messages and column names."""
    match node:
        case ast.Ref():
            return ".".join(node.path)
        case ast.Literal():
            return repr(node.value)
        case ast.Named():
            return f"{describe(node.operand)} AS {', '.join(node.names)}"
        case ast.Cast():
            return f"CAST({describe(node.operand)} AS {node.type})"
        case ast.FunctionCall():
            return f"{node.name}({', '.join(map(describe, node.arguments))})"
        case ast.SortItem():
            return f"{describe(node.operand)} {'DESC' if node.descending else 'ASC'}"
    return type(node).__name__
