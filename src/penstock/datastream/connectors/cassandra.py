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
    """A sink that writes to Cassandra. Set its name, uid and parallelism on it.

    Tuples and rows need a query with a question mark for each field. Dataclasses with ``@table`` need no query.
    :meth:`sink` takes keywords; :meth:`add_sink` returns PyFlink's builder.

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
        """Return a sink for ``stream.sink_to(...)``.

        :param query: the CQL statement for each tuple or row; none for mapped dataclasses
        :param host: the host of Cassandra; for several hosts, credentials or policies, give a ``cluster_builder``
        :param type_info: the type of the rows, to find their fields by name
        :param mapper_options: how to write mapped dataclasses
        :param default_keyspace: the keyspace of mapped dataclasses whose ``@table`` names none
        :param ignore_null_fields: keep the value of a column if its field is None, instead of deleting it
        :param failure_handler: handles failed writes; without one, the job fails
        :param max_concurrent_requests: the limit for each subtask
        :param max_concurrent_requests_timeout: how long to wait for a free request before the job fails
        :param max_retries: how often to retry a write while Cassandra is unavailable or overloaded
        :param write_ahead_log: write when the checkpoint completes; True, or your own committer
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
        """Return a builder of a sink for a stream of tuples, rows or mapped dataclasses."""
        return CassandraSink.CassandraSinkBuilder(input)

    class CassandraSinkBuilder:
        """Collects the settings of a Cassandra sink."""

        def __init__(self, stream: DataStream) -> None:
            self._stream = stream
            self._type = _record_type(stream)
            self._settings: dict[str, Any] = {}

        def set_query(self, query: str) -> Self:
            """Set the CQL statement for each tuple or row, such as ``INSERT INTO example.t (a, b) VALUES (?, ?)``."""
            self._settings["query"] = query
            return self

        def set_host(self, host: str, port: int = _DEFAULT_PORT) -> Self:
            """Set the host and port of Cassandra."""
            self._settings.update(host=host, port=port)
            return self

        def set_cluster_builder(self, builder: ClusterBuilder) -> Self:
            """Set the builder of the connection: hosts, credentials, policies."""
            self._settings["cluster_builder"] = builder
            return self

        def set_default_keyspace(self, keyspace: str) -> Self:
            """Set the keyspace of mapped dataclasses whose ``@table`` names none."""
            self._settings["default_keyspace"] = keyspace
            return self

        def enable_write_ahead_log(self, committer: CheckpointCommitter | None = None) -> Self:
            """Write when the checkpoint completes. This is exactly-once even if the program is not deterministic.

            :param committer: the committer that records what is written; a :class:`CassandraCommitter` by default
            """
            self._settings["write_ahead_log"] = True if committer is None else committer
            return self

        def set_mapper_options(self, options: MapperOptions) -> Self:
            """Set the options of mapped dataclasses. For tuples and rows, use the query."""
            self._settings["mapper_options"] = options
            return self

        def set_failure_handler(self, failure_handler: CassandraFailureHandler) -> Self:
            """Set the handler of failed writes; by default, a failed write fails the job."""
            self._settings["failure_handler"] = failure_handler
            return self

        def set_max_concurrent_requests(self, max_concurrent_requests: int, duration: Duration | None = None) -> Self:
            """Limit the concurrent writes of a subtask, and set how long to wait for one of them to finish."""
            self._settings["max_concurrent_requests"] = max_concurrent_requests
            self._settings["max_concurrent_requests_timeout"] = duration
            return self

        def set_max_retries(self, max_retries: int) -> Self:
            """Set how often to retry a write while Cassandra is unavailable or overloaded."""
            self._settings["max_retries"] = max_retries
            return self

        def enable_ignore_null_fields(self) -> Self:
            """Keep the value of a column if its field is None, instead of deleting it."""
            self._settings["ignore_null_fields"] = True
            return self

        def build(self) -> CassandraSink:
            """Add the sink to the program."""
            if self._type is not None and "query" not in self._settings:
                raise InvalidProgramError("tuples and rows need set_query()")
            sink = CassandraSink.sink(type_info=self._type, **self._settings)
            added = self._stream.add_sink(sink)
            return CassandraSink(self._stream.get_execution_environment(), added.get_transformation()).name(
                "Cassandra Sink"
            )


def _record_type(stream: DataStream) -> TypeInformation | None:
    """Return the type of the tuples or rows, or None if it is not declared."""
    declared = stream.get_type()
    if isinstance(declared, (RowTypeInfo, TupleTypeInfo)):
        return declared
    if isinstance(declared, PickledBytesTypeInfo):
        return None
    raise InvalidProgramError(f"a Cassandra sink takes tuples, rows and mapped dataclasses, not {declared}")


def _cluster_builder(host: str | None, port: int, builder: ClusterBuilder | None) -> ClusterBuilder:
    if (host is None) == (builder is None):
        raise InvalidProgramError("a Cassandra sink needs either a host or a ClusterBuilder")
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
