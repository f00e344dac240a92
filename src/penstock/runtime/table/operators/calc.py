"""Filter and projection (Flink's Calc) in one operator, on columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.expressions import (
    Call,
    EvaluationContext,
    Expr,
    Rows,
    UserCall,
    as_column,
    column_evaluator,
    evaluator,
    input_columns,
    shifted,
    walk,
)
from penstock.runtime.table.operator import TableOperator
from penstock.runtime.table.user_functions import close_functions, open_functions


class Calc(TableOperator):
    """Keeps rows for which ``condition`` is TRUE and computes ``projections`` of them. Either may be missing.

    Row kinds pass through: the two halves of an update are processed separately (T14, T16).
    """

    def __init__(
        self,
        condition: Expr | None,
        projections: Sequence[Expr] | None,
        schema: pa.Schema,
        context: EvaluationContext | None = None,
    ) -> None:
        self.condition = condition
        self.projections = None if projections is None else list(projections)
        self.schema = schema
        self.evaluation = EvaluationContext() if context is None else context
        self.reads_watermarks = any(
            isinstance(node, Call) and node.function == "CURRENT_WATERMARK"
            for expr in self._all()
            for node in walk(expr)
        )

    def _all(self) -> list[Expr]:
        return [*([] if self.condition is None else [self.condition]), *(self.projections or [])]

    def user_functions(self) -> list[Any]:
        """The user's functions in the expressions."""
        return [node.function for expr in self._all() for node in walk(expr) if isinstance(node, UserCall)]

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Compile the expressions."""
        super().setup(context, output)
        self._filter = None if self.condition is None else evaluator(self.condition)
        self._used: list[int] | None = None
        projections = self.projections
        if projections is not None and self.condition is not None:  # filter only the columns that are needed
            used = self._used = sorted(set().union(*map(input_columns, projections)))
            projections = [shifted(expr, used.index) for expr in projections]
        self._project = None if projections is None else [column_evaluator(expr) for expr in projections]

    def open(self) -> None:
        """Open the user's functions."""
        open_functions(self.user_functions(), self.context)

    def close(self) -> None:
        """Close the user's functions."""
        close_functions(self.user_functions(), self.context)

    def process(self, batch: ColumnBatch) -> None:
        """Evaluate on the whole batch."""
        context = self.evaluation
        context.now = self.context.processing_time()
        context.watermark = self.current_watermark
        context.batch_execution = self.context.batch_execution
        try:
            result = self._evaluate(batch, context)
        except Exception as error:
            raise user_error(self.context, error, "eval") from None
        self.emit(result)

    def _evaluate(self, batch: ColumnBatch, context: EvaluationContext) -> ColumnBatch:
        data, kinds = batch.data, batch.kinds
        if self._filter is not None:
            mask = as_column(self._filter(Rows(data, context)), len(batch), pa.bool_())
            if self._used is not None:
                data = _columns(data, self._used)
            data = data.filter(mask)  # NULL is not TRUE
            kinds = None if kinds is None else kinds.filter(mask)
        if self._project is not None:
            rows = Rows(data, context)
            data = pa.RecordBatch.from_arrays([project(rows) for project in self._project], schema=self.schema)
        if kinds is not None and not pc.any(kinds.cast(pa.bool_())).as_py():
            kinds = None
        return ColumnBatch(data, kinds)


def _columns(data: pa.RecordBatch, indices: list[int]) -> pa.RecordBatch:
    if not indices:  # a batch without columns would lose its number of rows
        return data
    return data.select(indices)
