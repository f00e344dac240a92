"""A session with Cassandra and its prepared statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.connectors.cassandra.options import ClusterBuilder

__all__ = ["Connection", "is_temporary"]


class Connection:
    """A session that is created on demand, also after :meth:`close`."""

    def __init__(self, builder: ClusterBuilder) -> None:
        self._builder = builder
        self._cluster: Any = None
        self._session: Any = None
        self._prepared: dict[str, Any] = {}
        self._timestamp: int | None = None

    def open(self) -> Any:
        """Return the session."""
        if self._session is None:
            _require_driver()
            self._cluster = self._builder.build_cluster()
            self._take_over_timestamps()
            try:
                self._session = self._cluster.connect()
            except BaseException:
                self.close()
                raise
        return self._session

    def execute(self, cql: str, values: Sequence[Any] | None = None) -> Any:
        """Execute a statement and wait for its rows."""
        return self.open().execute(cql, values)

    def prepare(self, cql: str) -> Any:
        """Prepare a statement, once per session."""
        session = self.open()
        if cql not in self._prepared:
            self._prepared[cql] = session.prepare(cql)
        return self._prepared[cql]

    def execute_async(self, statement: Any, *, timestamp: int, trace: bool) -> Any:
        """Start a write with this timestamp, in microseconds, and return the driver's future."""
        session = self.open()
        self._timestamp = timestamp
        try:
            return session.execute_async(statement, trace=trace)
        finally:
            self._timestamp = None

    def _take_over_timestamps(self) -> None:
        """Set the function that the driver calls for the timestamp of a write, within the call and in its thread."""
        from cassandra.timestamps import MonotonicTimestampGenerator

        default = self._cluster.timestamp_generator
        if type(default) is MonotonicTimestampGenerator:  # otherwise keep the user's own
            self._cluster.timestamp_generator = lambda: default() if self._timestamp is None else self._timestamp

    def close(self) -> None:
        """Close the session, if open."""
        cluster, self._cluster, self._session = self._cluster, None, None
        self._prepared.clear()
        if cluster is not None:
            cluster.shutdown()

    def __del__(self) -> None:
        """Close the session: a worker may drop a task without closing it."""
        self.close()


def is_temporary(error: BaseException) -> bool:
    """Whether the same statement may succeed later: Cassandra is unavailable, overloaded or slow."""
    from cassandra import AuthenticationFailed, DriverException, RequestValidationException, UnsupportedOperation
    from cassandra.cluster import NoHostAvailable
    from cassandra.connection import ConnectionBusy, ConnectionException
    from cassandra.protocol import ErrorMessage
    from cassandra.protocol import RequestValidationException as Rejected

    if isinstance(error, NoHostAvailable) and error.errors:
        # The driver wraps the responses of the hosts, also if they say that the statement is wrong.
        return any(is_temporary(one) for one in _errors_of_hosts(error))
    if isinstance(error, (RequestValidationException, Rejected, AuthenticationFailed, UnsupportedOperation)):
        return False
    return isinstance(
        error, (NoHostAvailable, DriverException, ErrorMessage, ConnectionException, ConnectionBusy, OSError)
    )


def _errors_of_hosts(error: Any) -> list[BaseException]:
    errors = error.errors.values() if isinstance(error.errors, dict) else error.errors
    return [one for one in errors if isinstance(one, BaseException)]


def _require_driver() -> None:
    try:
        import cassandra.cluster  # noqa: F401
    except ImportError:
        raise InvalidProgramError(
            "Cassandra needs the package cassandra-driver: pip install 'penstock[cassandra]'"
        ) from None
