"""Parquet files, read and written with Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.common.errors import RecordFormatError
from penstock.common.serialization import BulkWriter, BulkWriterFactory, RowDataBulkWriterFactory
from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types
from penstock.core.table.type_information import as_row_type
from penstock.formats.arrow import arrow_schema, rows_from_arrow, to_arrow
from penstock.formats.avro import AvroSchema
from penstock.formats.avro_columns import AvroColumns
from penstock.formats.file_format import BulkFormat, StreamFormat

__all__ = [
    "AvroParquetReaders",
    "AvroParquetWriters",
    "ParquetBulkWriters",
    "ParquetColumnarRowInputFormat",
]

_ROWS_AT_ONCE = 8_192
_ROWS_PER_GROUP = 65_536


@lru_cache(maxsize=1_024)
def _group_ends(path: str, modified: int, size: int) -> list[int]:
    """Return the row after each row group. The footer of a file is read once."""
    metadata = pq.read_metadata(path)
    return list(accumulate(metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)))


def group_ends(path: str) -> list[int]:
    """Return the row after each row group of a file."""
    status = Path(path).stat()
    try:
        return _group_ends(path, status.st_mtime_ns, status.st_size)
    except pa.ArrowInvalid as error:
        raise RecordFormatError(f"{path} is not a complete Parquet file: {error}") from None


class _ParquetReading:
    """Reads ranges of rows. If possible, ranges end with row groups, so that no group is decoded twice."""

    columns: list[str] | None = None

    def length(self, path: str) -> int:
        ends = group_ends(path)
        return ends[-1] if ends else 0

    def advance(self, path: str, start: int, end: int, max_records: int) -> int:
        wanted = min(end, start + max_records)
        aligned = [row for row in group_ends(path) if start < row <= wanted]
        return aligned[-1] if aligned else wanted

    def record_count(self, path: str, start: int, end: int) -> int:
        return end - start

    def batches(self, path: str, start: int, end: int) -> Iterator[Any]:
        """Yield the record batches of a range of rows."""
        ends = group_ends(path)
        begins = [0, *ends[:-1]]
        groups = [index for index, row in enumerate(ends) if row > start and begins[index] < end]
        with pq.ParquetFile(path) as file:
            missing = [name for name in self.columns or () if name not in file.schema_arrow.names]
            if missing:
                raise RecordFormatError(
                    f"{path} has no column {missing[0]!r}, its columns are {', '.join(file.schema_arrow.names)}"
                )
            position = begins[groups[0]] if groups else end
            for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, row_groups=groups, columns=self.columns):
                low, high = max(start - position, 0), min(end - position, batch.num_rows)
                position += batch.num_rows
                if low < high:
                    part = batch.slice(low, high - low)
                    yield part if self.columns is None else part.select(self.columns)


class ParquetColumnarRowInputFormat(_ParquetReading, BulkFormat):
    """Reads rows of Parquet files for a FileSource; with a row type, only its columns.

    The parameters after the first are PyFlink's. They have no effect, because they are Arrow's defaults.
    """

    def __init__(
        self,
        row_type: RowTypeInfo | None = None,
        hadoop_config: Any = None,
        batch_size: int = 2048,
        is_utc_timestamp: bool = False,
        is_case_sensitive: bool = True,
    ) -> None:
        self._row_type = None if row_type is None else as_row_type(row_type)
        self.columns = None if self._row_type is None else self._row_type.get_field_names()

    def read(self, path: str, start: int, end: int) -> Iterator[list[Any]]:
        for batch in self.batches(path, start, end):
            yield list(rows_from_arrow(batch, self._row_type))

    def get_produced_type(self) -> TypeInformation:
        return self._row_type or Types.PICKLED_BYTE_ARRAY()


class AvroParquetReaders:
    """Reads Parquet files as generic records."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> StreamFormat:
        """Create a format whose records are dicts with the fields of the schema."""
        return _GenericParquetFormat(schema)


class _GenericParquetFormat(_ParquetReading, StreamFormat):
    def __init__(self, schema: AvroSchema) -> None:
        self._avro = AvroColumns(schema)
        self.columns = self._avro.schema.names

    def read(self, path: str, start: int, end: int) -> Iterator[list[Any]]:
        for batch in self.batches(path, start, end):
            yield [self._avro.from_columns(record) for record in batch.to_pylist(maps_as_pydicts="strict")]


class ParquetBulkWriters:
    """Creates writers of Parquet files for a FileSink."""

    @staticmethod
    def for_row_type(
        row_type: RowTypeInfo, hadoop_config: Any = None, utc_timestamp: bool = False, compression: str = "snappy"
    ) -> BulkWriterFactory:
        """Create a factory of writers for rows of the type."""
        row_type = as_row_type(row_type)
        return _ParquetWriterFactory(row_type, arrow_schema(row_type), compression)


class AvroParquetWriters:
    """Writes generic records to Parquet files."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Create a factory of writers for dicts with the fields of the schema."""
        avro = AvroColumns(schema)
        names = avro.schema.names
        row_type = Types.ROW_NAMED(names, [Types.PICKLED_BYTE_ARRAY() for _ in names])
        return _ParquetWriterFactory(row_type, avro.schema, "snappy", avro)


class _ParquetWriterFactory(RowDataBulkWriterFactory):
    def __init__(self, row_type: RowTypeInfo, schema: Any, compression: str, avro: AvroColumns | None = None) -> None:
        super().__init__(row_type)
        self.schema = schema
        self.avro = avro
        self._compression = compression

    def create(self, stream: BinaryIO) -> BulkWriter:
        return _ParquetWriter(pq.ParquetWriter(stream, self.schema, compression=self._compression), self)


class _ParquetWriter(BulkWriter):
    """Collects rows until a row group is full."""

    def __init__(self, writer: Any, factory: _ParquetWriterFactory) -> None:
        self._writer = writer
        self._row_type = factory.get_row_type()
        self._schema = factory.schema
        self._avro = factory.avro
        self._rows: list[Any] = []

    def add_element(self, element: Any) -> None:
        self._rows.append(element if self._avro is None else self._avro.to_columns(element))
        if len(self._rows) >= _ROWS_PER_GROUP:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, []
            self._writer.write_batch(to_arrow(rows, self._row_type, self._schema))

    def finish(self) -> None:
        try:
            self.flush()
        finally:
            self._writer.close()
