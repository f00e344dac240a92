"""Watermarks from a column (T42): the maximum of an expression so far, after the row that raised it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.watermark import MAX_WATERMARK, MIN_WATERMARK
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.expressions import EvaluationContext, Expr, Rows, column_evaluator
from penstock.runtime.table.operator import TableOperator


class Cuts(Enum):
    """Where watermarks are emitted within a batch. There is always one at its end."""

    EXACT = "after every row that moves the clock by more than the interval"
    LATE = "the same, but only in front of rows that may be late: all others are the same to every operator"
    NONE = "nowhere: nothing downstream has a clock"


class WatermarkAssignerOperator(TableOperator):
    """Cuts batches where the watermark has advanced by more than the interval. The rest is emitted at the batch's end.

    It keeps no state between batches: clocks downstream never go back.
    """

    makes_watermarks = True

    def __init__(
        self, column: int, expression: Expr, interval: int, context: EvaluationContext, cuts: Cuts = Cuts.EXACT
    ) -> None:
        self.column = column
        self.expression = expression
        self.interval = interval
        self.evaluation = context
        self.cuts = cuts

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Compile the expression."""
        super().setup(context, output)
        self._evaluate = column_evaluator(self.expression)
        self.restart()

    def restart(self) -> None:
        """Reset the clock: the next split has its own."""
        self._highest = MIN_WATERMARK
        self._emitted = MIN_WATERMARK
        self._due = MIN_WATERMARK
        """The last watermark if all watermarks were emitted."""
        self._passed: list[pa.Int64Array] = []
        """The running maxima of rows so far, none of them late: their watermarks have not been computed yet."""

    def process(self, batch: ColumnBatch) -> None:
        """Pass rows on, cut after rows that advance the watermark."""
        self.evaluation.now = self.context.processing_time()
        try:
            column = self._evaluate(Rows(batch.data, self.evaluation))
        except Exception as error:
            raise user_error(self.context, error, "watermark") from None
        if self.context.batch_execution:
            self.emit(batch)
            return
        start = 0
        for end, watermark in self._places(batch, milliseconds(column)):
            self.emit(batch[start:end])
            start = end
            self._send(watermark)
        self.emit(batch[start:])

    def _places(self, batch: ColumnBatch, times: pa.Int64Array) -> list[tuple[int, int]]:
        """Return (end of rows, watermark after them) for each cut."""
        if not len(times):
            return []
        before = pa.scalar(self._highest, pa.int64())
        highest = pc.fill_null(pc.cumulative_max(times, start=before, skip_nulls=True), before)
        last = max(self._highest, highest[-1].as_py())
        if self.cuts is Cuts.NONE:
            self._highest = last
            return []
        if self.cuts is Cuts.EXACT:
            self._highest = last
            return [] if last <= self._due + self.interval else list(self._moves(highest))
        in_front = pa.concat_arrays([pa.array([before.as_py()], pa.int64()), highest.slice(0, len(highest) - 1)])
        # A session ends 1 ms after its last timestamp, and a row at its end still belongs to it: hence the 1.
        limit = pc.add(in_front, pa.scalar(1, pa.int64()))
        late = pc.less_equal(milliseconds(batch.column(self.column)), limit)
        self._highest = last
        rows = pc.indices_nonzero(late).to_pylist()
        if not rows:
            self._passed.append(highest)
            return []
        for passed in self._passed:
            for _ in self._moves(passed):
                pass
        self._passed.clear()
        moves = [(0, self._due), *self._moves(highest)]
        positions = [position for position, _ in moves]
        return [moves[index] for index in dict.fromkeys(bisect_right(positions, row) - 1 for row in rows)]

    def _moves(self, highest: pa.Int64Array) -> Iterator[tuple[int, int]]:
        for position, time in enumerate(highest.to_pylist()):
            if time > self._due + self.interval or self._due == MIN_WATERMARK < time:
                self._due = time
                yield position + 1, time

    def _send(self, watermark: int) -> None:
        if watermark > self._emitted:
            self._emitted = watermark
            self.current_watermark = watermark
            self.output.emit_watermark(watermark)

    def process_watermark(self, watermark: int) -> None:
        """Drop upstream watermarks, except the final one."""
        if watermark == MAX_WATERMARK:
            self._send(watermark)

    def end_batch(self) -> None:
        """Emit the pending watermark."""
        if not self.context.batch_execution:
            self._send(self._highest)
            self._due = self._highest
            self._passed.clear()


def milliseconds(column: pa.Array) -> pa.Int64Array:
    """Convert timestamps to milliseconds since the epoch, rounded down."""
    micros = column.cast(pa.int64())
    thousand = pa.scalar(1000, pa.int64())
    quotient = pc.divide(micros, thousand)
    negative = pc.less(pc.subtract(micros, pc.multiply(quotient, thousand)), pa.scalar(0, pa.int64()))
    return pc.subtract(quotient, negative.cast(pa.int64()))
