"""MATCH_RECOGNIZE with the operator of complex event processing: rows become events, matches become rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from penstock.core.cep import IterativeCondition, Match
from penstock.runtime.cep.handlers import MatchHandler
from penstock.runtime.cep.operator import CepOperator
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.expressions import EvaluationContext, Expr, Rows, column_evaluator
from penstock.runtime.table.keys import key_column
from penstock.runtime.table.match_values import MatchValueReader
from penstock.runtime.table.operators.watermark_assigner import milliseconds
from penstock.runtime.table.sort_keys import SortColumn, comparable_keys
from penstock.runtime.table.stored_rows import StoredRow, columns_of, stored_rows


class MatchOperator(CepOperator):
    """Finds patterns in the rows of each key. Emits partition keys and values of each match."""

    columnar = True

    def __init__(
        self, *arguments: Any, time_column: int | None, order: Sequence[SortColumn], schema: pa.Schema, **named: Any
    ) -> None:
        super().__init__(*arguments, event_time=time_column is not None, **named)
        self.time_column = time_column
        self.order = list(order)
        """The sort order of rows with the same time."""
        self.schema = schema
        if self.order:
            self.comparator = _by_sort_key

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Convert matches to columns."""
        super().setup(context, _ColumnsOutput(output, self.schema))
        self.output = output

    def process_batch(self, values: Any, timestamps: Any) -> None:
        """Convert rows to events. The last element of an event is its sort key."""
        batch: ColumnBatch = values
        if not len(batch):
            return
        times = None
        if self.time_column is not None:
            column = batch.column(self.time_column)
            if column.null_count:
                raise ValueError("the rowtime of a row is NULL: filter such rows out, or compute a value")
            times = milliseconds(column).to_pylist()
        keys = comparable_keys(batch.data.columns, self.order) if self.order else [None] * len(batch)
        events = [(*row, key) for row, key in zip(stored_rows(batch), keys, strict=True)]
        super().process_batch(events, times)


def _by_sort_key(left: Any, right: Any) -> int:
    return int(left[-1] > right[-1]) - int(left[-1] < right[-1])


class _ColumnsOutput:
    """Converts rows to columns."""

    def __init__(self, output: Output, schema: pa.Schema) -> None:
        self._output = output
        self._schema = schema

    def emit(self, values: Any, timestamps: Any) -> None:
        """Emit rows of matches."""
        if values:
            data = pa.RecordBatch.from_arrays(columns_of(values, self._schema), schema=self._schema)
            self._output.emit(ColumnBatch(data), None)  # type: ignore[arg-type]

    def emit_watermark(self, watermark: int) -> None:
        """Pass the watermark on."""
        self._output.emit_watermark(watermark)

    def emit_status(self, *, idle: bool) -> None:
        """Pass the status on."""
        self._output.emit_status(idle=idle)


class MatchRows(MatchHandler):
    """Creates the row of a match."""

    method = "MEASURES"
    handles_timeouts = False

    def __init__(self, variables: Sequence[str], keys: Sequence[int], values: Sequence[MatchValueReader]) -> None:
        self.functions = []
        self._variables = list(variables)
        self._keys = list(keys)
        self._values = list(values)

    def matched(self, match: Match[Any], ctx: Any) -> Iterable[Any]:
        """Return partition keys, then values."""

        def rows_of(variable: str | None) -> list[StoredRow]:
            if variable is not None:
                return match.get(variable, [])
            return [row for name in self._variables for row in match.get(name, [])]

        first = rows_of(None)[0]
        return [(*(first[index] for index in self._keys), *(value.read(rows_of) for value in self._values))]

    def timed_out(self, match: Match[Any], ctx: Any) -> Iterable[Any]:
        """Return nothing: partial matches are not emitted."""
        return []


class FlagCondition(IterativeCondition[Any]):
    """A condition on the row alone, which was computed in columns."""

    def __init__(self, column: int) -> None:
        self.column = column

    def filter(self, value: Any, ctx: Any = None) -> bool:
        """Whether the condition is TRUE."""
        return value[self.column] is True


class RowsCondition(IterativeCondition[Any]):
    """A condition that reads previously matched rows: an expression over the row, followed by these values."""

    def __init__(
        self,
        variable: str,
        variables: Sequence[str],
        expression: Expr,
        columns: Sequence[tuple[int, pa.DataType]],
        values: Sequence[tuple[MatchValueReader, pa.DataType]],
        context: EvaluationContext,
    ) -> None:
        self._variable = variable
        self._variables = list(variables)
        self._expression = expression
        self._columns = list(columns)
        self._values = list(values)
        self._context = context
        self._evaluate: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_evaluate": None}

    def filter(self, value: Any, ctx: Any) -> bool:
        """Evaluate the expression for one row."""
        if self._evaluate is None:
            self._evaluate = column_evaluator(self._expression)

        def rows_of(variable: str | None) -> list[StoredRow]:
            if variable is None:
                return [row for name in self._variables for row in ctx.get_events_for_pattern(name)] + [value]
            rows = list(ctx.get_events_for_pattern(variable))
            return [*rows, value] if variable == self._variable else rows

        arrays = [key_column([value[index]], type_) for index, type_ in self._columns]
        arrays += [key_column([reader.read(rows_of)], type_) for reader, type_ in self._values]
        self._context.now = ctx.current_processing_time()
        data = pa.RecordBatch.from_arrays(arrays, names=[str(index) for index in range(len(arrays))])
        return bool(self._evaluate(Rows(data, self._context))[0].as_py())
