"""The base of table operators: column batches in, column batches out."""

from __future__ import annotations

from typing import Any, cast

from penstock.runtime.operators.operator import OperatorContext, Output, StreamOperator
from penstock.runtime.records.batch import Values
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.expiring_state import ExpiringColumnState


class TableOperator(StreamOperator):
    """Subclasses override :meth:`process` (and :meth:`process2` for a second input) and call :meth:`emit`.

    Row times are columns, so records have no separate timestamps.
    """

    columnar = True
    state_ttls: tuple[int, ...] = ()

    def expire_state(self, *ttls: int) -> None:
        """Let state expire that was not written for these milliseconds: one time for all fields, or one per field."""
        if any(ttls):
            self.state_ttls = ttls
            self.keyed_backend = ExpiringColumnState

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Configure the expiry of the state."""
        super().setup(context, output)
        if isinstance(context.keyed_backend, ExpiringColumnState):
            context.keyed_backend.configure(self.state_ttls, context.processing_time)

    def process(self, batch: ColumnBatch) -> None:
        """Process rows of the first (or only) input. The batch is never empty."""
        raise NotImplementedError

    def process2(self, batch: ColumnBatch) -> None:
        """Process rows of the second input."""
        raise NotImplementedError

    def process_batch(self, values: Any, timestamps: Any) -> None:
        """Process a batch from the task or the previous operator."""
        if len(values):
            self.process(values)

    def process_batch2(self, values: Any, timestamps: Any) -> None:
        """Process a batch of the second input."""
        if len(values):
            self.process2(values)

    def emit(self, batch: ColumnBatch) -> None:
        """Pass rows on."""
        if len(batch):
            self.output.emit(cast("Values", batch), None)
