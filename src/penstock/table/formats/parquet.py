"""The format ``parquet``: files in columns, read by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, ClassVar

import pyarrow as pa

from penstock.common.serialization import BulkWriter, BulkWriterFactory
from penstock.core.table.arrow import arrow_type
from penstock.formats.file_format import BulkFormat, FileFormat
from penstock.runtime.table.batch import ColumnBatch
from penstock.table.formats.base import TableFormat, table_format
from penstock.table.plan.nodes.base import Field, schema_of

_ROWS_PER_GROUP = 65_536


@table_format("parquet")
class ParquetFormat(TableFormat):
    """Files whose data stays in columns from disk to operator. A column that is missing in a file is NULL."""

    options: ClassVar[dict[str, str | None]] = {"compression": "SNAPPY", "utc-timezone": "false"}
    reads_columns = True
    file_suffix = ".parquet"

    def file_format(self) -> FileFormat | None:
        """Return the format that reads row groups."""
        return _ParquetFiles(self.fields)

    def bulk_writer(self) -> BulkWriterFactory | None:
        """Return the writers of row groups."""
        return _ParquetWriters(self.fields, self.given["compression"].lower())


class _ParquetFiles(BulkFormat):
    """The unit of a file is a row group."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = tuple(fields)

    def length(self, path: str) -> int:
        return int(_open(path).metadata.num_row_groups)

    def advance(self, path: str, start: int, end: int, max_records: int) -> int:
        metadata = _open(path).metadata
        rows, place = 0, start
        while place < end and (place == start or rows < max_records):
            rows += metadata.row_group(place).num_rows
            place += 1
        return place

    def record_count(self, path: str, start: int, end: int) -> int:
        metadata = _open(path).metadata
        return sum(metadata.row_group(place).num_rows for place in range(start, end))

    def read(self, path: str, start: int, end: int) -> Iterator[Any]:
        file = _open(path)
        known = set(file.schema_arrow.names)
        schema = schema_of(self._fields)
        wanted = [field.name for field in self._fields if field.name in known]
        for place in range(start, end):
            table = file.read_row_group(place, columns=wanted).combine_chunks()
            columns = []
            for field in self._fields:
                type_ = arrow_type(field.type)
                if field.name not in known:
                    columns.append(pa.nulls(len(table), type_))
                    continue
                column = table.column(field.name)
                whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
                columns.append(whole if whole.type == type_ else whole.cast(type_))
            yield ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=schema))


def _open(path: str) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetFile(path)


class _ParquetWriters(BulkWriterFactory):
    def __init__(self, fields: Sequence[Field], compression: str) -> None:
        self._fields = tuple(fields)
        self._compression = compression

    def create(self, stream: BinaryIO) -> BulkWriter:
        return _ParquetWriter(stream, self._fields, self._compression)


class _ParquetWriter(BulkWriter):
    def __init__(self, stream: BinaryIO, fields: Sequence[Field], compression: str) -> None:
        import pyarrow.parquet as pq

        self._schema = pa.schema([pa.field(one.name, arrow_type(one.type)) for one in fields])
        self._file: Any = pq.ParquetWriter(stream, self._schema, compression=compression)
        self._waiting: list[pa.RecordBatch] = []

    def add_element(self, element: Any) -> None:
        self._waiting.append(pa.RecordBatch.from_arrays(element.columns, schema=self._schema))
        if sum(map(len, self._waiting)) >= _ROWS_PER_GROUP:
            self._write()

    def _write(self) -> None:
        self._file.write_table(pa.Table.from_batches(self._waiting, self._schema))
        self._waiting = []

    def finish(self) -> None:
        if self._waiting:
            self._write()
        self._file.close()
