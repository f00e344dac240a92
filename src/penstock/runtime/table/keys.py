"""Keys of rows: which rows of a batch belong together, and the key of their state.

The key of one column is its value, of several columns a tuple, of no columns the empty tuple. Values are in their
stored form (times and dates as integers), so a key is a plain Python value with the same hash in every process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.runtime.table.batch import ColumnBatch, repeated

NAN_KEY = ("NaN",)
"""Replaces NaN in keys: SQL groups NaNs together, but Python's NaN is not equal to itself."""
_NAN = float("nan")


@dataclass(slots=True)
class GroupedRows:
    """The rows of a batch by key."""

    codes: pa.Int32Array
    """For each row the number of its key, in order of first appearance."""
    keys: list[Any]
    """The key of each number."""
    columns: list[pa.Array]
    """The same keys by columns."""


def group_rows(batch: ColumnBatch, key_columns: Sequence[int]) -> GroupedRows:
    """Number the keys of a batch.

    >>> batch = ColumnBatch(pa.record_batch({"a": [1, 1, 2, 1], "b": ["x", "y", "x", "x"]}))
    >>> grouped = group_rows(batch, [0, 1])
    >>> grouped.codes.to_pylist(), grouped.keys
    ([0, 1, 2, 0], [(1, 'x'), (1, 'y'), (2, 'x')])
    """
    if not key_columns:
        return GroupedRows(repeated(0, len(batch), pa.int32()), [()], [])
    encoded = [encode_column(batch.column(index)) for index in key_columns]
    if len(encoded) == 1:
        return GroupedRows(encoded[0].indices, key_values(encoded[0].dictionary), [encoded[0].dictionary])
    codes, parts = encoded[0].indices, [encoded[0].dictionary]
    for column in encoded[1:]:
        width = pa.scalar(max(1, len(column.dictionary)), pa.int64())
        both = pc.add(pc.multiply(codes.cast(pa.int64()), width), column.indices.cast(pa.int64()))
        pairs = both.dictionary_encode()
        left = pc.divide(pairs.dictionary, width)
        right = pc.subtract(pairs.dictionary, pc.multiply(left, width))
        parts = [*(part.take(left) for part in parts), column.dictionary.take(right)]
        codes = pairs.indices
    return GroupedRows(codes, list(zip(*map(key_values, parts), strict=True)), parts)


@dataclass(slots=True)
class EncodedColumn:
    """A column as the numbers of its distinct values, in order of first appearance."""

    indices: pa.Int32Array
    dictionary: pa.Array


def encode_column(column: pa.Array) -> EncodedColumn:
    """Number the distinct values of a column, including NULL."""
    if not pt.is_nested(column.type):
        encoded = column.dictionary_encode(null_encoding="encode")
        return EncodedColumn(encoded.indices, encoded.dictionary)
    number_of: dict[Any, int] = {}
    firsts: list[int] = []
    codes = []
    for position, value in enumerate(key_values(column)):
        code = number_of.setdefault(value, len(firsts))
        if code == len(firsts):
            firsts.append(position)
        codes.append(code)
    return EncodedColumn(pa.array(codes, pa.int32()), column.take(pa.array(firsts, pa.int64())))


def key_values(column: pa.Array) -> list[Any]:
    """Return the values of a key column in their stored form."""
    kind = column.type
    if pt.is_timestamp(kind) or pt.is_time64(kind) or pt.is_date64(kind) or pt.is_duration(kind):
        return list(column.cast(pa.int64()).to_pylist())
    if pt.is_date32(kind) or pt.is_time32(kind):
        return list(column.cast(pa.int32()).to_pylist())
    values = column.to_pylist()
    if pt.is_floating(kind):
        return [NAN_KEY if value != value else value for value in values]  # noqa: PLR0124 - NaN
    if pt.is_nested(kind):
        return [_hashable(value) for value in values]
    return list(values)


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(map(_hashable, value.values()))
    if isinstance(value, (list, tuple)):
        return tuple(map(_hashable, value))
    return value


def key_columns_of(keys: list[Any], types: Sequence[pa.DataType]) -> list[pa.Array]:
    """Return columns of the given types with keys from state: the inverse of grouping.

    >>> [column.to_pylist() for column in key_columns_of([(1, "x"), (2, None)], [pa.int32(), pa.string()])]
    [[1, 2], ['x', None]]
    """
    if not types:
        return []
    if len(types) == 1:
        return [key_column(keys, types[0])]
    parts = zip(*keys, strict=True) if keys else [()] * len(types)
    return [key_column(list(part), type_) for part, type_ in zip(parts, types, strict=True)]


def key_column(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Return a column of stored key values."""
    if pt.is_timestamp(type_) or pt.is_time64(type_) or pt.is_date64(type_) or pt.is_duration(type_):
        return pa.array(values, pa.int64()).cast(type_)
    if pt.is_date32(type_) or pt.is_time32(type_):
        return pa.array(values, pa.int32()).cast(type_)
    if pt.is_floating(type_):
        values = [_NAN if value == NAN_KEY else value for value in values]
    if pt.is_struct(type_):
        names = [type_.field(index).name for index in range(type_.num_fields)]
        values = [None if value is None else dict(zip(names, value, strict=True)) for value in values]
    return pa.array(values, type_)
