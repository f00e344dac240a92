"""Rows that wait for the watermark: in columns during a batch, by key in state between batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.runtime.table.batch import ColumnBatch, positions
from penstock.runtime.table.column_fields import KeyRows
from penstock.runtime.table.column_state import ColumnStateBackend
from penstock.runtime.table.keys import GroupedRows, group_rows, key_columns_of
from penstock.runtime.table.segments import Segments
from penstock.runtime.table.stored_rows import columns_of, stored_rows

_I64 = pa.int64()


class RowBuffer:
    """Rows in arrival order. ``field`` is the position of an object field of the state that belongs to the buffer.

    The rows of a key are written at the end of a batch if they have changed. Call :meth:`write` in ``end_batch``.
    """

    def __init__(self, state: ColumnStateBackend, field: int, keys: Sequence[int], schema: pa.Schema) -> None:
        self._state = state
        self._field = field
        self._keys = list(keys)
        self._schema = schema
        self._key_types = [schema.field(index).type for index in self._keys]
        self._batches: list[ColumnBatch] = []
        self._numbers: list[pa.Int64Array] = []
        self._next = 0
        self._written: dict[Any, tuple[int, int]] = {}  # key -> number of rows in its state, number of the last one
        self._loaded = False

    def load(self) -> None:
        """Read the rows of an earlier run. Later calls have no effect."""
        if self._loaded:
            return
        self._loaded = True
        rows = self._state.all_rows()
        if not rows.list:
            return
        found: list[tuple[int, Any]] = []
        for row, stored in zip(rows.list, self._state.gather_field(self._field, rows), strict=True):
            if stored:
                found += stored
                self._written[self._state.keys_by_row[row]] = (len(stored), stored[-1][0])
        if not found:
            return
        found.sort(key=lambda one: one[0])
        self._next = found[-1][0] + 1
        data = pa.RecordBatch.from_arrays(columns_of([row for _, row in found], self._schema), schema=self._schema)
        self._batches.append(ColumnBatch(data))
        self._numbers.append(pa.array([number for number, _ in found], _I64))

    def add(self, batch: ColumnBatch) -> None:
        """Add waiting rows."""
        self.load()
        self._batches.append(batch)
        self._numbers.append(pc.add(positions(len(batch)), pa.scalar(self._next, _I64)))
        self._next += len(batch)

    def rows(self) -> ColumnBatch | None:
        """Return all waiting rows in arrival order."""
        self.load()
        if not self._batches:
            return None
        if len(self._batches) > 1:
            self._batches = [ColumnBatch.concat(self._batches)]
            self._numbers = [pa.concat_arrays(self._numbers)]
        return self._batches[0]

    def keep(self, mask: pa.BooleanArray) -> None:
        """Keep only the rows in the mask, which is over :meth:`rows`."""
        if mask.true_count:
            self._batches = [self._batches[0].filter(mask)]
            self._numbers = [self._numbers[0].filter(mask)]
        else:
            self._batches, self._numbers = [], []

    def write(self) -> None:
        """Write the state."""
        waiting = self.rows()
        left = dict(self._written)
        if waiting is not None:
            grouped = group_rows(waiting, self._keys)
            segments = Segments.of(grouped.codes, len(grouped.keys))
            numbers = segments.sort(self._numbers[0])
            last = segments.last(numbers).to_pylist()
            counts = pc.subtract(segments.ends, segments.starts).to_pylist()
            signatures = list(zip(counts, last, strict=True))
            changed = [
                code
                for code, (key, signature) in enumerate(zip(grouped.keys, signatures, strict=True))
                if left.pop(key, None) != signature
            ]
            if changed:
                self._write_keys(waiting, grouped, segments, numbers, changed)
                self._written.update({grouped.keys[code]: signatures[code] for code in changed})
        if left:
            self._clear_keys(list(left))

    def _write_keys(
        self,
        waiting: ColumnBatch,
        grouped: GroupedRows,
        segments: Segments,
        numbers: pa.Int64Array,
        changed: list[int],
    ) -> None:
        starts, ends = segments.starts.to_pylist(), segments.ends.to_pylist()
        ordered = waiting if segments.order is None else waiting.take(segments.order)
        pieces = [positions(ends[code]).slice(starts[code]) for code in changed]
        chosen = pa.concat_arrays(pieces)
        pairs = list(zip(numbers.take(chosen).to_pylist(), stored_rows(ordered.take(chosen)), strict=True))
        values, at = [], 0
        for code in changed:
            size = ends[code] - starts[code]
            values.append(pairs[at : at + size])
            at += size
        self._state.scatter_field(self._field, self._rows_of([grouped.keys[code] for code in changed]), values)

    def _clear_keys(self, keys: list[Any]) -> None:
        rows = self._rows_of(keys)
        self._state.scatter_field(self._field, rows, [None] * len(keys))
        for key in keys:
            del self._written[key]
        if self._state.width == 1:
            self._state.remove(rows.list)

    def _rows_of(self, keys: list[Any]) -> KeyRows:
        columns = key_columns_of(keys, self._key_types)
        return self._state.rows_of(GroupedRows(pa.array([], pa.int32()), keys, columns))
