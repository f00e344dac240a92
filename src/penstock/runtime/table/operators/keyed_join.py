"""The common part of all joins: rows of both sides by equal columns, and results built from positions."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.column_fields import KeyRows
from penstock.runtime.table.column_state import ColumnStateBackend
from penstock.runtime.table.expressions import EvaluationContext, Expr
from penstock.runtime.table.keys import GroupedRows, group_rows, key_columns_of
from penstock.runtime.table.operator import TableOperator
from penstock.runtime.table.pairs import ColumnOf, PairCondition

_I64 = pa.int64()


class DueKeys:
    """The keys that are due at a time. Kept in memory beside the state."""

    __slots__ = ("_keys", "_times")

    def __init__(self) -> None:
        self._keys: dict[int, dict[Any, None]] = {}
        self._times: list[int] = []

    def add(self, time: int, key: Any) -> None:
        """Add a key."""
        keys = self._keys.get(time)
        if keys is None:
            keys = self._keys[time] = {}
            heappush(self._times, time)
        keys[key] = None

    def pop_until(self, time: int) -> list[Any]:
        """Remove and return the keys that are due up to a time, each once."""
        due: dict[Any, None] = {}
        while self._times and self._times[0] <= time:
            due.update(self._keys.pop(heappop(self._times)))
        return list(due)

    @property
    def next(self) -> int | None:
        """Return the first time."""
        return self._times[0] if self._times else None


class BatchKeys:
    """The keys of a batch and their rows in state. Keys with NULL have no state and no partner."""

    __slots__ = ("codes", "grouped", "live", "rows")

    def __init__(self, grouped: GroupedRows, live: list[int] | None, rows: KeyRows) -> None:
        self.grouped = grouped
        self.codes: pa.Int64Array = grouped.codes.cast(_I64)
        self.live = live
        """The numbers of the keys that may have partners; None if all may."""
        self.rows = rows

    def spread(self, values: list[Any]) -> list[Any]:
        """Spread the values of the live keys to the positions of all keys."""
        if self.live is None:
            return values
        result: list[Any] = [None] * len(self.grouped.keys)
        for place, value in zip(self.live, values, strict=True):
            result[place] = value
        return result

    def gathered(self, values: list[Any]) -> list[Any]:
        """Return the values of the live keys."""
        return values if self.live is None else [values[place] for place in self.live]


class KeyedJoinOperator(TableOperator):
    """Base of joins: two fields of state per key, one for each side. None if the side has no rows."""

    keyed = True
    stateful = True
    keyed_backend = ColumnStateBackend
    state_name = "join"

    def __init__(
        self,
        types: tuple[Sequence[pa.DataType], Sequence[pa.DataType]],
        keys: tuple[Sequence[int], Sequence[int]],
        key_types: Sequence[pa.DataType],
        null_safe: Sequence[bool],
        condition: Expr | None,
        schema: pa.Schema,
        context: EvaluationContext,
    ) -> None:
        self.types = types
        """The columns of both sides. Inputs may have further columns that are only keys."""
        self.keys = keys
        self.key_types = list(key_types)
        self.null_safe = list(null_safe)
        self.condition = condition
        self.schema = schema
        self.evaluation = context

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the state."""
        super().setup(context, output)
        assert isinstance(context.keyed_backend, ColumnStateBackend)
        self._state: ColumnStateBackend = context.keyed_backend
        self._state.define(self.state_name, [(None, None), (None, None)])
        self._pair_condition = None
        if self.condition is not None:
            self._pair_condition = PairCondition(self.condition, len(self.types[0]), self.evaluation)

    # -- keys ---------------------------------------------------------------------------------------------------

    def keys_of(self, number: int, batch: ColumnBatch) -> BatchKeys:
        """Return the keys of a batch of one side."""
        grouped = group_rows(batch, self.keys[number])
        mask = None
        for column, null_safe in zip(grouped.columns, self.null_safe, strict=True):
            if not null_safe and column.null_count:
                mask = column.is_valid() if mask is None else pc.and_(mask, column.is_valid())
        if mask is None:
            return BatchKeys(grouped, None, self._state.rows_of(grouped))
        live = pc.indices_nonzero(mask).to_pylist()
        columns = [column.filter(mask) for column in grouped.columns]
        some = GroupedRows(grouped.codes, [grouped.keys[place] for place in live], columns)
        return BatchKeys(grouped, live, self._state.rows_of(some))

    def rows_of_keys(self, keys: list[Any]) -> KeyRows:
        """Return the rows of state of some keys."""
        return self._state.rows_of(GroupedRows(pa.array([], pa.int32()), keys, key_columns_of(keys, self.key_types)))

    def write(self, rows: KeyRows, fields: dict[int, list[Any]], others: list[Any] | None = None) -> None:
        """Store the fields of sides, and remove keys without rows.

        ``others`` is the field of the other side if only one is written.
        """
        if not rows.list:
            return
        for place, values in fields.items():
            self._state.scatter_field(place, rows, values)
        columns = [*fields.values(), *([] if others is None else [others])]
        empty = [
            row for row, *values in zip(rows.list, *columns, strict=True) if all(value is None for value in values)
        ]
        if empty:
            self._state.remove(empty)

    # -- pairs --------------------------------------------------------------------------------------------------

    def test(self, left: ColumnOf, right: ColumnOf, count: int) -> pa.BooleanArray | None:
        """Return which pairs satisfy the condition; None if all do."""
        if self._pair_condition is None or not count:
            return None
        self.evaluation.now = self.context.processing_time()
        try:
            return self._pair_condition.mask(left, right, count)
        except Exception as error:
            raise user_error(self.context, error, "eval") from None

    def result(
        self,
        left: ColumnOf | None,
        right: ColumnOf | None,
        left_rows: pa.Int64Array,
        right_rows: pa.Int64Array,
        kinds: pa.Int8Array | None = None,
    ) -> ColumnBatch:
        """Build result rows from positions on both sides. NULL means no row. Missing columns are NULL or absent."""
        columns: list[pa.Array] = []
        for number, (column, rows) in enumerate(((left, left_rows), (right, right_rows))):
            width = len(self.types[number])
            if number == 1 and len(self.schema) == len(self.types[0]):  # semi and anti joins
                break
            if column is None:
                columns += [pa.nulls(len(rows), self.types[number][index]) for index in range(width)]
            else:
                columns += [column(index).take(rows) for index in range(width)]
        return ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=self.schema), kinds)
