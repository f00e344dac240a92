"""SinkFunction: a function called for every record, without transactions."""

from __future__ import annotations

from typing import Any

from penstock.core.functions import Function, SinkFunction
from penstock.runtime.operators.function_operator import FunctionOperator
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.records.batch import Timestamps, Values


class SinkContext(SinkFunction.Context):
    """The `context` of invoke."""

    def __init__(self, operator: SinkFunctionOperator) -> None:
        self._operator = operator
        self.current_timestamp: int | None = None

    def current_processing_time(self) -> int:
        """Processing time in ms."""
        return self._operator.context.processing_time()

    def current_watermark(self) -> int:
        """The sink's event time in ms."""
        return self._operator.current_watermark

    def timestamp(self) -> int | None:
        """Timestamp of the current record; None if it has none."""
        return self.current_timestamp


class SinkFunctionOperator(FunctionOperator):
    """Runs a SinkFunction, or a plain function of the record."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.reads_watermarks = isinstance(function, SinkFunction)

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Create the context."""
        super().setup(context, output)
        self.sink_context = SinkContext(self)

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Call the function for each record."""
        function: Any = self.function
        sink_context = self.sink_context
        try:
            if not isinstance(function, Function):
                for value in values:
                    function(value)
                return
            invoke = function.invoke  # type: ignore[attr-defined]
            for position, value in enumerate(values):
                sink_context.current_timestamp = None if timestamps is None else timestamps[position]
                invoke(value, sink_context)
        except Exception as error:
            raise user_error(self.context, error, "invoke") from None
