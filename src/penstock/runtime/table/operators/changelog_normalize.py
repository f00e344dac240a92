"""Completes upserts with the old row of every key from state (T112, Flink's ChangelogNormalize)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.table.batch import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, ColumnBatch
from penstock.runtime.table.column_state import ColumnStateBackend
from penstock.runtime.table.keys import group_rows
from penstock.runtime.table.operator import TableOperator

Row = tuple[Any, ...]


class ChangelogNormalizeOperator(TableOperator):
    """Keeps the last row of each key. An equal row is left out. A deletion is completed with all columns."""

    keyed = True
    stateful = True
    keyed_backend = ColumnStateBackend

    def __init__(self, keys: Sequence[int], schema: pa.Schema, *, emits_update_before: bool) -> None:
        self.keys = list(keys)
        self.schema = schema
        self.emits_update_before = emits_update_before

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the state."""
        super().setup(context, output)
        assert isinstance(context.keyed_backend, ColumnStateBackend)
        self._state: ColumnStateBackend = context.keyed_backend
        self._state.define("rows", [(None, None)])

    def process(self, batch: ColumnBatch) -> None:
        """Compare every row with the previous row of its key."""
        grouped = group_rows(batch, self.keys)
        rows = self._state.rows_of(grouped)
        (known,) = self._state.gather(rows)
        changes: list[tuple[int, Row]] = []
        for group, (kind, row) in zip(grouped.codes.to_pylist(), batch.rows(), strict=True):
            old = known[group]
            if kind in (DELETE, UPDATE_BEFORE):
                known[group] = None
                if old is not None:
                    changes.append((DELETE, old))
            elif old is None:
                known[group] = row
                changes.append((INSERT, row))
            elif old != row:
                known[group] = row
                if self.emits_update_before:
                    changes.append((UPDATE_BEFORE, old))
                changes.append((UPDATE_AFTER, row))
        self._state.scatter(rows, [known])
        self._state.remove([row for row, left in zip(rows.list, known, strict=True) if left is None])
        if changes:
            self._emit(changes)

    def _emit(self, changes: list[tuple[int, Row]]) -> None:
        columns = [
            pa.array([row[place] for _, row in changes], self.schema.field(place).type)
            for place in range(len(self.schema))
        ]
        kinds = pa.array([kind for kind, _ in changes], pa.int8())
        self.emit(ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=self.schema), kinds))
