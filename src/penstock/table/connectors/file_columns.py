"""Columns that are not in the files of a table: partitions (in the path) and file metadata."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from penstock.core.table.arrow import arrow_type, to_column
from penstock.core.table.types import DataTypes
from penstock.formats.file_format import BulkFormat, FileFormat
from penstock.runtime.table.batch import ColumnBatch
from penstock.table.plan.nodes.base import Field, schema_of

_METADATA: dict[str, tuple[Any, Callable[[Path], Any]]] = {
    "file.path": (DataTypes.STRING(), str),
    "file.name": (DataTypes.STRING(), lambda path: path.name),
    "file.size": (DataTypes.BIGINT(), lambda path: path.stat().st_size),
    "file.modification-time": (
        DataTypes.TIMESTAMP_LTZ(3),
        lambda path: dt.datetime.fromtimestamp(path.stat().st_mtime, dt.UTC),
    ),
}


class FileColumns(BulkFormat):
    """Adds these columns to the columns that another format reads."""

    def __init__(
        self,
        inner: FileFormat,
        base: str,
        fields: Sequence[Field],
        partitions: Mapping[str, Callable[[str], Any]],
        metadata: Sequence[str],
        default: str,
    ) -> None:
        self._inner = inner
        self._base = base
        self._fields = tuple(fields)
        self._partitions = dict(partitions)
        self._metadata = list(metadata)
        self._default = default
        self.split_units = inner.split_units

    def length(self, path: str) -> int:
        return self._inner.length(path)

    def advance(self, path: str, start: int, end: int, max_records: int) -> int:
        return self._inner.advance(path, start, end, max_records)

    def record_count(self, path: str, start: int, end: int) -> int:
        return self._inner.record_count(path, start, end)

    def read(self, path: str, start: int, end: int) -> Iterator[Any]:
        if not self._partitions and not self._metadata:
            yield from self._inner.read(path, start, end)
            return
        in_path = self._of_path(path)
        extra = [Field(key, _METADATA[key][0]) for key in self._metadata]
        schema = schema_of([*self._fields, *extra])
        for batch in self._inner.read(path, start, end):
            stored = iter(batch.data.columns)  # type: ignore[attr-defined]
            count = len(batch)
            columns = [
                _repeated(in_path[field.name], field, count) if field.name in self._partitions else next(stored)
                for field in self._fields
            ]
            columns += [_repeated(_METADATA[field.name][1](Path(path)), field, count) for field in extra]
            yield ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=schema), batch.kinds)  # type: ignore[attr-defined]

    def _of_path(self, path: str) -> dict[str, Any]:
        values: dict[str, Any] = dict.fromkeys(self._partitions)
        for part in Path(path).relative_to(self._base).parts[:-1]:
            name, _, text = part.partition("=")
            if name in self._partitions and text != self._default:
                values[name] = self._partitions[name](unquote(text))
        return values


def _repeated(value: Any, field: Field, count: int) -> pa.Array:
    if value is None:
        return pa.nulls(count, arrow_type(field.type))
    return pa.repeat(to_column([value], field.type)[0], count)
