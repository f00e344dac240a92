"""JSON_OBJECTAGG and JSON_ARRAYAGG."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.core.table.arrow import python_values
from penstock.core.table.type_rules import is_character
from penstock.core.table.types import VarCharType
from penstock.runtime.table.aggregates.base import Aggregate, RowAggregate
from penstock.runtime.table.aggregates.registry import AggregateRequest, aggregate


class _JsonAggregate(RowAggregate):
    """The accumulator is the list of elements in arrival order."""

    result_type = pa.string()

    def __init__(self, request: AggregateRequest, *, keeps_null: bool) -> None:
        self.types = request.types
        clause = " ".join(map(str, request.options)).upper()
        self.keeps_null = clause.startswith("NULL") if clause.strip() else keeps_null

    def create(self) -> Any:
        """Create an empty list."""
        return []

    def rows(self, columns: list[Any], count: int) -> list[tuple[Any, ...]]:
        """Return values of the argument types."""
        return list(zip(*map(python_values, columns, self.types), strict=True))

    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Append an element."""
        if values[-1] is not None or self.keeps_null:
            accumulator.append(self.element(values))

    def retract(self, accumulator: Any, *values: Any) -> None:
        """Remove the first equal element."""
        element = self.element(values)
        if element in accumulator:
            accumulator.remove(element)

    def element(self, values: tuple[Any, ...]) -> Any:
        """Return the part of a row to keep."""
        return _json(values[0])


class JsonArrayAgg(_JsonAggregate):
    """Creates an array of all values."""

    def value(self, accumulator: Any) -> Any:
        """Return the JSON text."""
        return f"[{','.join(accumulator)}]"


class JsonObjectAgg(_JsonAggregate):
    """Creates an object of keys and values. The last value of a key counts."""

    def element(self, values: tuple[Any, ...]) -> Any:
        """Return key and value."""
        if values[0] is None:
            raise ValueError("a key of JSON_OBJECTAGG is NULL: filter such rows out")
        return json.dumps(values[0], ensure_ascii=False), _json(values[1])

    def value(self, accumulator: Any) -> Any:
        """As text."""
        pairs = dict(accumulator)
        return "{" + ",".join(f"{key}:{pairs[key]}" for key in sorted(pairs)) + "}"


def _json(value: Any) -> str:
    match value:
        case Decimal():
            return format(value, "f")
        case list() | tuple():
            return f"[{','.join(map(_json, value))}]"
        case dict():
            return "{" + ",".join(f"{json.dumps(str(key))}:{_json(one)}" for key, one in value.items()) + "}"
        case None | bool() | int() | float() | str():
            return json.dumps(value, ensure_ascii=False)
    return json.dumps(str(value), ensure_ascii=False)


@aggregate("JSON_ARRAYAGG", gives=lambda types: VarCharType(_nullable=False))
def json_arrayagg(request: AggregateRequest) -> Aggregate:
    """An array of all values. NULLs are left out unless NULL ON NULL is given."""
    return JsonArrayAgg(request, keeps_null=False)


@aggregate(
    "JSON_OBJECTAGG",
    gives=lambda types: VarCharType(_nullable=False) if is_character(types[0]) else None,
    arguments=(2, 2),
)
def json_objectagg(request: AggregateRequest) -> Aggregate:
    """An object of keys and values. NULLs are kept unless ABSENT ON NULL is given."""
    return JsonObjectAgg(request, keeps_null=True)
