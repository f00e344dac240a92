"""Functions in FROM: window table functions, user-defined table functions, UNNEST (T60, T61, T76)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

from penstock.core.table.type_rules import is_timestamp
from penstock.core.table.types import (
    ArrayType,
    DataType,
    IntType,
    MapType,
    MultisetType,
    RowType,
    TimestampType,
)
from penstock.runtime.table.expressions import Expr
from penstock.table.plan import ast
from penstock.table.plan.bind import Binder
from penstock.table.plan.build import cast_arguments
from penstock.table.plan.nodes.aggregate import WindowSpec, WindowTableFunctionRel
from penstock.table.plan.nodes.base import Field, Rel
from penstock.table.plan.nodes.correlate import CorrelateRel
from penstock.table.plan.scope import Scope
from penstock.util.exceptions import ValidationException

TableArgument = Callable[[Any], tuple[Rel, Scope]]

_PARAMETERS = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}


def window_table_function(name: str, trees: Sequence[Any], reader: Any, table_argument: TableArgument) -> Rel:
    """Build ``TUMBLE(TABLE t, DESCRIPTOR(c), size)`` and similar, by position or by name."""
    given = _arguments(name, trees)
    table = given["DATA"]
    source, *keys = table.expressions if type(table).__name__ == "Anonymous" else [table]
    relation, scope = table_argument(source)
    partition = _partition(keys, reader, scope)
    column = _time_column(name, given["TIMECOL"], relation)
    lengths = {
        key: _milliseconds(reader.read(given[key]), name, key) for key in given if key not in ("DATA", "TIMECOL")
    }
    return make_window(name, relation, column, lengths, partition)


def make_window(name: str, relation: Rel, column: int, lengths: dict[str, int], partition: tuple[int, ...] = ()) -> Rel:
    """Check the parameters and build the node."""
    size = lengths.get("SIZE", lengths.get("GAP", 0))
    slide = lengths.get("SLIDE", lengths.get("STEP", 0))
    if size <= 0 or (name in ("HOP", "CUMULATE") and slide <= 0):
        raise ValidationException(f"{name} table function requires sizes larger than 0")
    if name in ("HOP", "CUMULATE") and size % slide:
        word = "slide" if name == "HOP" else "step"
        raise ValidationException(
            f"{name} table function based aggregate requires size must be an integral multiple of {word}, "
            f"but got size {size} ms and {word} {slide} ms"
        )
    fields = [
        *relation.fields,
        Field("window_start", TimestampType(3, _nullable=False)),
        Field("window_end", TimestampType(3, _nullable=False)),
        Field("window_time", relation.fields[column].type.not_null(), relation.fields[column].time),
    ]
    window = WindowSpec(name, column, size, slide, lengths.get("OFFSET", 0), partition)
    return WindowTableFunctionRel(tuple(fields), relation, window)


def _arguments(name: str, trees: Sequence[Any]) -> dict[str, Any]:
    parameters = _PARAMETERS[name]
    given: dict[str, Any] = {}
    for position, tree in enumerate(trees):
        if type(tree).__name__ == "Kwarg":
            key = tree.this.name.upper()
            if key not in parameters or key in given:
                raise ValidationException(f"SQL validation failed. '{key}' is not a parameter of {name}")
            given[key] = tree.expression
        elif position < len(parameters):
            given[parameters[position]] = tree
        else:
            raise ValidationException(f"SQL validation failed. Too many arguments for {name}")
    missing = [key for key in parameters if key not in given and key != "OFFSET"]
    if missing:
        raise ValidationException(f"SQL validation failed. {name} needs the arguments {', '.join(missing)}")
    table = given["DATA"]
    is_query = type(table).__name__ in ("Subquery", "Paren", "Select")
    if not is_query and (type(table).__name__ != "Anonymous" or table.this != "$TABLE"):
        raise ValidationException(f"SQL validation failed. The first argument of {name} is TABLE t or a query")
    return given


def _partition(trees: Sequence[Any], reader: Any, scope: Scope) -> tuple[int, ...]:
    columns = []
    for tree in trees:
        inner = (
            tree.expressions
            if type(tree).__name__ == "Tuple"
            else [getattr(tree, "this", tree) if type(tree).__name__ == "Paren" else tree]
        )
        for one in inner:
            bound = Binder().bind(reader.read(one), scope)
            columns.append(getattr(bound, "index"))  # noqa: B009 - an InputRef
    return tuple(columns)


def _time_column(name: str, tree: Any, relation: Rel) -> int:
    if type(tree).__name__ != "Anonymous" or str(tree.this).upper() != "DESCRIPTOR" or len(tree.expressions) != 1:
        raise ValidationException(f"SQL validation failed. {name} needs DESCRIPTOR(time column)")
    column = tree.expressions[0].name
    if column not in relation.names:
        raise ValidationException(f"SQL validation failed. Column '{column}' not found in the table of {name}")
    if relation.names.count(column) > 1:
        raise ValidationException(f"SQL validation failed. Column '{column}' is ambiguous")
    index = relation.names.index(column)
    check_time_attribute(name, relation.fields[index])
    return index


def check_time_attribute(name: str, field: Field) -> None:
    """Check that a window uses a time attribute."""
    if field.time is None or not is_timestamp(field.type):
        raise ValidationException(
            f"The window function requires the timecol is a time attribute type, but is {field.describe()} "
            f"[{name} on column '{field.name}']"
        )


def _milliseconds(node: ast.Node, name: str, what: str) -> int:
    if isinstance(node, ast.FunctionCall) and node.name == "NEGATE":
        return -_milliseconds(node.arguments[0], name, what)
    if not isinstance(node, ast.Literal) or not isinstance(node.value, dt.timedelta):
        raise ValidationException(f"SQL validation failed. {what} of {name} must be an interval from days to seconds")
    return node.value // dt.timedelta(milliseconds=1)


# -- for each row -----------------------------------------------------------------------------------------------------


def apply_table_function(
    relation: Rel,
    scope: Scope,
    binder: Binder,
    function: Any,
    arguments: Sequence[ast.Node],
    *,
    outer: bool,
    names: Sequence[str] = (),
    ordinality: bool = False,
) -> Rel:
    """Join each row with the results of a table function or UNNEST."""
    bound: list[Expr] = [binder.bind(one, scope) for one in arguments]
    if function == "UNNEST":
        columns = _unnested(bound[0].type)
    else:
        function.check_arguments(len(bound))
        bound = cast_arguments(function, bound)
        row = function.result_type
        columns = [(one.name, one.data_type) for one in row.fields]
    if ordinality:
        columns = [*columns, ("ORDINALITY", IntType(_nullable=False))]
    if names:
        if len(names) != len(columns):
            raise ValidationException(
                f"SQL validation failed. The table function has {len(columns)} columns, {len(names)} names are given"
            )
        columns = [(name, type_) for name, (_, type_) in zip(names, columns, strict=True)]
    fields = [Field(name, type_.nullable() if outer else type_) for name, type_ in columns]
    return CorrelateRel((*relation.fields, *fields), relation, function, tuple(bound), outer, ordinality)


def _unnested(type_: DataType) -> list[tuple[str, DataType]]:
    match type_:
        case ArrayType() | MultisetType():
            element = type_.element_type
            if isinstance(element, RowType):
                return [(one.name, one.data_type) for one in element.fields]
            return [("EXPR$0", element)]
        case MapType():
            return [("f0", type_.key_type), ("f1", type_.value_type)]
    raise ValidationException(f"SQL validation failed. Cannot apply 'UNNEST' to a value of type {type_}")
