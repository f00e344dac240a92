"""PyFlink's CassandraSink and its builder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.time import Duration
from penstock.common.typeinfo import PickledBytesTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation
from penstock.connectors.cassandra import (
    CassandraCommitter,
    CassandraFailureHandler,
    CassandraWriteError,
    ClusterBuilder,
    ConsistencyLevel,
    MapperOptions,
    column,
    table,
)
from penstock.connectors.cassandra.executor import ExecutorSettings
from penstock.connectors.cassandra.statements import MappedStatements, QueryStatements, Statements
from penstock.connectors.cassandra.write_ahead import CassandraWriteAheadSink
from penstock.connectors.cassandra.writer import CassandraUpsertSink
from penstock.core.functions import CheckpointCommitter
from penstock.core.sink import Sink
from penstock.datastream.sink import DataStreamSink
from penstock.runtime.operators.transactional_sinks import WriteAheadSink

if TYPE_CHECKING:
    from penstock.datastream.data_stream import DataStream

__all__ = [
    "CassandraCommitter",
    "CassandraFailureHandler",
    "CassandraSink",
    "CassandraWriteError",
    "ClusterBuilder",
    "ConsistencyLevel",
    "MapperOptions",
    "column",
    "table",
]

_DEFAULT_PORT = 9042


class CassandraSink(DataStreamSink):
    """A sink of a program that writes to Cassandra, to be named and configured.

    Tuples and rows are written by a query, with a field for each question mark; dataclasses with ``@table`` need none.
    :meth:`sink` takes keywords, :meth:`add_sink` gives PyFlink's builder.

    >>> from penstock.datastream import StreamExecutionEnvironment
    >>> stream = StreamExecutionEnvironment.get_execution_environment().from_collection([("sensor_1", 20.5)])
    >>> query = "INSERT INTO example.sensors (sensorId, temperature) VALUES (?, ?)"
    >>> by_keywords = stream.sink_to(CassandraSink.sink(query, host="127.0.0.1")).name("readings")
    >>> by_builder = CassandraSink.add_sink(stream).set_query(query).set_host("127.0.0.1").build().name("readings")
    """

    @staticmethod
    def sink(
        query: str | None = None,
        *,
        host: str | None = None,
        port: int = _DEFAULT_PORT,
        cluster_builder: ClusterBuilder | None = None,
        type_info: TypeInformation | None = None,
        mapper_options: MapperOptions | None = None,
        default_keyspace: str | None = None,
        ignore_null_fields: bool = False,
        failure_handler: CassandraFailureHandler | None = None,
        max_concurrent_requests: int = ExecutorSettings.max_concurrent_requests,
        max_concurrent_requests_timeout: Duration | None = None,
        max_retries: int = ExecutorSettings.max_retries,
        write_ahead_log: bool | CheckpointCommitter = False,
    ) -> Sink:
        """A sink for ``stream.sink_to(...)``.

        :param query: is executed for every tuple or row; none for mapped dataclasses
        :param host: where Cassandra is, or a ``cluster_builder`` for more than one host, credentials and policies
        :param type_info: the type of the rows, if their fields are to be found by name
        :param mapper_options: how mapped dataclasses are written
        :param default_keyspace: of mapped dataclasses whose ``@table`` names none
        :param ignore_null_fields: keep the value of a column if its field is None, instead of deleting it
        :param failure_handler: handles failed writes; without one, the job fails
        :param max_concurrent_requests: of one subtask
        :param max_concurrent_requests_timeout: fail the job if one more request could not be made for so long
        :param max_retries: how often writes are tried again while Cassandra is away or busy
        :param write_ahead_log: write when the checkpoint is complete; True, or a committer of your own
        """
        builder = _cluster_builder(host, port, cluster_builder)
        statements: Statements
        if query is None:
            statements = MappedStatements(
                mapper_options or MapperOptions(), default_keyspace, nulls_delete=not ignore_null_fields
            )
        else:
            _check_query(query, default_keyspace)
            row_type = type_info if isinstance(type_info, RowTypeInfo) else None
            statements = QueryStatements(query, row_type, nulls_delete=not ignore_null_fields)
        timeout = max_concurrent_requests_timeout
        settings = ExecutorSettings(
            max_concurrent_requests=_at_least(1, max_concurrent_requests, "number of concurrent requests"),
            permit_timeout=None if timeout is None else timeout.to_millis() / 1000,
            max_retries=_at_least(0, max_retries, "number of retries"),
            failure_handler=failure_handler or CassandraFailureHandler.no_op(),
        )
        if write_ahead_log is False:
            return CassandraUpsertSink(builder, statements, settings)
        committer = CassandraCommitter(builder) if write_ahead_log is True else write_ahead_log
        return WriteAheadSink(CassandraWriteAheadSink(builder, statements, settings, committer))

    @staticmethod
    def add_sink(input: DataStream) -> CassandraSink.CassandraSinkBuilder:  # noqa: A002 - PyFlink's name
        """A builder for a sink after a stream of tuples, rows or mapped dataclasses."""
        return CassandraSink.CassandraSinkBuilder(input)

    class CassandraSinkBuilder:
        """Collects the settings."""

        def __init__(self, stream: DataStream) -> None:
            self._stream = stream
            self._type = _record_type(stream)
            self._settings: dict[str, Any] = {}

        def set_query(self, query: str) -> Self:
            """The CQL statement for every tuple or row, such as ``INSERT INTO example.t (a, b) VALUES (?, ?)``."""
            self._settings["query"] = query
            return self

        def set_host(self, host: str, port: int = _DEFAULT_PORT) -> Self:
            """Where Cassandra is."""
            self._settings.update(host=host, port=port)
            return self

        def set_cluster_builder(self, builder: ClusterBuilder) -> Self:
            """Set how to connect: hosts, credentials, policies."""
            self._settings["cluster_builder"] = builder
            return self

        def set_default_keyspace(self, keyspace: str) -> Self:
            """The keyspace of mapped dataclasses whose ``@table`` names none."""
            self._settings["default_keyspace"] = keyspace
            return self

        def enable_write_ahead_log(self, committer: CheckpointCommitter | None = None) -> Self:
            """Write when the checkpoint is complete: exactly once also for programs that are not deterministic.

            :param committer: records what was written; a :class:`CassandraCommitter` by default
            """
            self._settings["write_ahead_log"] = True if committer is None else committer
            return self

        def set_mapper_options(self, options: MapperOptions) -> Self:
            """Set the options of mapped dataclasses. Tuples and rows have their query."""
            self._settings["mapper_options"] = options
            return self

        def set_failure_handler(self, failure_handler: CassandraFailureHandler) -> Self:
            """Set the handler of failed writes; by default, a failed write fails the job."""
            self._settings["failure_handler"] = failure_handler
            return self

        def set_max_concurrent_requests(self, max_concurrent_requests: int, duration: Duration | None = None) -> Self:
            """The number of writes that a subtask has under way, and how long to wait for one to end."""
            self._settings["max_concurrent_requests"] = max_concurrent_requests
            self._settings["max_concurrent_requests_timeout"] = duration
            return self

        def set_max_retries(self, max_retries: int) -> Self:
            """Set how often writes are repeated while Cassandra is away or busy."""
            self._settings["max_retries"] = max_retries
            return self

        def enable_ignore_null_fields(self) -> Self:
            """Keep the value of a column if its field is None, instead of deleting it."""
            self._settings["ignore_null_fields"] = True
            return self

        def build(self) -> CassandraSink:
            """Adds the sink to the program."""
            if self._type is not None and "query" not in self._settings:
                raise InvalidProgramError("tuples and rows need set_query()")
            sink = CassandraSink.sink(type_info=self._type, **self._settings)
            added = self._stream.add_sink(sink)
            return CassandraSink(self._stream.get_execution_environment(), added.get_transformation()).name(
                "Cassandra Sink"
            )


def _record_type(stream: DataStream) -> TypeInformation | None:
    """The type of the tuples or rows; None if none was declared."""
    declared = stream.get_type()
    if isinstance(declared, (RowTypeInfo, TupleTypeInfo)):
        return declared
    if isinstance(declared, PickledBytesTypeInfo):
        return None
    raise InvalidProgramError(f"a Cassandra sink takes tuples, rows and mapped dataclasses, not {declared}")


def _cluster_builder(host: str | None, port: int, builder: ClusterBuilder | None) -> ClusterBuilder:
    if (host is None) == (builder is None):
        raise InvalidProgramError("where is Cassandra? Set either the host or a ClusterBuilder")
    if builder is None:
        return ClusterBuilder(contact_points=[host], port=port)
    if not isinstance(builder, ClusterBuilder):
        raise InvalidProgramError(f"expected a ClusterBuilder, got {shorten(builder)}")
    return builder


def _check_query(query: str, default_keyspace: str | None) -> None:
    if not query.strip():
        raise InvalidProgramError("the query must not be empty")
    if default_keyspace is not None:
        raise InvalidProgramError("a default keyspace is for mapped dataclasses: name the keyspace in the query")


def _at_least(least: int, value: int, label: str) -> int:
    if not is_int(value) or value < least:
        raise InvalidProgramError(f"the {label} must be at least {least}, got {value!r}")
    return value
