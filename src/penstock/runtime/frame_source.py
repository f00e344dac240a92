"""A source fed by the engine itself: record batches of a DataFrame turned into records in the source stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from penstock.common.types import Row


class FrameSource:
    """How record batches become records: the user's function, or Rows with the columns' names."""

    def __init__(self, to_records: Callable[[Any], list[Any]] | None) -> None:
        self._to_records = to_records

    def read(self, batches: Iterator[Any]) -> Iterator[list[Any]]:
        """Records of each batch."""
        for batch in batches:
            yield self._to_records(batch) if self._to_records is not None else rows_of(batch)


def rows_of(batch: Any) -> list[Row]:
    """The rows of a pyarrow.RecordBatch."""
    names = batch.schema.names
    rows = []
    for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        row = Row(*values)
        row.set_field_names(names)
        rows.append(row)
    return rows
