"""Functions of arrays and maps. Array positions start at 1. NULL is an ordinary element unless stated otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.core.table.type_rules import common_type
from penstock.core.table.types import ArrayType, DataType, MapType, RowField, RowType
from penstock.runtime.table.functions.registry import (
    ANY,
    ARRAY,
    BOOL,
    CHARACTER,
    INT,
    MAP,
    STRING,
    by_row,
    first_argument,
)


def _element(types: Sequence[DataType]) -> DataType | None:
    return types[0].element_type.nullable() if isinstance(types[0], ArrayType) else None


def _merged(types: Sequence[DataType]) -> DataType | None:
    elements = [one.element_type for one in types if isinstance(one, ArrayType)]
    element = common_type(elements) if len(elements) == len(types) else None
    return None if element is None else ArrayType(element)


def _with_element(types: Sequence[DataType]) -> DataType | None:
    array = types[0]
    element = common_type([array.element_type, types[1]]) if isinstance(array, ArrayType) else None
    return None if element is None else ArrayType(element)


def _unique(elements: Sequence[Any]) -> list[Any]:
    """Return the first of equal elements. Rows and arrays are unhashable, so they are compared."""
    try:
        return list(dict.fromkeys(elements))
    except TypeError:
        result: list[Any] = []
        for one in elements:
            if one not in result:
                result.append(one)
        return result


@by_row("ARRAY_DISTINCT", takes=[ARRAY], gives=first_argument)
def array_distinct(array: list[Any]) -> list[Any]:
    """Remove duplicates, keeping the order."""
    return _unique(array)


@by_row("ARRAY_REVERSE", takes=[ARRAY], gives=first_argument)
def array_reverse(array: list[Any]) -> list[Any]:
    """Reverse the order."""
    return array[::-1]


@by_row("ARRAY_REMOVE", takes=[ARRAY, ANY], gives=first_argument, sees_null=True)
def array_remove(array: list[Any] | None, element: Any) -> list[Any] | None:
    """Remove the elements equal to this one."""
    return None if array is None else [one for one in array if one != element]


@by_row("ARRAY_POSITION", takes=[ARRAY, ANY], gives=INT)
def array_position(array: list[Any], element: Any) -> int:
    """Return the position of the first equal element; 0 without one."""
    return array.index(element) + 1 if element in array else 0


@by_row("ARRAY_CONCAT", takes=[ARRAY], gives=_merged, variadic=True)
def array_concat(*arrays: list[Any]) -> list[Any]:
    """Concatenate arrays; NULL if one is NULL."""
    return [one for array in arrays for one in array]


@by_row("ARRAY_APPEND", takes=[ARRAY, ANY], gives=_with_element, sees_null=True)
def array_append(array: list[Any] | None, element: Any) -> list[Any] | None:
    """Append an element."""
    return None if array is None else [*array, element]


@by_row("ARRAY_PREPEND", takes=[ARRAY, ANY], gives=_with_element, sees_null=True)
def array_prepend(array: list[Any] | None, element: Any) -> list[Any] | None:
    """Prepend an element."""
    return None if array is None else [element, *array]


@by_row("ARRAY_UNION", takes=[ARRAY, ARRAY], gives=_merged)
def array_union(left: list[Any], right: list[Any]) -> list[Any]:
    """Return the elements of either array, without duplicates."""
    return _unique([*left, *right])


@by_row("ARRAY_INTERSECT", takes=[ARRAY, ARRAY], gives=_merged)
def array_intersect(left: list[Any], right: list[Any]) -> list[Any]:
    """Return the elements of both arrays, without duplicates."""
    return [one for one in _unique(left) if one in right]


@by_row("ARRAY_EXCEPT", takes=[ARRAY, ARRAY], gives=_merged)
def array_except(left: list[Any], right: list[Any]) -> list[Any]:
    """Return the elements of the first array that are not in the second one, without duplicates."""
    return [one for one in _unique(left) if one not in right]


@by_row("ARRAY_MAX", takes=[ARRAY], gives=_element)
def array_max(array: list[Any]) -> Any:
    """Return the maximum of the elements that are not NULL."""
    return max((one for one in array if one is not None), default=None)


@by_row("ARRAY_MIN", takes=[ARRAY], gives=_element)
def array_min(array: list[Any]) -> Any:
    """Return the minimum of the elements that are not NULL."""
    return min((one for one in array if one is not None), default=None)


@by_row("ARRAY_SORT", takes=[ARRAY, BOOL, BOOL], gives=first_argument, optional=2)
def array_sort(array: list[Any], ascending: bool = True, nulls_first: bool | None = None) -> list[Any]:
    """Sort the elements. By default, NULLs come first in ascending order and last in descending order."""
    nulls = [one for one in array if one is None]
    values = sorted((one for one in array if one is not None), reverse=not ascending)
    return nulls + values if (ascending if nulls_first is None else nulls_first) else values + nulls


@by_row("ARRAY_SLICE", takes=[ARRAY, INT, INT], gives=first_argument, optional=1)
def array_slice(array: list[Any], start: int, end: int | None = None) -> list[Any]:
    """Return the elements between two positions, both included. Negative positions count from the end."""
    low = len(array) + start + 1 if start < 0 else max(start, 1)
    high = len(array) if end is None else len(array) + end + 1 if end < 0 else max(end, 1)
    return array[max(low, 1) - 1 : high] if low <= high else []


@by_row("ARRAY_JOIN", takes=[ARRAY, CHARACTER, CHARACTER], gives=STRING, optional=1)
def array_join(array: list[Any], separator: str, null_text: str | None = None) -> str:
    """Join the elements to a string. NULLs are left out unless there is a replacement for them."""
    texts = [null_text if one is None else one for one in array]
    return separator.join(one for one in texts if one is not None)


def _keys(types: Sequence[DataType]) -> DataType | None:
    return ArrayType(types[0].key_type) if isinstance(types[0], MapType) else None


def _values(types: Sequence[DataType]) -> DataType | None:
    return ArrayType(types[0].value_type) if isinstance(types[0], MapType) else None


def _entries(types: Sequence[DataType]) -> DataType | None:
    one = types[0]
    if not isinstance(one, MapType):
        return None
    return ArrayType(RowType((RowField("key", one.key_type), RowField("value", one.value_type))))


def _map_of_arrays(types: Sequence[DataType]) -> DataType | None:
    keys, values = types
    if not isinstance(keys, ArrayType) or not isinstance(values, ArrayType):
        return None
    return MapType(keys.element_type, values.element_type)


@by_row("MAP_KEYS", takes=[MAP], gives=_keys)
def map_keys(given: dict[Any, Any]) -> list[Any]:
    """Return the keys of a map."""
    return list(given)


@by_row("MAP_VALUES", takes=[MAP], gives=_values)
def map_values(given: dict[Any, Any]) -> list[Any]:
    """Return the values of a map."""
    return list(given.values())


@by_row("MAP_ENTRIES", takes=[MAP], gives=_entries)
def map_entries(given: dict[Any, Any]) -> list[Any]:
    """Return the keys and values of a map as rows."""
    return list(given.items())


@by_row("MAP_FROM_ARRAYS", takes=[ARRAY, ARRAY], gives=_map_of_arrays)
def map_from_arrays(keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    """Build a map from keys and values in order."""
    if len(keys) != len(values):
        raise ValueError(f"MAP_FROM_ARRAYS got {len(keys)} keys and {len(values)} values")
    return dict(zip(keys, values, strict=True))


@by_row("MAP_UNION", takes=[MAP, MAP], gives=first_argument, variadic=True)
def map_union(*maps: dict[Any, Any]) -> dict[Any, Any]:
    """Merge maps. The last value of a key wins."""
    return {key: value for one in maps for key, value in one.items()}


@by_row("SPLIT", takes=[CHARACTER, CHARACTER], gives=ArrayType(STRING))
def split(text: str, separator: str) -> list[str]:
    """Split a string; without a separator, into characters."""
    if not text:
        return []
    return text.split(separator) if separator else list(text)


@by_row("STR_TO_MAP", takes=[CHARACTER, CHARACTER, CHARACTER], gives=MapType(STRING, STRING), optional=2)
def str_to_map(text: str, entries: str = ",", pair: str = "=") -> dict[str, str | None]:
    """Build a map from a string like ``a=1,b=2``."""
    if not text:
        return {}
    result: dict[str, str | None] = {}
    for one in text.split(entries):
        key, found, value = one.partition(pair)
        result[key] = value if found else None
    return result
