"""Rows in state: as columns of numbers and Python objects, or as tuples of stored values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.column_fields import FieldType
from penstock.runtime.table.keys import key_column, key_values

_I64 = pa.int64()
_MAX_BITS = 62

StoredRow = tuple[Any, ...]
"""The values of a row in their stored form: times and dates are integers."""


def stored_rows(batch: ColumnBatch) -> list[StoredRow]:
    """Return the rows of a batch as tuples."""
    return list(zip(*map(key_values, batch.data.columns), strict=True)) if batch.data.num_columns else [()] * len(batch)


def columns_of(rows: Sequence[StoredRow], schema: pa.Schema) -> list[pa.Array]:
    """Return columns from tuples: the inverse of :func:`stored_rows`.

    >>> schema = pa.schema([("n", pa.int64()), ("word", pa.string())])
    >>> batch = ColumnBatch(pa.record_batch([[1, None], ["a", "b"]], schema=schema))
    >>> columns_of(stored_rows(batch), schema) == batch.data.columns
    True
    """
    parts = zip(*rows, strict=True) if rows else [()] * len(schema)
    return [key_column(list(part), field.type) for part, field in zip(parts, schema, strict=True)]


class StoredColumns:
    """One row of a schema per key, as fields of a :class:`ColumnStateBackend`.

    Numbers, times and dates are stored as numbers. The first field has a bit for each of them that is NULL.

    >>> schema = pa.schema([("n", pa.int32()), ("word", pa.string())])
    >>> stored = StoredColumns(schema)
    >>> fields = stored.encode([pa.array([7, None], pa.int32()), pa.array(["a", "b"])])
    >>> [column.to_pylist() for column in stored.decode(fields)]
    [[7, None], ['a', 'b']]
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._types = [field.type for field in schema]
        self._kinds = [_number_type(type_) if index < _MAX_BITS else None for index, type_ in enumerate(self._types)]
        self.fields: list[tuple[FieldType, Any]] = [
            (_I64, 0),
            *((kind, None if kind is None else 0) for kind in self._kinds),
        ]

    def encode(self, columns: Sequence[pa.Array]) -> list[Any]:
        """Convert columns to fields."""
        nulls = pa.repeat(pa.scalar(0, _I64), len(columns[0]) if columns else 0)
        fields: list[Any] = []
        for index, (column, kind) in enumerate(zip(columns, self._kinds, strict=True)):
            if kind is None:
                fields.append(column.to_pylist() if not pt.is_timestamp(column.type) else key_values(column))
                continue
            if column.null_count:
                nulls = pc.add(nulls, pc.multiply(column.is_null().cast(_I64), pa.scalar(1 << index, _I64)))
            number = _as_number(column, kind)
            fields.append(pc.fill_null(number, 0) if number.null_count else number)
        return [nulls, *fields]

    def decode(self, fields: Sequence[Any]) -> list[pa.Array]:
        """Convert fields to columns."""
        nulls = fields[0]
        any_null = bool(len(nulls)) and pc.max(nulls).as_py() > 0
        columns = []
        for index, (field, kind, type_) in enumerate(zip(fields[1:], self._kinds, self._types, strict=True)):
            if kind is None:
                columns.append(key_column(field, type_) if pt.is_timestamp(type_) else pa.array(field, type_))
                continue
            column = _from_number(field, type_)
            if any_null:
                bit = pc.bit_wise_and(nulls, pa.scalar(1 << index, _I64))
                column = pc.if_else(pc.equal(bit, pa.scalar(0, _I64)), column, pa.scalar(None, type_))
            columns.append(column)
        return columns


def _number_type(type_: pa.DataType) -> pa.DataType | None:
    if pt.is_floating(type_):
        return pa.float64()
    if pt.is_integer(type_) or pt.is_boolean(type_) or pt.is_temporal(type_):
        return _I64
    return None


def _as_number(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pt.is_date32(column.type) or pt.is_time32(column.type):
        column = column.cast(pa.int32())
    return column.cast(kind)


def _from_number(column: pa.Array, type_: pa.DataType) -> pa.Array:
    if pt.is_boolean(type_):
        return pc.not_equal(column, pa.scalar(0, _I64))
    if pt.is_date32(type_) or pt.is_time32(type_):
        column = column.cast(pa.int32())
    return column.cast(type_)
