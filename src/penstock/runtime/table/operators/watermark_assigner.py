"""Watermarks from a column (T42): the highest value of an expression so far, after the row that raised it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.watermark import MAX_WATERMARK, MIN_WATERMARK
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.expressions import EvaluationContext, Expr, Rows, column_evaluator
from penstock.runtime.table.operator import TableOperator


class WatermarkAssignerOperator(TableOperator):
    """Cuts batches where the watermark has grown by more than the interval; what is left is sent at a batch's end.

    Without an interval there is one watermark at the end of a batch: nothing downstream asks for more. The operator
    keeps nothing between batches: clocks downstream never go back.
    """

    makes_watermarks = True

    def __init__(self, column: int, expression: Expr, interval: int | None, context: EvaluationContext) -> None:
        self.column = column
        self.expression = expression
        self.interval = interval
        self.evaluation = context

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Compile the expression."""
        super().setup(context, output)
        self._evaluate = column_evaluator(self.expression)
        self.restart()

    def restart(self) -> None:
        """Every split has a clock of its own."""
        self._highest = MIN_WATERMARK
        self._emitted = MIN_WATERMARK

    def process(self, batch: ColumnBatch) -> None:
        """Pass rows on, cut after each row that moves the watermark."""
        self.evaluation.now = self.context.processing_time()
        try:
            column = self._evaluate(Rows(batch.data, self.evaluation))
        except Exception as error:
            raise user_error(self.context, error, "watermark") from None
        if self.context.batch_execution:
            self.emit(batch)
            return
        start = 0
        for end, watermark in self._cuts(milliseconds(column)):
            self.emit(batch[start:end])
            start = end
            self._send(watermark)
        self.emit(batch[start:])

    def _cuts(self, times: pa.Int64Array) -> Iterator[tuple[int, int]]:
        """(rows up to here, watermark after them)"""
        highest = pc.fill_null(pc.cumulative_max(times, start=self._highest, skip_nulls=True), self._highest)
        if not len(highest):
            return
        last = highest[-1].as_py()
        if self.interval is None:
            self._highest = max(self._highest, last)
            return
        if last <= self._emitted + self.interval:
            self._highest = max(self._highest, last)
            return
        emitted = self._emitted
        for position, time in enumerate(highest.to_pylist()):
            if time > emitted + self.interval or emitted == MIN_WATERMARK < time:
                emitted = time
                yield position + 1, time
        self._highest = max(self._highest, last)

    def _send(self, watermark: int) -> None:
        if watermark > self._emitted:
            self._emitted = watermark
            self.current_watermark = watermark
            self.output.emit_watermark(watermark)

    def process_watermark(self, watermark: int) -> None:
        """Watermarks from upstream end here, except the last one."""
        if watermark == MAX_WATERMARK:
            self._send(watermark)

    def end_batch(self) -> None:
        """Emit the watermark that is still pending."""
        if not self.context.batch_execution:
            self._send(self._highest)


def milliseconds(column: pa.Array) -> pa.Int64Array:
    """Timestamps as milliseconds since the epoch, rounded down."""
    micros = column.cast(pa.int64())
    thousand = pa.scalar(1000, pa.int64())
    quotient = pc.divide(micros, thousand)
    negative = pc.less(pc.subtract(micros, pc.multiply(quotient, thousand)), pa.scalar(0, pa.int64()))
    return pc.subtract(quotient, negative.cast(pa.int64()))
