"""Changelog rows in columns: the batches that table operators pass to each other, also in frames.

A :class:`ColumnBatch` replaces the list of values in a frame's element. It is immutable, so consumers share it. Row
kinds are a separate column, which is left out while every row is an insert.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)
"""Row kinds, with the numbers of :class:`penstock.common.types.RowKind`. Odd kinds retract a row."""

_KIND_FIELD = pa.field("$kind", pa.int8())
_MAX_SCHEMAS = 1_024
_schemas: dict[bytes, pa.Schema] = {}


class ColumnBatch:
    """Rows of one schema, with their kinds. ``kinds`` is None if all of them are inserts.

    >>> batch = ColumnBatch(pa.record_batch({"word": ["a", "b", "a"]}))
    >>> len(batch), batch.kinds is None
    (3, True)
    >>> batch[1:].rows()
    [(0, ('b',)), (0, ('a',))]
    """

    __slots__ = ("data", "kinds")

    def __init__(self, data: pa.RecordBatch, kinds: pa.Int8Array | None = None) -> None:
        self.data = data
        self.kinds = kinds

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def column(self, index: int) -> pa.Array:
        """Return one column."""
        return self.data.column(index)

    def __getitem__(self, rows: slice) -> ColumnBatch:
        """Return some rows. A slice without a step shares the memory of this batch."""
        start, stop, step = rows.indices(len(self))
        if step == 1:
            size = max(0, stop - start)
            return ColumnBatch(
                self.data.slice(start, size), None if self.kinds is None else self.kinds.slice(start, size)
            )
        return self.take(pa.array(range(start, stop, step), pa.int64()))

    def take(self, indices: pa.Array) -> ColumnBatch:
        """Return the rows at these positions."""
        return ColumnBatch(self.data.take(indices), None if self.kinds is None else self.kinds.take(indices))

    def filter(self, mask: pa.BooleanArray) -> ColumnBatch:
        """Return the rows where the mask is true."""
        return ColumnBatch(self.data.filter(mask), None if self.kinds is None else self.kinds.filter(mask))

    def signs(self) -> pa.Int64Array | None:
        """1 for added rows, -1 for retracted rows; None if all are added."""
        if self.kinds is None:
            return None
        odd = pc.bit_wise_and(self.kinds, pa.scalar(1, pa.int8())).cast(pa.int64())
        return pc.subtract(pa.scalar(1, pa.int64()), pc.add(odd, odd))

    def rows(self) -> list[tuple[int, tuple[Any, ...]]]:
        """Return rows as (kind, values), for row-by-row work and for tests."""
        columns = [column.to_pylist() for column in self.data.columns]
        values = zip(*columns, strict=True) if columns else [()] * len(self)
        kinds = [INSERT] * len(self) if self.kinds is None else self.kinds.to_pylist()
        return list(zip(kinds, values, strict=True))

    @staticmethod
    def concat(batches: Sequence[ColumnBatch]) -> ColumnBatch:
        """Concatenate batches of one schema."""
        if len(batches) == 1:
            return batches[0]
        data = pa.concat_batches([batch.data for batch in batches])
        if all(batch.kinds is None for batch in batches):
            return ColumnBatch(data)
        return ColumnBatch(data, pa.concat_arrays([batch.kinds_or_inserts() for batch in batches]))

    def kinds_or_inserts(self) -> pa.Int8Array:
        """Return the kinds as a column, even if all rows are inserts."""
        return repeated(INSERT, len(self), pa.int8()) if self.kinds is None else self.kinds

    @staticmethod
    def merge_elements(elements: list[Any]) -> list[Any]:
        """Join adjacent column batches of a frame's elements: receivers are fastest with large batches."""
        merged: list[Any] = []
        run: list[ColumnBatch] = []
        for element in elements:
            if type(element) is tuple:
                run.append(element[0])
                continue
            if run:
                merged.append((ColumnBatch.concat(run), None))
                run = []
            merged.append(element)
        if run:
            merged.append((ColumnBatch.concat(run), None))
        return merged

    def __reduce__(self) -> tuple[Any, ...]:
        data = self.data
        if self.kinds is not None:
            fields = [*data.schema, _KIND_FIELD]
            data = pa.RecordBatch.from_arrays([*data.columns, self.kinds], schema=pa.schema(fields))
        # Arrow's own format writes only the rows of a slice, and is read without copying.
        schema = data.schema.serialize().to_pybytes()
        return _read_batch, (schema, data.serialize().to_pybytes(), len(data), self.kinds is not None)

    def __repr__(self) -> str:
        return f"ColumnBatch({len(self)} rows of {self.data.schema.names})"


def _read_batch(schema: bytes, body: bytes, rows: int, has_kinds: bool) -> ColumnBatch:
    known = _schemas.get(schema)
    if known is None:
        if len(_schemas) >= _MAX_SCHEMAS:
            _schemas.clear()
        known = _schemas[schema] = pa.ipc.read_schema(pa.py_buffer(schema))
    data = pa.ipc.read_record_batch(pa.py_buffer(body), known)
    if not has_kinds:
        return ColumnBatch(data)
    last = data.num_columns - 1
    return ColumnBatch(data.remove_column(last), data.column(last))


# -- columns of numbers -----------------------------------------------------------------------------------------------

_counting = pa.array([], pa.int64())


def positions(count: int) -> pa.Int64Array:
    """Return 0, 1, 2, ... as a column, sliced from one that is created once.

    >>> positions(3).to_pylist()
    [0, 1, 2]
    """
    global _counting  # noqa: PLW0603 - a cache
    if len(_counting) < count:
        _counting = int64_column(array("q", range(max(count, 16_384))))
    return _counting.slice(0, count)


def int64_column(numbers: array[int]) -> pa.Int64Array:
    """Return a column that shares the memory of an array of type code ``q``."""
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def repeated(value: Any, count: int, type_: pa.DataType) -> pa.Array:
    """Return a column with the same value in every row."""
    return pa.repeat(pa.scalar(value, type_), count)
