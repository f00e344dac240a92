"""A Parquet file of job (n), for systems that have no sink of their own for it. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_ROWS_PER_GROUP = 65_536
_SCHEMA = pa.schema([("key", pa.int64()), ("window_end", pa.int64()), ("count", pa.int64())])


class ParquetFile:
    """Rows wait for a row group to be full."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(path, _SCHEMA, compression="snappy")
        self._rows: list[tuple[int, int, int]] = []

    def add(self, rows: Iterable[tuple[int, int, int]]) -> None:
        """Write them, sooner or later."""
        self._rows += rows
        if len(self._rows) >= _ROWS_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            columns = [pa.array(column, pa.int64()) for column in zip(*self._rows, strict=True)]
            self._writer.write_batch(pa.record_batch(columns, schema=_SCHEMA))
            self._rows = []

    def close(self) -> None:
        """Complete the file."""
        self._flush()
        self._writer.close()
