"""Table aggregates: when a group changes, all its rows are retracted and emitted again (T103)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.common.types import Row
from penstock.common.watermark import MAX_WATERMARK
from penstock.core.table.arrow import python_values, to_column
from penstock.core.table.types import DataType
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.table.batch import DELETE, INSERT, ColumnBatch
from penstock.runtime.table.column_state import ColumnStateBackend
from penstock.runtime.table.keys import group_rows, key_columns_of
from penstock.runtime.table.operator import TableOperator
from penstock.runtime.table.user_functions import close_functions, open_functions

_I64 = pa.int64()


class GroupTableAggFunction(TableOperator):
    """Stores the number of rows and one accumulator per key."""

    keyed = True
    stateful = True
    keyed_backend = ColumnStateBackend

    def __init__(
        self,
        keys: Sequence[int],
        function: Any,
        arguments: Sequence[int],
        types: Sequence[DataType],
        schema: pa.Schema,
    ) -> None:
        self.keys = list(keys)
        self.function = function
        self.arguments = list(arguments)
        self.types = list(types)
        self.schema = schema

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the state."""
        super().setup(context, output)
        assert isinstance(context.keyed_backend, ColumnStateBackend)
        self._state: ColumnStateBackend = context.keyed_backend
        self._state.define("aggregates", [(_I64, 0), (None, None)])
        self._key_types = [self.schema.field(index).type for index in range(len(self.keys))]
        self._result_types = self.function.result_type.field_types()

    def open(self) -> None:
        """Open the function."""
        open_functions([self.function], self.context)

    def close(self) -> None:
        """Close the function."""
        close_functions([self.function], self.context)

    def process(self, batch: ColumnBatch) -> None:
        """Process the rows one by one: retract the old rows of the group, then emit the new ones."""
        try:
            self._process(batch)
        except Exception as error:
            raise user_error(self.context, error, "accumulate") from None

    def _process(self, batch: ColumnBatch) -> None:
        grouped = group_rows(batch, self.keys)
        rows = self._state.rows_of(grouped)
        counts, accumulators = self._state.gather(rows)
        counts = counts.to_pylist()
        values = [
            python_values(batch.column(index), type_) for index, type_ in zip(self.arguments, self.types, strict=True)
        ]
        arguments = list(zip(*values, strict=True)) if values else [()] * len(batch)
        removed = [kind & 1 for kind in batch.kinds_or_inserts().to_pylist()]
        function, emits = self.function.function, not self.context.batch_execution
        shown: dict[int, list[Any]] = {}
        changes: list[tuple[int, int, Sequence[Any]]] = []
        for position, group in enumerate(grouped.codes.to_pylist()):
            value = arguments[position]
            accumulator = accumulators[group]
            if accumulator is None:
                if removed[position]:
                    continue  # there is nothing to retract
                accumulator = accumulators[group] = function.create_accumulator()
            elif emits:
                before = shown.get(group)
                before = self._rows(accumulator) if before is None else before
                changes += [(DELETE, group, row) for row in before]
            if removed[position]:
                function.retract(accumulator, *value)
                counts[group] -= 1
            else:
                function.accumulate(accumulator, *value)
                counts[group] += 1
            if not counts[group]:
                accumulators[group] = None
                shown.pop(group, None)
            elif emits:
                shown[group] = self._rows(accumulator)
                changes += [(INSERT, group, row) for row in shown[group]]
        self._state.scatter(rows, [pa.array(counts, _I64), accumulators])
        self._state.remove([row for row, count in zip(rows.list, counts, strict=True) if not count])
        self._emit(grouped.keys, changes)

    def _rows(self, accumulator: Any) -> list[Any]:
        found = self.function.function.emit_value(accumulator)
        return [] if found is None else [self._fields(one) for one in found]

    def _fields(self, one: Any) -> Sequence[Any]:
        fields = tuple(one) if isinstance(one, (tuple, list, Row)) else (one,)
        if len(fields) != len(self._result_types):
            raise TypeError(
                f"table aggregate '{self.function.name}' yielded {one!r}: "
                f"expected a row of {len(self._result_types)} values"
            )
        return fields

    def _emit(self, keys: list[Any], changes: list[tuple[int, int, Sequence[Any]]]) -> None:
        if not changes:
            return
        groups = pa.array([group for _, group, _ in changes], _I64)
        columns = [column.take(groups) for column in key_columns_of(keys, self._key_types)]
        columns += [
            to_column([row[place] for _, _, row in changes], type_) for place, type_ in enumerate(self._result_types)
        ]
        kinds = [kind for kind, _, _ in changes]
        data = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        self.emit(ColumnBatch(data, pa.array(kinds, pa.int8()) if any(kinds) else None))

    # -- batch execution ----------------------------------------------------------------------------------------

    def process_watermark(self, watermark: int) -> None:
        """In batch execution, emit results before the final watermark."""
        if watermark == MAX_WATERMARK:
            self._emit_results()
        super().process_watermark(watermark)

    def end_input(self) -> None:
        """Emit the results of a batch job."""
        self._emit_results()

    def _emit_results(self) -> None:
        if not self.context.batch_execution:
            return
        rows = self._state.all_rows()
        if not rows.list:
            return
        accumulators = self._state.gather(rows)[1]
        keys = [self._state.keys_by_row[row] for row in rows.list]
        changes = [
            (INSERT, group, row) for group, accumulator in enumerate(accumulators) for row in self._rows(accumulator)
        ]
        self._emit(keys, changes)
        self._state.remove(rows.list)
