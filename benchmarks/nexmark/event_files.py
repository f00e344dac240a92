"""Nexmark's events in Parquet files, for SQL: one file for each subtask, in order of event time.

Blocks of events are made once and kept in a directory, for they take longer to make than to read. A file takes every
n-th epoch of the generator, so that the files advance side by side, as the partitions of a log do. Needs pyarrow.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.nexmark import generator
from benchmarks.nexmark.sql import AUCTION, BID, COLUMNS, PERSON

BLOCK = 100_000
ROWS_PER_GROUP = 50_000
_TYPES = {
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "STRING": pa.string(),
    "TIMESTAMP(3)": pa.timestamp("ms"),
}
SCHEMA = pa.schema([(name, _TYPES[type_]) for name, type_ in COLUMNS])
_NO_PERSON, _NO_AUCTION, _NO_BID = (None,) * 6, (None,) * 8, (None,) * 5


def event(index: int, events_per_second: int) -> tuple[Any, ...]:
    """The row of the event at this place of the stream."""
    if generator.is_person(index):
        *columns, time = generator.person(index, events_per_second)
        return PERSON, *columns, *_NO_AUCTION, *_NO_BID, time
    if generator.is_auction(index):
        number, item, lot, initial, reserve, time, *others = generator.auction(index, events_per_second)
        return AUCTION, *_NO_PERSON, number, item, lot, initial, reserve, *others, *_NO_BID, time
    *columns, time = generator.bid(index, events_per_second)
    return BID, *_NO_PERSON, *_NO_AUCTION, *columns, time


def table(first: int, last: int, events_per_second: int) -> pa.Table:
    """The events from one place up to another."""
    rows = [event(index, events_per_second) for index in range(first, last)]
    columns = [
        pa.array(column, pa.int64() if pa.types.is_timestamp(field.type) else field.type).cast(field.type)
        for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def write(directory: Path, blocks: Path, records: int, files: int, events_per_second: int = 10_000) -> Path:
    """The files of so many events, at least; the directory they are in."""
    target = directory / f"events-{records}-{files}"
    if target.exists():
        return target
    target.mkdir(parents=True)
    writers = [pq.ParquetWriter(target / f"part-{number}.parquet", SCHEMA) for number in range(files)]
    waiting: list[list[pa.Table]] = [[] for _ in writers]
    for start in range(0, records, BLOCK):
        some = _block(blocks, start, events_per_second).slice(0, records - start)
        for number in range(files):
            waiting[number].append(
                some.filter([place // generator.EPOCH % files == number for place in range(len(some))])
            )
            if sum(map(len, waiting[number])) >= ROWS_PER_GROUP or start + BLOCK >= records:
                writers[number].write_table(pa.concat_tables(waiting[number]), row_group_size=ROWS_PER_GROUP)
                waiting[number].clear()
    for writer in writers:
        writer.close()
    return target


def _block(blocks: Path, start: int, events_per_second: int) -> pa.Table:
    path = blocks / f"{events_per_second}-{start}.parquet"
    if not path.exists():
        blocks.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        pq.write_table(table(start, start + BLOCK, events_per_second), partial)
        partial.rename(path)
    return pq.read_table(path)
