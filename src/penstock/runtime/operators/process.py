"""ProcessFunction: timestamps, clocks and side outputs for every record of a stream without keys (spec: 6.3)."""

from __future__ import annotations

from typing import Any

from penstock.core.functions import ProcessFunction
from penstock.core.output_tag import OutputTag
from penstock.core.timerservice import TimerService
from penstock.runtime.collector import Collector
from penstock.runtime.operator import OperatorContext, Output, StreamOperator, Timestamps, Values
from penstock.runtime.operators.udf import close_function, open_function
from penstock.runtime.timer_service import UnkeyedTimerService
from penstock.runtime.user_errors import user_error


class ProcessContext(ProcessFunction.Context):
    """The `ctx` of process_element."""

    def __init__(self, collector: Collector, timer_service: UnkeyedTimerService) -> None:
        self._collector = collector
        self._timer_service = timer_service
        self.current_timestamp: int | None = None

    def timestamp(self) -> int | None:  # type: ignore[override]
        """Timestamp of the current record; None if it has none."""
        return self.current_timestamp

    def timer_service(self) -> TimerService:
        """Both clocks; timers are refused."""
        return self._timer_service

    def output(self, tag: OutputTag, value: Any) -> None:
        """Emit to a side output."""
        self._collector.side(tag, value, self.current_timestamp)


class ProcessOperator(StreamOperator):
    """Runs a ProcessFunction."""

    def __init__(self, function: ProcessFunction) -> None:
        self.function = function

    def user_functions(self) -> list[Any]:
        """The process function."""
        return [self.function]

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Create clocks and context."""
        super().setup(context, output)
        self.collector = Collector(context, output)
        self.timer_service = UnkeyedTimerService(context.processing_time, context.operator_name)
        self.ctx = ProcessContext(self.collector, self.timer_service)

    def open(self) -> None:
        """Open the function."""
        open_function(self.function, self.context)

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Call the function for each record."""
        process_batch(self.collector, self.context, self.ctx, self.function.process_element, values, timestamps)

    def process_watermark(self, watermark: int) -> None:
        """Keep the clock that the function can read."""
        self.timer_service.watermark = watermark
        super().process_watermark(watermark)

    def flush(self) -> None:
        """Emit what was collected."""
        self.collector.flush()

    def close(self) -> None:
        """Close the function."""
        close_function(self.function)


def process_batch(
    collector: Collector,
    context: OperatorContext,
    ctx: Any,
    process: Any,
    values: Values,
    timestamps: Timestamps,
    method: str = "process_element",
) -> None:
    """Run a process function without keys over a batch and emit the results."""
    append = collector.values.append
    ctx.current_timestamp = None
    try:
        if timestamps is None:
            for value in values:
                results = process(value, ctx)
                if results is not None:
                    for item in results:
                        if type(item) is tuple and len(item) == 2 and type(item[0]) is OutputTag:
                            collector.side(item[0], item[1], None)
                        else:
                            append(item)
        else:
            for value, stamp in zip(values, timestamps, strict=True):
                ctx.current_timestamp = stamp
                collector.collect_all(process(value, ctx), stamp)
    except Exception as error:
        raise user_error(context, error, method) from None
    collector.flush()
