"""JdbcSink: writes rows to a database, at-least-once, by upsert, or exactly-once.

Exactly-once works with any transactional database: the rows that a subtask writes in a checkpoint, and a note about
them, are one transaction. A batch that runs again finds the note and writes nothing. The note contains the driver's
epoch: once a driver writes one, tasks of earlier drivers, which may still be running, can write nothing more.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from penstock.common.errors import FencedError, InvalidProgramError, shorten
from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types
from penstock.connectors.dbapi import Connect, Database, open_database, to_paramstyle
from penstock.core.sink import DeliveryGuarantee, Sink, SinkWriter, WriterInitContext
from penstock.formats.record_classes import record_fields

__all__ = ["JdbcConnectionOptions", "JdbcExecutionOptions", "JdbcSink"]

_NOTES = "penstock_checkpoints"


@dataclass(frozen=True)
class JdbcConnectionOptions:
    """The address and credentials of a database."""

    url: str = ""
    driver_name: str = ""
    user_name: str | None = None
    password: str | None = None
    connect: Connect | None = None

    def get_db_url(self) -> str:
        return self.url

    def get_driver_name(self) -> str:
        return self.driver_name

    def get_user_name(self) -> str | None:
        return self.user_name

    def get_password(self) -> str | None:
        return self.password

    def __repr__(self) -> str:
        return f"JdbcConnectionOptions({self.url!r})"  # without the password, since it may be logged

    class JdbcConnectionOptionsBuilder:
        """Collects the settings of a connection."""

        def __init__(self) -> None:
            self._options = JdbcConnectionOptions()

        def with_url(self, url: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the URL: ``jdbc:postgresql://host:port/database`` or ``jdbc:sqlite:/path``."""
            self._options = replace(self._options, url=url)
            return self

        def with_driver_name(self, driver_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Accepted for compatibility: there are no Java drivers here."""
            self._options = replace(self._options, driver_name=driver_name)
            return self

        def with_user_name(self, user_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            self._options = replace(self._options, user_name=user_name)
            return self

        def with_password(self, password: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            self._options = replace(self._options, password=password)
            return self

        def with_connection_provider(self, connect: Connect) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set a function that returns a new connection of any DB-API driver. It runs in the tasks."""
            self._options = replace(self._options, connect=connect)
            return self

        def build(self) -> JdbcConnectionOptions:
            if not self._options.url and self._options.connect is None:
                raise InvalidProgramError("a database needs with_url() or with_connection_provider()")
            return self._options


@dataclass(frozen=True)
class JdbcExecutionOptions:
    """The size of batches of rows, and the number of retries."""

    batch_interval_ms: int = 0
    batch_size: int = 5_000
    max_retries: int = 3

    def get_batch_interval_ms(self) -> int:
        return self.batch_interval_ms

    def get_batch_size(self) -> int:
        return self.batch_size

    def get_max_retries(self) -> int:
        return self.max_retries

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        return JdbcExecutionOptions()

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        return JdbcExecutionOptions.Builder()

    class Builder:
        """Collects the execution options."""

        def __init__(self) -> None:
            self._options = JdbcExecutionOptions()

        def with_batch_interval_ms(self, batch_interval_ms: int) -> JdbcExecutionOptions.Builder:
            """Set how long rows wait, or 0 for no limit. The end of a micro-batch writes them in any case.

            An exactly-once sink writes once for each micro-batch.
            """
            self._options = replace(self._options, batch_interval_ms=_at_least(0, batch_interval_ms, "batch interval"))
            return self

        def with_batch_size(self, size: int) -> JdbcExecutionOptions.Builder:
            """Set the number of rows per round trip."""
            self._options = replace(self._options, batch_size=_at_least(1, size, "batch size"))
            return self

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.Builder:
            """Set how often to retry on a new connection before the job fails."""
            self._options = replace(self._options, max_retries=_at_least(0, max_retries, "number of retries"))
            return self

        def build(self) -> JdbcExecutionOptions:
            return self._options


def _at_least(least: int, value: int, label: str) -> int:
    if value < least:
        raise InvalidProgramError(f"the {label} must be at least {least}, got {value}")
    return value


class JdbcSink(Sink):
    """Executes a statement for each record, which is a row with a field for each question mark.

    >>> from penstock.common import Types
    >>> connection = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("jdbc:sqlite:/tmp/t.db").build()
    >>> kind = Types.ROW_NAMED(["sensor", "temp"], [Types.STRING(), Types.DOUBLE()])
    >>> sink = JdbcSink.upsert_sink("temperatures", kind, ["sensor"], connection)
    >>> print(sink.sql)
    INSERT INTO temperatures (sensor, temp) VALUES (?, ?) ON CONFLICT (sensor) DO UPDATE SET temp = excluded.temp
    """

    def __init__(
        self,
        sql: str | None = None,
        type_info: TypeInformation | None = None,
        connection: JdbcConnectionOptions | None = None,
        execution: JdbcExecutionOptions | None = None,
        guarantee: DeliveryGuarantee = DeliveryGuarantee.AT_LEAST_ONCE,
        *,
        url: str = "",
        user: str | None = None,
        password: str | None = None,
        connect: Connect | None = None,
        record: type | None = None,
        table: str | None = None,
        key: str | Sequence[str] = (),
        exactly_once: bool = False,
    ) -> None:
        """:param sql: a statement with a ``?`` for each field
        :param url: ``jdbc:postgresql://host:port/database`` or ``jdbc:sqlite:/path``
        :param connect: a function that opens a connection of a DB-API driver, instead of ``url``
        :param record: the class of the records, such as a dataclass, instead of ``type_info``
        :param table: the table to insert into, instead of ``sql``; its columns are named after the fields
        :param key: with ``table``: the unique fields; the last record with these values remains
        :param exactly_once: write each record exactly once, with any statement
        """
        if record is not None:
            names = list(record_fields(record))
            type_info = Types.ROW_NAMED(names, [Types.PICKLED_BYTE_ARRAY()] * len(names))
        if table is not None:
            if type_info is None:
                raise InvalidProgramError("with table=..., a JDBC sink needs the class of its records: record=Order")
            sql = _insert(table, type_info, [key] if isinstance(key, str) else key)
        if connection is None:
            connection = JdbcConnectionOptions(url, "", user, password, connect)
        if exactly_once:
            guarantee = DeliveryGuarantee.EXACTLY_ONCE
        if sql is None or not (connection.url or connection.connect is not None):
            raise InvalidProgramError(
                "a JDBC sink needs a statement and a database: JdbcSink(sql, url=..., record=Order) or "
                "JdbcSink(table=..., url=..., record=Order)"
            )
        if not isinstance(type_info, RowTypeInfo):
            raise InvalidProgramError(f"a JDBC sink takes rows: expected Types.ROW(...), got {shorten(type_info)}")
        self.sql = sql
        self.row_type = type_info
        self._connection = connection
        self.execution = execution or JdbcExecutionOptions.defaults()
        self._guarantee = guarantee
        self.needs_equal_batches = guarantee is DeliveryGuarantee.EXACTLY_ONCE

    @staticmethod
    def sink(
        sql: str,
        type_info: TypeInformation,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Create an at-least-once sink. It is effectively exactly-once if the statement is an upsert."""
        return JdbcSink(sql, type_info, jdbc_connection_options, jdbc_execution_options)

    @staticmethod
    def exactly_once_sink(
        sql: str,
        type_info: TypeInformation,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Create an exactly-once sink for any statement. It uses a table ``penstock_checkpoints`` in the database."""
        return JdbcSink(sql, type_info, jdbc_connection_options, jdbc_execution_options, DeliveryGuarantee.EXACTLY_ONCE)

    @staticmethod
    def upsert_sink(
        table: str,
        type_info: TypeInformation,
        key_fields: Sequence[str],
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Create a sink that keeps the last row of each key, for PostgreSQL or SQLite tables with a unique key."""
        if not key_fields and isinstance(type_info, RowTypeInfo):
            names = ", ".join(type_info.get_field_names())
            raise InvalidProgramError(f"the key fields must be some of {names}, got []")
        sql = _insert(table, type_info, key_fields)
        return JdbcSink(sql, type_info, jdbc_connection_options, jdbc_execution_options)

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        options = self._connection
        database = open_database(options.url, options.user_name, options.password, options.connect)
        if self._guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            return _ExactlyOnceWriter(self, database, context)
        return _JdbcWriter(self, database)


def _insert(table: str, type_info: TypeInformation | None, key_fields: Sequence[str]) -> str:
    """Return a statement that inserts, or upserts if there are key fields."""
    if not isinstance(type_info, RowTypeInfo):
        raise InvalidProgramError(f"an upsert needs named fields: Types.ROW_NAMED(...), got {shorten(type_info)}")
    names = type_info.get_field_names()
    unknown = [name for name in key_fields if name not in names]
    if unknown:
        raise InvalidProgramError(f"the key fields must be some of {', '.join(names)}, got {list(key_fields)}")
    insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608 - the user's own names
    if not key_fields:
        return insert
    others = [name for name in names if name not in key_fields]
    action = "UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in others) if others else "NOTHING"
    return f"{insert} ON CONFLICT ({', '.join(key_fields)}) DO {action}"


class _JdbcWriter(SinkWriter):
    """Writes rows in groups, each in a transaction."""

    def __init__(self, sink: JdbcSink, database: Database) -> None:
        self._database = database
        self._sql = to_paramstyle(sink.sql, database.paramstyle)
        self._fields = sink.row_type._fields
        self._row_type = sink.row_type
        self._size = sink.execution.batch_size
        self._retries = sink.execution.max_retries
        self._interval = sink.execution.batch_interval_ms / 1000
        self._rows: list[Sequence[Any]] = []
        self._since = 0.0
        self._connected: Any = None

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        if not self._rows:
            self._since = time.monotonic()
        for value in values:
            fields = self._fields(value)
            if fields is None:
                raise InvalidProgramError(str(self._row_type.validate(value)))
            self._rows.append(fields)
        self._rows_added()

    def _rows_added(self) -> None:
        overdue = self._interval > 0 and time.monotonic() - self._since >= self._interval
        if overdue or len(self._rows) >= self._size:
            self._write_out()

    def flush(self, end_of_input: bool) -> None:
        if self._rows:
            self._write_out()

    def _write_out(self) -> None:
        rows, self._rows = self._rows, []
        self._with_retries(lambda connection: self._execute(connection, rows))

    def _execute(self, connection: Any, rows: list[Sequence[Any]]) -> None:
        cursor = connection.cursor()
        for low in range(0, len(rows), self._size):
            cursor.executemany(self._sql, [tuple(row) for row in rows[low : low + self._size]])
        connection.commit()

    def _with_retries(self, work: Any) -> None:
        """Run ``work`` in a transaction, on a new connection if the old one is lost."""
        failures = 0
        while True:
            try:
                if self._connected is None:
                    self._connected = self._database.connect()
                work(self._connected)
            except self._database.errors:
                self._disconnect()
                failures += 1
                if failures > self._retries:
                    raise
                time.sleep(min(0.1 * 2**failures, 5.0))
            except BaseException:
                self._disconnect()
                raise
            else:
                return

    def _disconnect(self) -> None:
        connection, self._connected = self._connected, None
        if connection is not None:
            with suppress(Exception):  # it is lost either way
                connection.close()

    def close(self) -> None:
        self._disconnect()

    def __del__(self) -> None:
        self._disconnect()


class _ExactlyOnceWriter(_JdbcWriter):
    """Writes all rows of a checkpoint and its note in one transaction."""

    def __init__(self, sink: JdbcSink, database: Database, context: WriterInitContext) -> None:
        super().__init__(sink, database)
        self._who = (context.job_id, context.sink_id, context.subtask_id)
        self._epoch = context.epoch
        self._checkpoint_id = context.checkpoint_id
        self._prepared = False

    def begin(self, checkpoint_id: int) -> None:
        self._checkpoint_id = checkpoint_id

    def _rows_added(self) -> None:
        """Do nothing: the rows wait for the end of the batch."""

    def _execute(self, connection: Any, rows: list[Sequence[Any]]) -> None:
        if not self._prepared:
            self._prepare(connection)
        cursor = connection.cursor()
        # Lock the row first: of two attempts at the same batch, the second one waits here and then finds the note.
        cursor.execute(
            self._statement(
                f"UPDATE {_NOTES} SET checkpoint_id = ?, epoch = ? "  # noqa: S608 - a constant
                "WHERE job_id = ? AND sink_id = ? AND subtask = ? AND checkpoint_id < ? AND epoch <= ?"
            ),
            (self._checkpoint_id, self._epoch, *self._who, self._checkpoint_id, self._epoch),
        )
        if cursor.rowcount == 0:
            connection.rollback()
            self._check_epoch(connection)
            return
        super()._execute(connection, rows)

    def _check_epoch(self, connection: Any) -> None:
        cursor = connection.cursor()
        cursor.execute(
            self._statement(f"SELECT epoch FROM {_NOTES} WHERE job_id = ? AND sink_id = ? AND subtask = ?"),  # noqa: S608 - same
            self._who,
        )
        (epoch,) = cursor.fetchone()
        connection.rollback()
        if epoch > self._epoch:
            raise FencedError(
                f"another driver has taken over the job: the table {_NOTES} has epoch {epoch}, and this task's driver "
                f"{self._epoch}. Nothing was written"
            )

    def _prepare(self, connection: Any) -> None:
        self._change_schema(
            connection,
            f"CREATE TABLE IF NOT EXISTS {_NOTES} (job_id VARCHAR(64), sink_id VARCHAR(64), subtask INTEGER, "
            "checkpoint_id BIGINT, epoch BIGINT DEFAULT 0 NOT NULL, PRIMARY KEY (job_id, sink_id, subtask))",
        )
        if not self._has_epochs(connection):  # created by a version without epochs
            self._change_schema(connection, f"ALTER TABLE {_NOTES} ADD COLUMN epoch BIGINT DEFAULT 0 NOT NULL")
        cursor = connection.cursor()
        cursor.execute(
            self._statement(
                f"INSERT INTO {_NOTES} (job_id, sink_id, subtask, checkpoint_id) "  # noqa: S608 - same
                "VALUES (?, ?, ?, 0) ON CONFLICT DO NOTHING"
            ),
            self._who,
        )
        connection.commit()
        self._prepared = True

    def _has_epochs(self, connection: Any) -> bool:
        try:
            connection.cursor().execute(f"SELECT epoch FROM {_NOTES} WHERE 1 = 0")  # noqa: S608 - same
        except Exception:  # the exception class depends on the database
            return False
        finally:
            connection.rollback()
        return True

    def _change_schema(self, connection: Any, statement: str) -> None:
        try:
            connection.cursor().execute(statement)
            connection.commit()
        except Exception:
            connection.rollback()  # another subtask did the same concurrently

    def _statement(self, sql: str) -> str:
        return to_paramstyle(sql, self._database.paramstyle)
