"""CoProcessFunction: two connected streams without keys."""

from __future__ import annotations

from penstock.core.functions import CoProcessFunction
from penstock.runtime.collector import Collector
from penstock.runtime.operator import OperatorContext, Output, Timestamps, Values
from penstock.runtime.operators.function_operator import FunctionOperator
from penstock.runtime.operators.process import UnkeyedContext, process_records
from penstock.runtime.timer_service import UnkeyedTimerService


class CoProcessContext(UnkeyedContext, CoProcessFunction.Context):
    """The `ctx` of process_element1 and process_element2."""


class CoProcessOperator(FunctionOperator):
    """Runs a CoProcessFunction."""

    function: CoProcessFunction

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Create clocks and context."""
        super().setup(context, output)
        self.collector = Collector(context, output)
        self.timer_service = UnkeyedTimerService(context.processing_time, context.operator_name)
        self.ctx = CoProcessContext(self.collector, self.timer_service)

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the first stream."""
        process = self.function.process_element1
        process_records(self.collector, self.context, self.ctx, process, values, timestamps, "process_element1")

    def process_batch2(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the second stream."""
        process = self.function.process_element2
        process_records(self.collector, self.context, self.ctx, process, values, timestamps, "process_element2")

    def process_watermark(self, watermark: int) -> None:
        """Keep the clock that the function can read."""
        self.timer_service.watermark = watermark
        super().process_watermark(watermark)

    def restore_watermark(self, watermark: int) -> None:
        """Continue with the event time of the last checkpoint."""
        super().restore_watermark(watermark)
        self.timer_service.watermark = watermark

    def flush(self) -> None:
        """Emit what was collected."""
        self.collector.flush()
