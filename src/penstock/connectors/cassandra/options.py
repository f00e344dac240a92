"""Settings of the Cassandra sinks."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Self

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError, PenstockError, shorten

__all__ = ["CassandraFailureHandler", "CassandraWriteError", "ClusterBuilder", "ConsistencyLevel", "MapperOptions"]


class ConsistencyLevel(Enum):
    """The number of replicas that must acknowledge a write. The values are those of Cassandra's protocol."""

    ANY = 0
    ONE = 1
    TWO = 2
    THREE = 3
    QUORUM = 4
    ALL = 5
    LOCAL_QUORUM = 6
    EACH_QUORUM = 7
    SERIAL = 8
    LOCAL_SERIAL = 9
    LOCAL_ONE = 10


class MapperOptions:
    """Options for writing mapped dataclasses. For tuples and rows, use the query.

    Set options with keywords, or with methods as in PyFlink.

    >>> options = MapperOptions(ttl=1800, consistency_level=ConsistencyLevel.ONE)
    >>> options == MapperOptions().ttl(1800).consistency_level(ConsistencyLevel.ONE)
    True
    """

    def __init__(
        self,
        *,
        ttl: int | None = None,
        timestamp: int | None = None,
        consistency_level: ConsistencyLevel | None = None,
        tracing: bool = False,
        save_null_fields: bool = True,
        if_not_exists: bool = False,
    ) -> None:
        self.used_ttl = _at_least(0, ttl, "time to live")
        self.used_timestamp = timestamp
        self.used_consistency_level = consistency_level
        self.used_tracing = tracing
        self.used_save_null_fields = save_null_fields
        self.used_if_not_exists = if_not_exists

    def ttl(self, ttl: int) -> Self:
        """Set the seconds after which a row expires."""
        self.used_ttl = _at_least(0, ttl, "time to live")
        return self

    def timestamp(self, timestamp: int) -> Self:
        """Set the timestamp of all writes, in µs since the epoch. The default is the time of the batch."""
        self.used_timestamp = timestamp
        return self

    def consistency_level(self, cl: ConsistencyLevel) -> Self:
        """Set the number of replicas that must acknowledge a write."""
        self.used_consistency_level = cl
        return self

    def tracing(self, enabled: bool) -> Self:
        """Set whether Cassandra traces the writes."""
        self.used_tracing = enabled
        return self

    def save_null_fields(self, enabled: bool) -> Self:
        """Set whether a field that is None deletes the column's value. The default is True."""
        self.used_save_null_fields = enabled
        return self

    def if_not_exists(self, enabled: bool) -> Self:
        """Set whether existing rows stay unchanged. This costs a consensus round for each write."""
        self.used_if_not_exists = enabled
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MapperOptions) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class ClusterBuilder:
    """Builds connections to Cassandra. Tasks open them, so the builder must be picklable.

    Pass the arguments of ``cassandra.cluster.Cluster`` or a function that returns one, or override
    :meth:`build_cluster`.

    >>> builder = ClusterBuilder(contact_points=["cassandra-1", "cassandra-2"], port=9042)
    """

    def __init__(self, build: Callable[[], Any] | None = None, **settings: Any) -> None:
        if build is not None and (settings or not callable(build)):
            raise InvalidProgramError(
                "a ClusterBuilder takes a function, or the arguments of cassandra.cluster.Cluster"
            )
        self._build = build
        self._settings = settings

    def build_cluster(self) -> Any:
        """Create a ``cassandra.cluster.Cluster`` that is not connected yet."""
        return _new_cluster(self._settings) if self._build is None else self._build()


def _new_cluster(settings: dict[str, Any]) -> Any:
    from cassandra import ProtocolVersion
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, default_lbp_factory

    settings = dict(settings)
    if "load_balancing_policy" not in settings:
        # The driver's own default, given explicitly because it warns otherwise.
        default = ExecutionProfile(load_balancing_policy=default_lbp_factory())
        settings.setdefault("execution_profiles", {EXEC_PROFILE_DEFAULT: default})
    # All Cassandra versions since 2.2 support protocol version 4. Without a version, the driver tries newer ones first
    # and logs a warning for each.
    settings.setdefault("protocol_version", ProtocolVersion.V4)
    return Cluster(**settings)


class CassandraWriteError(PenstockError):
    """Raised when Cassandra rejects a record. ``__cause__`` is the driver's error."""

    def __init__(self, record: str, reason: str) -> None:
        super().__init__(f"Cassandra rejected the record {record}: {reason}")
        self.record = record
        self.reason = reason


class CassandraFailureHandler:
    """Handles a failed write. By default it fails the job.

    Pass a function, or override :meth:`on_failure`. If Cassandra is unavailable or overloaded, a write is retried
    first.

    >>> skipped = CassandraFailureHandler(lambda failure: print("skipped:", failure.record))
    >>> skipped.on_failure(CassandraWriteError("('a', None)", "key may not be null"))
    skipped: ('a', None)
    """

    def __init__(self, handler: Callable[[CassandraWriteError], Any] | None = None) -> None:
        if handler is not None and not callable(handler):
            raise InvalidProgramError(f"a failure handler takes a function of the failure, got {shorten(handler)}")
        self._handler = handler

    @staticmethod
    def no_op() -> CassandraFailureHandler:
        """Return the default handler, which fails the job."""
        return CassandraFailureHandler()

    def on_failure(self, failure: CassandraWriteError) -> None:
        """Handle the failure: return to skip the record, or raise to fail the job."""
        if self._handler is None:
            raise failure
        self._handler(failure)


def _at_least(least: int, value: int | None, label: str) -> int | None:
    if value is not None and (not is_int(value) or value < least):
        raise InvalidProgramError(f"the {label} must be at least {least}, got {value!r}")
    return value
