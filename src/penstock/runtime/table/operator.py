"""The base of table operators: column batches in, column batches out."""

from __future__ import annotations

from typing import Any, cast

from penstock.runtime.operators.operator import StreamOperator
from penstock.runtime.records.batch import Values
from penstock.runtime.table.batch import ColumnBatch


class TableOperator(StreamOperator):
    """Subclasses override :meth:`process` (and :meth:`process2` for a second input) and call :meth:`emit`.

    Row times are columns, so records have no timestamps beside them.
    """

    columnar = True

    def process(self, batch: ColumnBatch) -> None:
        """Rows of the first (or only) input, never none."""
        raise NotImplementedError

    def process2(self, batch: ColumnBatch) -> None:
        """Rows of the second input."""
        raise NotImplementedError

    def process_batch(self, values: Any, timestamps: Any) -> None:
        """What a task or the operator in front calls."""
        if len(values):
            self.process(values)

    def process_batch2(self, values: Any, timestamps: Any) -> None:
        """The same for the second input."""
        if len(values):
            self.process2(values)

    def emit(self, batch: ColumnBatch) -> None:
        """Pass rows on."""
        if len(batch):
            self.output.emit(cast("Values", batch), None)
