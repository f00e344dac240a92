"""ORC files, read and written with Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import orc

from penstock.common.errors import RecordFormatError
from penstock.common.serialization import BulkWriter, BulkWriterFactory, RowDataBulkWriterFactory
from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types
from penstock.core.table.type_information import as_row_type
from penstock.formats.arrow import arrow_schema, rows_from_arrow, to_arrow
from penstock.formats.file_format import BulkFormat

__all__ = ["OrcBulkWriters", "OrcColumnarRowInputFormat"]

_ROWS_AT_ONCE = 65_536


@lru_cache(maxsize=1_024)
def _shape(path: str, modified: int, size: int) -> tuple[int, int]:
    file = orc.ORCFile(path)
    return file.nstripes, file.nrows


class OrcColumnarRowInputFormat(BulkFormat):
    """Reads rows of ORC files for a FileSource; with a row type, only its columns. Units are stripes."""

    def __init__(self, row_type: RowTypeInfo | None = None) -> None:
        self._row_type = None if row_type is None else as_row_type(row_type)

    def _stripes_and_rows(self, path: str) -> tuple[int, int]:
        status = Path(path).stat()
        try:
            return _shape(path, status.st_mtime_ns, status.st_size)
        except (pa.ArrowInvalid, OSError) as error:
            raise RecordFormatError(f"{path} is not a complete ORC file: {error}") from None

    def length(self, path: str) -> int:
        return self._stripes_and_rows(path)[0]

    def advance(self, path: str, start: int, end: int, max_records: int) -> int:
        stripes, rows = self._stripes_and_rows(path)
        return min(end, start + max(1, max_records * stripes // max(rows, 1)))

    def record_count(self, path: str, start: int, end: int) -> int:
        stripes, rows = self._stripes_and_rows(path)
        return (end - start) * rows // max(stripes, 1)

    def read(self, path: str, start: int, end: int) -> Iterator[list[Any]]:
        file = orc.ORCFile(path)
        columns = None if self._row_type is None else self._row_type.get_field_names()
        for stripe in range(start, end):
            batch = file.read_stripe(stripe, columns)
            yield list(rows_from_arrow(batch if columns is None else batch.select(columns), self._row_type))

    def get_produced_type(self) -> TypeInformation:
        return self._row_type or Types.PICKLED_BYTE_ARRAY()


class OrcBulkWriters:
    """Creates writers of ORC files for a FileSink."""

    @staticmethod
    def for_row_type(
        row_type: RowTypeInfo, writer_properties: Any = None, hadoop_config: Any = None
    ) -> BulkWriterFactory:
        """Create a factory of writers for rows of the type."""
        return _OrcWriterFactory(as_row_type(row_type))


class _OrcWriterFactory(RowDataBulkWriterFactory):
    def create(self, stream: BinaryIO) -> BulkWriter:
        return _OrcWriter(stream, self.get_row_type())


class _OrcWriter(BulkWriter):
    def __init__(self, stream: BinaryIO, row_type: RowTypeInfo) -> None:
        self._writer = orc.ORCWriter(stream)
        self._row_type = row_type
        self._schema = arrow_schema(row_type)
        self._rows: list[Any] = []
        self._empty = True

    def add_element(self, element: Any) -> None:
        self._rows.append(element)
        if len(self._rows) >= _ROWS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        if self._rows or self._empty:
            rows, self._rows = self._rows, []
            self._empty = False
            self._writer.write(pa.Table.from_batches([to_arrow(rows, self._row_type, self._schema)]))

    def finish(self) -> None:
        try:
            self.flush()
        finally:
            self._writer.close()
