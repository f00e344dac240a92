"""Operators before sinks: upserts by the key of the sink, and no NULL in NOT NULL columns (T123, T124)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.errors import PenstockError
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.table.batch import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, ColumnBatch, positions
from penstock.runtime.table.column_state import ColumnStateBackend
from penstock.runtime.table.keys import group_rows
from penstock.runtime.table.operator import TableOperator
from penstock.runtime.table.stored_rows import StoredRow, columns_of, stored_rows


class UpsertMaterializer(TableOperator):
    """Stores, in order, all rows that share a key of the sink. The sink has the last of them.

    Rows with different upsert keys may have the same key in the sink, and rows of different tasks arrive in any order.
    Therefore a retracted row need not be the one that the sink has.
    """

    keyed = True
    stateful = True
    keyed_backend = ColumnStateBackend

    def __init__(
        self, keys: Sequence[int], upsert_key: Sequence[int], schema: pa.Schema, *, state_ttl: int = 0
    ) -> None:
        self.keys = list(keys)
        self.upsert_key = list(upsert_key)
        """The columns that identify the row which an update replaces. Without them, it is the equal row."""
        self.schema = schema

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the state."""
        super().setup(context, output)
        assert isinstance(context.keyed_backend, ColumnStateBackend)
        self._state: ColumnStateBackend = context.keyed_backend
        self._state.define("rows", [(None, None)])

    def process(self, batch: ColumnBatch) -> None:
        """Update the lists of the rows' keys, and emit changes of the last row of a list."""
        grouped = group_rows(batch, self.keys)
        rows = self._state.rows_of(grouped)
        (known,) = self._state.gather(rows)
        lists: list[list[StoredRow]] = [list(one or ()) for one in known]
        kinds = batch.kinds_or_inserts().to_pylist()
        changes: list[tuple[int, StoredRow]] = []
        for group, kind, row in zip(grouped.codes.to_pylist(), kinds, stored_rows(batch), strict=True):
            if kind in (INSERT, UPDATE_AFTER):
                changes.append(self._added(lists[group], row))
            else:
                change = self._removed(lists[group], row)
                if change is not None:
                    changes.append(change)
        self._state.scatter(rows, [[tuple(one) or None for one in lists]])
        self._state.remove([row for row, left in zip(rows.list, lists, strict=True) if not left])
        if changes:
            columns = columns_of([row for _, row in changes], self.schema)
            sent = pa.array([kind for kind, _ in changes], pa.int8())
            self.emit(ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=self.schema), sent))

    def _added(self, rows: list[StoredRow], row: StoredRow) -> tuple[int, StoredRow]:
        kind = UPDATE_AFTER if rows else INSERT
        place = self._place(rows, row) if self.upsert_key else None
        if place is not None:
            del rows[place]
        rows.append(row)
        return kind, row

    def _removed(self, rows: list[StoredRow], row: StoredRow) -> tuple[int, StoredRow] | None:
        place = self._place(rows, row)
        if place is None:  # its state has expired, or it never arrived
            return None
        was_last = place == len(rows) - 1
        old = rows.pop(place)
        if not rows:
            return DELETE, old
        return (UPDATE_AFTER, rows[-1]) if was_last else None

    def _place(self, rows: list[StoredRow], row: StoredRow) -> int | None:
        wanted = self._identity(row)
        return next((place for place, known in enumerate(rows) if self._identity(known) == wanted), None)

    def _identity(self, row: StoredRow) -> Any:
        return tuple(row[column] for column in self.upsert_key) if self.upsert_key else row


class MovedRowsOperator(TableOperator):
    """For a sink whose key has more columns than the upsert key: deletes a row whose key changes under the old key.

    The ``-U`` of a row that keeps its key is dropped, because the following ``+U`` replaces the row.
    """

    def __init__(self, keys: Sequence[int]) -> None:
        self.keys = list(keys)

    def process(self, batch: ColumnBatch) -> None:
        """Drop ``-U``, or convert it to a deletion."""
        if batch.kinds is None:
            self.emit(batch)
            return
        before = pc.equal(batch.kinds, pa.scalar(UPDATE_BEFORE, pa.int8()))
        if not before.true_count:
            self.emit(batch)
            return
        following = pc.min_element_wise(pc.add(positions(len(batch)), 1), len(batch) - 1)
        stays = pc.equal(batch.kinds.take(following), pa.scalar(UPDATE_AFTER, pa.int8()))
        for key in self.keys:
            column = batch.column(key)
            stays = pc.and_(stays, pc.fill_null(pc.equal(column, column.take(following)), False))
        kinds = pc.if_else(before, pa.scalar(DELETE, pa.int8()), batch.kinds)
        self.emit(ColumnBatch(batch.data, kinds).filter(pc.invert(pc.and_(before, stays))))


class NotNullEnforcer(TableOperator):
    """Fails the job for NULL in a NOT NULL column, or drops the row (T123)."""

    def __init__(self, columns: Sequence[tuple[int, str]], *, drops: bool) -> None:
        self.columns = list(columns)
        self.drops = drops

    def process(self, batch: ColumnBatch) -> None:
        """Check for NULL."""
        for place, name in self.columns:
            if not batch.column(place).null_count:
                continue
            if not self.drops:
                raise PenstockError(
                    f"Column '{name}' is NOT NULL, however, a null value is being written into it by operator "
                    f"'{self.context.operator_name}'. Set 'table.exec.sink.not-null-enforcer' to 'DROP' to leave out "
                    "such rows"
                )
            batch = batch.filter(batch.column(place).is_valid())
        self.emit(batch)
