"""Rows of the program itself: `from_elements` and VALUES."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from penstock.connectors.ranges import RangeEnumerator, range_split
from penstock.core.source import Source, SourceReader, SourceSplit, SplitEnumerator
from penstock.runtime.table.batch import ColumnBatch

_CHUNK = 16_384


class ValuesSource(Source):
    """The rows of a column batch, in order."""

    def __init__(self, batch: ColumnBatch) -> None:
        self._batch = batch

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """Create an enumerator with one split, to keep the order of the rows."""
        return RangeEnumerator([range_split(0, len(self._batch))])

    def create_reader(self) -> SourceReader:
        """Create a reader of positions."""
        return _ValuesReader(self._batch)

    def initial_offset(self, split: SourceSplit) -> int:
        """Return the position of the first row."""
        return 0


class _ValuesReader(SourceReader):
    def __init__(self, batch: ColumnBatch) -> None:
        self._batch = batch

    def read(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> Iterator[Any]:
        for low in range(start_offset, end_offset, _CHUNK):
            yield self._batch[low : min(low + _CHUNK, end_offset)], None


def batch_of(columns: list[pa.Array], schema: pa.Schema) -> ColumnBatch:
    """Return columns as a batch."""
    return ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=schema))
