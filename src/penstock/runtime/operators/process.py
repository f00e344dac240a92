"""ProcessFunction: timestamps, clocks and side outputs for every record of a stream without keys (rule 6.3)."""

from __future__ import annotations

from typing import Any

from penstock.common.watermark import MIN_WATERMARK
from penstock.core.functions import ProcessFunction
from penstock.core.output_tag import OutputTag
from penstock.core.timerservice import TimerService
from penstock.runtime.operators.collector import Collector
from penstock.runtime.operators.emission import collect_results
from penstock.runtime.operators.function_operator import FunctionOperator
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.records.batch import Timestamps, Values
from penstock.runtime.timers.timer_service import UnkeyedTimerService


class UnkeyedContext:
    """The `ctx` of functions on streams without keys."""

    def __init__(self, collector: Collector, timer_service: UnkeyedTimerService) -> None:
        self._collector = collector
        self._timer_service = timer_service
        self.current_timestamp: int | None = None

    def timestamp(self) -> int | None:
        """Timestamp of the current record; None if it has none."""
        return self.current_timestamp

    def timer_service(self) -> TimerService:
        """Both clocks. Timers are rejected."""
        return self._timer_service

    def output(self, tag: OutputTag, value: Any) -> None:
        """Emit to a side output."""
        self._collector.side(tag, value, self.current_timestamp)


class ProcessContext(UnkeyedContext, ProcessFunction.Context):
    """The `ctx` of process_element."""


class UnkeyedProcessOperator(FunctionOperator):
    """Base of operators whose functions can read both clocks."""

    context_type: type[UnkeyedContext]

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Create clocks and `ctx`."""
        super().setup(context, output)
        self.collector = Collector(context, output)
        self.timer_service = UnkeyedTimerService(context.processing_time, context.operator_name)
        self.ctx = self.context_type(self.collector, self.timer_service)

    def process_watermark(self, watermark: int) -> None:
        """Advance the clock that the function can read."""
        self.timer_service.watermark = watermark
        super().process_watermark(watermark)

    def restore_watermark(self, watermark: int) -> None:
        """Continue with the event time of the last checkpoint."""
        super().restore_watermark(watermark)
        self.timer_service.watermark = watermark

    def flush(self) -> None:
        """Emit the collected records."""
        self.collector.flush()


class ProcessOperator(UnkeyedProcessOperator):
    """Runs a ProcessFunction."""

    reads_watermarks = True
    context_type = ProcessContext

    function: ProcessFunction

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Call the function for each record."""
        process_records(self.collector, self.context, self.ctx, self.function.process_element, values, timestamps)

    def restart(self) -> None:
        """Reset the clock: the next split has its own."""
        self.timer_service.watermark = MIN_WATERMARK


def process_records(
    collector: Collector,
    context: OperatorContext,
    ctx: Any,
    process: Any,
    values: Values,
    timestamps: Timestamps,
    method: str = "process_element",
) -> None:
    """Run a process function without keys over a batch and emit the results."""
    stamp = None
    try:
        for position, value in enumerate(values):
            if timestamps is not None:
                stamp = timestamps[position]
            ctx.current_timestamp = stamp
            collect_results(collector, process(value, ctx), stamp)
    except Exception as error:
        raise user_error(context, error, method) from None
    collector.flush()
