"""Converts column batches to Row objects, for the driver program and for streams after tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.common.types import Row, RowKind
from penstock.core.table.arrow import python_values
from penstock.core.table.types import DataType
from penstock.runtime.operators.operator import StreamOperator
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.operators.watermark_assigner import milliseconds

_KINDS = tuple(RowKind)


class OutputConversionOperator(StreamOperator):
    """Emits a list of Rows per batch. ``rowtime`` is the column with the timestamps of records."""

    def __init__(self, types: Sequence[DataType], names: Sequence[str] | None, rowtime: int | None = None) -> None:
        self.types = list(types)
        self.names = None if names is None else list(names)
        self.rowtime = rowtime

    def process_batch(self, values: Any, timestamps: Any) -> None:
        """Convert a batch."""
        stamps = None if self.rowtime is None else milliseconds(values.column(self.rowtime)).to_pylist()
        self.output.emit(rows_of(values, self.types, self.names), stamps)


def rows_of(batch: ColumnBatch, types: Sequence[DataType], names: Sequence[str] | None) -> list[Any]:
    """Return rows with their kinds."""
    columns = [python_values(column, type_) for column, type_ in zip(batch.data.columns, types, strict=True)]
    kinds = batch.kinds_or_inserts().to_pylist()
    values = zip(*columns, strict=True) if columns else [()] * len(batch)
    rows = []
    for kind, row_values in zip(kinds, values, strict=True):
        row = Row(*row_values)
        if names is not None:
            row.set_field_names(names)
        if kind:
            row.set_row_kind(_KINDS[kind])
        rows.append(row)
    return rows
