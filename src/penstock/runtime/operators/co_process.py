"""CoProcessFunction: two connected streams without keys."""

from __future__ import annotations

from penstock.core.functions import CoProcessFunction
from penstock.runtime.operators.process import UnkeyedContext, UnkeyedProcessOperator, process_records
from penstock.runtime.records.batch import Timestamps, Values


class CoProcessContext(UnkeyedContext, CoProcessFunction.Context):
    """The `ctx` of process_element1 and process_element2."""


class CoProcessOperator(UnkeyedProcessOperator):
    """Runs a CoProcessFunction."""

    context_type = CoProcessContext

    function: CoProcessFunction

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the first stream."""
        process = self.function.process_element1
        process_records(self.collector, self.context, self.ctx, process, values, timestamps, "process_element1")

    def process_batch2(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the second stream."""
        process = self.function.process_element2
        process_records(self.collector, self.context, self.ctx, process, values, timestamps, "process_element2")
