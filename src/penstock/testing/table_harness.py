"""A harness for table operators: rows in, changelog out.

>>> from penstock.runtime.table.aggregates.numeric import CountAggregate
>>> from penstock.runtime.table.operators.group_agg import AggregateCall, GroupAggFunction
>>> schema = pa.schema([("word", pa.string()), ("count", pa.int64())])
>>> operator = GroupAggFunction([0], [AggregateCall(CountAggregate(), [])], schema)
>>> harness = TableOperatorHarness(operator, pa.schema([("word", pa.string())]))
>>> harness.process(("+I", "a"), ("+I", "a"))
>>> harness.take()
[('+I', 'a', 1), ('-U', 'a', 1), ('+U', 'a', 2)]
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.runtime.operators.operator import StreamOperator
from penstock.runtime.table.batch import ColumnBatch
from penstock.testing.harness import TwoInputOperatorHarness

KINDS = ("+I", "-U", "+U", "-D")


class _ChangelogOutput:
    """Stores column batches as (kind, values), and watermarks as ints."""

    def __init__(self) -> None:
        self.elements: list[Any] = []

    def emit(self, values: Any, timestamps: Any) -> None:
        """Store rows."""
        self.elements += [(KINDS[kind], *row) for kind, row in values.rows()]

    def emit_watermark(self, watermark: int) -> None:
        """Store a watermark."""
        self.elements.append(watermark)

    def emit_status(self, *, idle: bool) -> None:
        """Store the idle status."""
        self.elements.append(idle)


class TableOperatorHarness(TwoInputOperatorHarness):
    """Drives a table operator with rows ``(kind, value, value, ...)``, such as ``("+I", 1, "a")``."""

    def __init__(self, operator: StreamOperator, *schemas: pa.Schema, **settings: Any) -> None:
        super().__init__(operator, **settings)
        self._schemas = schemas
        self._changelog = operator.output = _ChangelogOutput()

    def process(self, *rows: tuple[Any, ...]) -> None:
        """Process rows of the first input, in one batch."""
        self.operator.process_batch(self.batch(0, rows), None)  # type: ignore[arg-type]

    def process2(self, *rows: tuple[Any, ...]) -> None:
        """Process rows of the second input, in one batch."""
        self.operator.process_batch2(self.batch(1, rows), None)  # type: ignore[arg-type]

    def batch(self, index: int, rows: tuple[tuple[Any, ...], ...]) -> ColumnBatch:
        """Return rows as a batch of one of the schemas."""
        schema = self._schemas[index]
        columns = list(zip(*(row[1:] for row in rows), strict=True)) if rows else [()] * len(schema)
        arrays = [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)]
        kinds = [KINDS.index(row[0]) for row in rows]
        return ColumnBatch(
            pa.RecordBatch.from_arrays(arrays, schema=schema), pa.array(kinds, pa.int8()) if any(kinds) else None
        )

    def take(self) -> list[Any]:
        """Return everything emitted since the last call: rows as ``(kind, value, ...)``, watermarks as ints."""
        elements, self._changelog.elements = self._changelog.elements, []
        return elements
