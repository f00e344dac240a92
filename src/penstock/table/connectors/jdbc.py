"""The connector ``jdbc``: tables of databases (PostgreSQL, SQLite)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from decimal import Decimal
from typing import Any, ClassVar

from penstock.connectors.dbapi import Database, open_database, to_paramstyle
from penstock.connectors.ranges import RangeEnumerator, RangeSplit
from penstock.core.sink import Sink, SinkWriter, WriterInitContext
from penstock.core.source import Source, SourceReader, SourceSplit, SplitEnumerator
from penstock.core.table.type_rules import is_approximate, is_integer
from penstock.core.table.types import BooleanType, DataType, DateType, DecimalType, TimestampType, TimeType
from penstock.runtime.table.batch import INSERT
from penstock.table.connectors.base import (
    ConnectorFactory,
    LookupFunction,
    ResolvedTable,
    TableSink,
    TableSource,
    connector,
    is_true,
)
from penstock.table.connectors.jdbc_lookup import JdbcLookup, LookupCache
from penstock.table.formats.base import Change, batch_of_changes
from penstock.table.plan.nodes.base import Field
from penstock.table.table_config import milliseconds
from penstock.util.exceptions import ValidationException

_PARTITION_OPTIONS = ("column", "num", "lower-bound", "upper-bound")


def _database(options: dict[str, str]) -> Database:
    return open_database(options["url"], options.get("username"), options.get("password"), None)


def quoted(name: str) -> str:
    """Quote a name for SQL.

    >>> quoted("shop.orders")
    '"shop"."orders"'
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


# -- reading ----------------------------------------------------------------------------------------------------------


class JdbcSource(Source):
    """Reads the current rows of a table, with one query, or with one for each range of a column."""

    def __init__(self, table: ResolvedTable) -> None:
        self._table = table
        columns = ", ".join(quoted(field.name) for field in table.fields)
        self._query = f"SELECT {columns} FROM {quoted(table.options['table-name'])}"  # noqa: S608 - names are quoted
        self._ranges = _ranges(table)

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """Create an enumerator with one split per query, which is read as a whole."""
        return RangeEnumerator([RangeSplit(f"range-{place}", place, place + 1) for place in range(len(self._ranges))])

    def create_reader(self) -> SourceReader:
        """Create a reader that runs the queries."""
        return _JdbcReader(self._table, self._query, self._ranges)

    def initial_offset(self, split: SourceSplit) -> int:
        """Return the start of the query."""
        assert isinstance(split, RangeSplit)
        return split.start


def _ranges(table: ResolvedTable) -> list[tuple[int, int] | None]:
    given = [table.option(f"scan.partition.{key}") for key in _PARTITION_OPTIONS]
    if not any(given):
        return [None]
    if not all(given):
        raise ValidationException(
            "the options scan.partition.column, .num, .lower-bound and .upper-bound must be set together: "
            f"table '{table.name}' sets only some of them"
        )
    number, low, high = (int(text or 0) for text in given[1:])
    if low > high or number < 1:
        raise ValidationException(f"'scan.partition.*' of table '{table.name}' is not a valid range: {low} to {high}")
    step = -(-(high - low + 1) // number)
    return [(start, min(start + step - 1, high)) for start in range(low, high + 1, step)]


class _JdbcReader(SourceReader):
    def __init__(self, table: ResolvedTable, query: str, ranges: list[tuple[int, int] | None]) -> None:
        self._table = table
        self._query = query
        self._ranges = ranges
        self._size = int(table.option("scan.fetch-size", "0") or 0) or 4_096

    def read(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> Iterator[Any]:
        database = _database(self._table.options)
        for place in range(start_offset, end_offset):
            bounds = self._ranges[place]
            sql, parameters = self._query, ()
            if bounds is not None:
                column = quoted(self._table.options["scan.partition.column"])
                sql, parameters = f"{sql} WHERE {column} BETWEEN ? AND ?", bounds  # type: ignore[assignment]
            with closing(database.connect()) as connection:
                cursor = connection.cursor()
                cursor.execute(to_paramstyle(sql, database.paramstyle), parameters)
                while rows := cursor.fetchmany(self._size):
                    yield batch_of_changes(changes_of(rows, self._table.fields), self._table.fields), None


def changes_of(rows: Sequence[Sequence[Any]], fields: Sequence[Field]) -> list[Change]:
    """Convert rows of a driver to inserts with values of the table's types."""
    return [(INSERT, [_value(value, field.type) for value, field in zip(row, fields, strict=True)]) for row in rows]


def _value(value: Any, type_: DataType) -> Any:
    """Convert a value. SQLite has no booleans or times, and drivers differ in numbers."""
    if value is None:
        return None
    match type_:
        case BooleanType():
            return bool(value)
        case DecimalType():
            return Decimal(str(value))
        case DateType() if isinstance(value, str):
            return dt.date.fromisoformat(value)
        case TimeType() if isinstance(value, str):
            return dt.time.fromisoformat(value)
        case TimestampType() if isinstance(value, str):
            return dt.datetime.fromisoformat(value)
        case _ if is_integer(type_):
            return int(value)
        case _ if is_approximate(type_):
            return float(value)
    return value


class JdbcTableSource(TableSource):
    """Reads the current content of a table."""

    def __init__(self, table: ResolvedTable) -> None:
        self._table = table

    def create(self) -> Source:
        """Create the source."""
        return JdbcSource(self._table)

    def lookup(self, keys: Sequence[int]) -> LookupFunction | None:
        """Return the lookup, with one query per key."""
        table = self._table
        columns = ", ".join(quoted(field.name) for field in table.fields)
        where = " AND ".join(f"{quoted(table.fields[key].name)} = ?" for key in keys)
        query = f"SELECT {columns} FROM {quoted(table.options['table-name'])} WHERE {where}"  # noqa: S608 - quoted
        database = _database(table.options)
        return JdbcLookup(
            database,
            query,
            _Converter([field.type for field in table.fields]),
            _parameter if database.paramstyle == "qmark" else _same,
            _cache(table),
            int(table.options.get("lookup.max-retries", "3")),
        )


class _Converter:
    """Converts rows of a driver to values of the table's types."""

    def __init__(self, types: Sequence[DataType]) -> None:
        self._types = list(types)

    def __call__(self, row: Sequence[Any]) -> list[Any]:
        return [_value(value, type_) for value, type_ in zip(row, self._types, strict=True)]


def _same(value: Any) -> Any:
    return value


def _cache(table: ResolvedTable) -> LookupCache | None:
    kind = (table.option("lookup.cache", "NONE") or "NONE").upper()
    if kind == "NONE":
        return None
    if kind != "PARTIAL":
        raise ValidationException(f"'lookup.cache' of table '{table.name}' must be NONE or PARTIAL, got '{kind}'")
    lifetime = table.option("lookup.partial-cache.expire-after-write")
    return LookupCache(
        int(table.option("lookup.partial-cache.max-rows", "10000") or 10_000),
        None if lifetime is None else milliseconds(lifetime) / 1000,
        keeps_missing=is_true(table.option("lookup.partial-cache.cache-missing-key", "true")),
    )


# -- writing ----------------------------------------------------------------------------------------------------------


class JdbcChangesSink(Sink):
    """Writes changes to a table: upserts and deletions by key, or inserts without a key."""

    def __init__(self, table: ResolvedTable) -> None:
        self._table = table

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        """Create a writer that writes in groups."""
        return _JdbcChangesWriter(self._table)


class _JdbcChangesWriter(SinkWriter):
    """Writes each group in one transaction. After a failure, rows are written again; with a key this is harmless."""

    def __init__(self, table: ResolvedTable) -> None:
        options = table.options
        self._database = _database(options)
        name = quoted(options["table-name"])
        columns = [quoted(field.name) for field in table.fields]
        keys = [columns[place] for place in table.primary_key]
        marks = ", ".join("?" for _ in columns)
        insert = f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - names are quoted
        if keys:
            others = [column for column in columns if column not in keys]
            action = ", ".join(f"{column} = EXCLUDED.{column}" for column in others)
            insert += f" ON CONFLICT ({', '.join(keys)}) " + (f"DO UPDATE SET {action}" if others else "DO NOTHING")
        where = " AND ".join(f"{key} = ?" for key in keys)
        style = self._database.paramstyle
        self._insert = to_paramstyle(insert, style)
        self._delete = to_paramstyle(f"DELETE FROM {name} WHERE {where}", style)  # noqa: S608 - names are quoted
        self._keys = table.primary_key
        self._adapt = style == "qmark"
        self._size = int(options.get("sink.buffer-flush.max-rows", "100"))
        self._retries = int(options.get("sink.max-retries", "3"))
        self._rows: list[tuple[bool, list[Any]]] = []
        self._connection: Any = None

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        for value in values:
            removed = bool(value.get_row_kind().value & 1)
            self._rows.append((removed, [_parameter(one) for one in value] if self._adapt else list(value)))
        if len(self._rows) >= self._size > 0:
            self._write_out()

    def flush(self, end_of_input: bool) -> None:
        self._write_out()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _write_out(self) -> None:
        rows, self._rows = self._rows, []
        if not rows:
            return
        for attempt in range(self._retries + 1):
            try:
                if self._connection is None:
                    self._connection = self._database.connect()
                self._execute(self._connection, rows)
            except self._database.errors:
                if self._connection is not None:
                    with suppress(Exception):
                        self._connection.close()
                    self._connection = None
                if attempt == self._retries:
                    raise
            else:
                return

    def _execute(self, connection: Any, rows: list[tuple[bool, list[Any]]]) -> None:
        """Execute adjacent rows of one kind in one call, in order."""
        cursor = connection.cursor()
        start = 0
        while start < len(rows):
            removed, end = rows[start][0], start
            while end < len(rows) and rows[end][0] == removed:
                end += 1
            group = [row for _, row in rows[start:end]]
            if removed:
                cursor.executemany(self._delete, [tuple(row[key] for key in self._keys) for row in group])
            else:
                cursor.executemany(self._insert, [tuple(row) for row in group])
            start = end
        connection.commit()


def _parameter(value: Any) -> Any:
    """Convert a value to a parameter of SQLite's driver."""
    if isinstance(value, (Decimal, dt.time)):
        return str(value)
    return (
        value.isoformat(" ") if isinstance(value, dt.datetime) else str(value) if isinstance(value, dt.date) else value
    )


class JdbcTableSink(TableSink):
    """Accepts upserts if the table has a primary key, inserts otherwise."""

    rows = True

    def __init__(self, table: ResolvedTable) -> None:
        self._table = table
        self.accepts = "upsert" if table.primary_key else "insert"

    def create(self) -> Sink:
        """Create the sink."""
        return JdbcChangesSink(self._table)


@connector("jdbc")
class JdbcFactory(ConnectorFactory):
    """``'connector' = 'jdbc'``"""

    required: ClassVar[Sequence[str]] = ("url", "table-name")
    options: ClassVar[dict[str, str | None]] = {
        "driver": None,
        "username": None,
        "password": None,
        "connection.max-retry-timeout": "60 s",
        **{f"scan.partition.{key}": None for key in _PARTITION_OPTIONS},
        "scan.fetch-size": "0",
        "scan.auto-commit": "true",
        "lookup.cache": "NONE",
        "lookup.partial-cache.max-rows": None,
        "lookup.partial-cache.expire-after-write": None,
        "lookup.partial-cache.cache-missing-key": "true",
        "lookup.max-retries": "3",
        "sink.buffer-flush.max-rows": "100",
        "sink.buffer-flush.interval": "1 s",
        "sink.max-retries": "3",
    }

    def source(self, table: ResolvedTable) -> TableSource:
        """Return the table as a source."""
        return JdbcTableSource(table)

    def sink(self, table: ResolvedTable) -> TableSink:
        """Return the table as a sink."""
        return JdbcTableSink(table)
