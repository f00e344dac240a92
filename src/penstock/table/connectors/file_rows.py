"""Prepares rows for files: splits batches by partition and encodes them as a whole, before the sink."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, BinaryIO
from urllib.parse import quote

import pyarrow as pa

from penstock.common.serialization import BulkWriter, BulkWriterFactory, Encoder
from penstock.connectors.file_system.sink_options import BucketAssigner, BucketContext
from penstock.core.table.types import DataType
from penstock.runtime.operators.operator import StreamOperator
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.keys import group_rows
from penstock.runtime.table.operators.output_conversion import rows_of
from penstock.runtime.table.segments import Segments
from penstock.table.formats.base import TableFormat

Part = tuple[str, Any]
"""A directory and the data for its file: bytes, or a batch of columns for formats that write whole files."""


class FilePartsOperator(StreamOperator):
    """Converts column batches to parts of files."""

    def __init__(
        self,
        table_format: TableFormat,
        stored: Sequence[int],
        partitions: Sequence[tuple[str, int, DataType, Callable[[Any], str | None]]],
        default: str,
        *,
        in_columns: bool,
    ) -> None:
        self._format = table_format
        self._stored = list(stored)
        self._partitions = list(partitions)
        self._default = default
        self._in_columns = in_columns

    def process_batch(self, values: Any, timestamps: Any) -> None:
        """Emit one part for each directory."""
        batch: ColumnBatch = values
        if not len(batch):
            return
        parts = [(directory, self._encoded(rows)) for directory, rows in self._divided(batch)]
        self.output.emit(parts, None)

    def _divided(self, batch: ColumnBatch) -> list[tuple[str, ColumnBatch]]:
        if not self._partitions:
            return [("", batch)]
        grouped = group_rows(batch, [place for _, place, _, _ in self._partitions])
        segments = Segments.of(grouped.codes, len(grouped.keys))
        rows = batch if segments.order is None else batch.take(segments.order)
        bounds = zip(segments.starts.to_pylist(), segments.ends.to_pylist(), strict=True)
        return [(self._directory(rows[start : start + 1]), rows[start:end]) for start, end in bounds]

    def _directory(self, row: ColumnBatch) -> str:
        parts = []
        for name, place, type_, write in self._partitions:
            single = ColumnBatch(row.data.select([place]))
            value = rows_of(single, [type_], None)[0][0]
            text = self._default if value is None or value == "" else quote(write(value) or "", safe=" -_.,+@()")
            parts.append(f"{name}={text}")
        return "/".join(parts)

    def _encoded(self, rows: ColumnBatch) -> Any:
        stored = ColumnBatch(rows.data.select(self._stored), rows.kinds)
        return stored.data if self._in_columns else self._format.encode_batch(stored)


class DirectoryOfPart(BucketAssigner):
    """Uses the directory of a part as the bucket."""

    def get_bucket_id(self, element: Part, context: BucketContext) -> str:
        """Return the directory."""
        return element[0]


class BytesOfPart(Encoder):
    """Writes the bytes of a part."""

    def encode(self, value: Part, stream: BinaryIO) -> None:
        """Write the bytes."""
        stream.write(value[1])


class ColumnsOfPart(BulkWriterFactory):
    """Creates writers for the column batches of parts."""

    def __init__(self, inner: BulkWriterFactory) -> None:
        self._inner = inner

    def create(self, stream: BinaryIO) -> BulkWriter:
        """Create a writer for one file."""
        return _ColumnsWriter(self._inner.create(stream))


class _ColumnsWriter(BulkWriter):
    def __init__(self, inner: BulkWriter) -> None:
        self._inner = inner

    def add_element(self, element: Part) -> None:
        data: pa.RecordBatch = element[1]
        self._inner.add_element(data)

    def finish(self) -> None:
        self._inner.finish()
