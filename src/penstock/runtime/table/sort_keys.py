"""Sorting by several columns, ascending or descending, NULLs first or last (T36), in columns and row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.runtime.table.keys import key_values

_INVERTED = bytes(255 - code for code in range(256))


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column to sort by."""

    column: int
    descending: bool = False
    nulls_last: bool = False


def sort_order(keys: Sequence[tuple[pa.Array, bool, bool]]) -> pa.Int64Array:
    """Return the positions that sort rows by columns (column, descending, NULLs last). The sort is stable.

    >>> sort_order([(pa.array([2, None, 2, 3]), True, False)]).to_pylist()
    [1, 3, 0, 2]
    """
    columns: list[pa.Array] = []
    order: list[tuple[str, str]] = []

    def add(column: pa.Array, *, descending: bool) -> None:
        order.append((str(len(columns)), "descending" if descending else "ascending"))
        columns.append(column)

    for column, descending, nulls_last in keys:
        if column.null_count:
            add(column.is_null().cast(pa.int8()), descending=not nulls_last)
        if pt.is_floating(column.type):
            add(pc.fill_null(pc.is_nan(column), False).cast(pa.int8()), descending=descending)
        add(column.cast(pa.int8()) if pt.is_boolean(column.type) else column, descending=descending)
    table = pa.table(columns, names=[name for name, _ in order])
    return pc.sort_indices(table, sort_keys=order).cast(pa.int64())


def comparable_keys(columns: Sequence[pa.Array], order: Sequence[SortColumn]) -> list[Any]:
    """Return a Python value for each row. These values compare as the rows sort."""
    parts = [_part(columns[key.column], key) for key in order]
    if not parts:
        return [0] * (len(columns[0]) if columns else 0)
    return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))


def _part(column: pa.Array, key: SortColumn) -> list[Any]:
    type_ = column.type
    values = key_values(column.cast(pa.int8()) if pt.is_boolean(type_) else column)
    if pt.is_floating(type_):
        return [_float_key(value, key) for value in values]
    if pt.is_integer(type_) or pt.is_temporal(type_) or pt.is_decimal(type_) or pt.is_boolean(type_):
        null = float("inf") if key.nulls_last else float("-inf")
        if key.descending:
            return [null if value is None else -value for value in values]
        return [null if value is None else value for value in values] if column.null_count else values
    invert: Callable[[Any], Any] = _inverted if key.descending else _plain
    rank = 1 if key.nulls_last else -1
    return [(rank,) if value is None else (0, invert(value)) for value in values]


def _float_key(value: Any, key: SortColumn) -> tuple[Any, ...]:
    """Return a key for floats: NaN, a tuple in key values, is larger than all numbers; NULL is separate."""
    if value is None:
        return (2,) if key.nulls_last else (-2,)
    if isinstance(value, tuple):
        return (-1,) if key.descending else (1,)
    return (0, -value if key.descending else value)


def _plain(value: Any) -> Any:
    return value


def _inverted(value: str | bytes) -> bytes:
    """Return bytes that compare in reverse order. The end of a string is larger than any of its continuations."""
    raw = value.encode() if isinstance(value, str) else value
    return raw.translate(_INVERTED) + b"\xff"
