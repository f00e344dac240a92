"""Arrays, maps and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.core.table.type_rules import common_type
from penstock.core.table.types import (
    ArrayType,
    DataType,
    IntegralType,
    IntType,
    MapType,
    MultisetType,
    RowField,
    RowType,
)
from penstock.runtime.table.functions.registry import ANY, ARRAY, BOOLEAN, by_row


def _array_type(types: Sequence[DataType]) -> DataType | None:
    element = common_type(types)
    return None if element is None else ArrayType(element, _nullable=False)


@by_row("ARRAY", takes=[ANY], gives=_array_type, variadic=True, sees_null=True)
def array(*elements: Any) -> list[Any]:
    """Build an array from the arguments."""
    return list(elements)


def _map_type(types: Sequence[DataType]) -> DataType | None:
    if len(types) % 2:
        return None
    key, value = common_type(types[::2]), common_type(types[1::2])
    return None if key is None or value is None else MapType(key, value, _nullable=False)


@by_row("MAP", takes=[ANY], gives=_map_type, variadic=True, sees_null=True)
def map_(*pairs: Any) -> dict[Any, Any]:
    """Build a map from alternating keys and values."""
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


@by_row(
    "ROW",
    takes=[ANY],
    gives=lambda types: RowType(tuple(RowField(f"EXPR${i}", one) for i, one in enumerate(types)), _nullable=False),
    variadic=True,
    sees_null=True,
)
def row(*fields: Any) -> list[Any]:
    """Build a row from the arguments."""
    return list(fields)


def _item_type(types: Sequence[DataType]) -> DataType | None:
    collection, index = types
    if isinstance(collection, ArrayType) and isinstance(index, IntegralType):
        return collection.element_type.nullable()
    if isinstance(collection, MapType) and common_type([collection.key_type, index]) is not None:
        return collection.value_type.nullable()
    if isinstance(collection, RowType) and isinstance(index, IntegralType):
        return None
    return None


@by_row("ITEM", takes=[ANY, ANY], gives=_item_type)
def item(collection: Any, key: Any) -> Any:
    """Return an element by its position from 1, or a value by its key; NULL without one (T38)."""
    if isinstance(collection, dict):
        return collection.get(key)
    return collection[key - 1] if 1 <= key <= len(collection) else None


@by_row("FIELD", takes=[ANY], gives=lambda types: None)
def field_of(row_value: Any, index: int) -> Any:
    """Return a field of a row. The planner determines the type."""
    return row_value[index]


@by_row("CARDINALITY", takes=[ANY], gives=lambda types: IntType() if _is_collection(types[0]) else None)
def cardinality(collection: Any) -> int:
    """Return the number of elements."""
    return len(collection)


def _is_collection(one: DataType) -> bool:
    return isinstance(one, (ArrayType, MapType, MultisetType))


@by_row("ARRAY_CONTAINS", takes=[ARRAY, ANY], gives=BOOLEAN, sees_null=True)
def array_contains(elements: list[Any] | None, needle: Any) -> bool | None:
    """Whether an array contains an element, which may be NULL."""
    return None if elements is None else needle in elements
