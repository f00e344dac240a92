"""Starting and stopping offsets of partitions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError
from penstock.connectors.kafka.client import KafkaError

__all__ = ["KafkaOffsetResetStrategy", "KafkaOffsetsInitializer", "KafkaTopicPartition", "OffsetLookup"]


@dataclass(frozen=True, order=True, slots=True)
class KafkaTopicPartition:
    """A partition of a topic.

    >>> KafkaTopicPartition("readings", 2)
    KafkaTopicPartition(topic='readings', partition=2)
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


Offsets = dict[KafkaTopicPartition, int]
Partitions = Sequence[KafkaTopicPartition]


class KafkaOffsetResetStrategy(Enum):
    """The strategy for an offset that is missing or that the partition no longer has."""

    LATEST = 0
    EARLIEST = 1
    NONE = 2


class OffsetLookup(Protocol):
    """Looks up offsets of partitions. The enumerator does this with requests to the brokers."""

    def earliest(self, partitions: Partitions) -> Offsets:
        """Return the first existing offsets."""

    def latest(self, partitions: Partitions) -> Offsets:
        """Return the offsets of the next records."""

    def committed(self, partitions: Partitions) -> Offsets:
        """Return the committed offsets of the consumer group, without partitions that have none."""

    def for_timestamp(self, partitions: Partitions, timestamp: int) -> Offsets:
        """Return the first offsets with at least this timestamp, without partitions that have none."""


class KafkaOffsetsInitializer(ABC):
    """Decides where to start (``set_starting_offsets``) or stop (``set_bounded``, ``set_unbounded``).

    Only a job without a checkpoint uses starting offsets. The offsets of a checkpoint take precedence.
    """

    needs_group: bool = False
    is_within_reach: bool = False
    """Whether records up to this offset existed when it was requested. Other offsets may lie in the future."""

    @abstractmethod
    def resolve(self, partitions: Partitions, lookup: OffsetLookup) -> Offsets:
        """Return an offset for each partition."""

    def resolve_end(self, partitions: Partitions, lookup: OffsetLookup) -> Offsets:
        """Return an offset at which to stop for each partition. It may be in the future."""
        return self.resolve(partitions, lookup)

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """Use the committed offsets of the consumer group."""
        return _Committed(offset_reset_strategy)

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """Use the first record of each partition with at least this timestamp, or the end."""
        if not is_int(timestamp):
            raise InvalidProgramError(f"the timestamp must be an int, milliseconds since the epoch, got {timestamp!r}")
        return _Timestamp(timestamp)

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """Use the earliest record."""
        return _Ends(earliest=True)

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """Use the end of each partition when the job starts."""
        return _Ends(earliest=False)

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """Use these offsets. The strategy applies to other partitions, and to offsets out of range."""
        given: Mapping[Any, Any] = offsets
        for partition, offset in given.items():
            if not (isinstance(partition, KafkaTopicPartition) and is_int(offset) and offset >= 0):
                raise InvalidProgramError(
                    "offsets() takes a dict of KafkaTopicPartition to an offset of at least 0, "
                    f"got {partition!r}: {offset!r}"
                )
        return _Given(dict(offsets), offset_reset_strategy)


@dataclass(frozen=True)
class _Ends(KafkaOffsetsInitializer):
    earliest_: bool
    is_within_reach = True

    def __init__(self, *, earliest: bool) -> None:
        object.__setattr__(self, "earliest_", earliest)

    def resolve(self, partitions: Partitions, lookup: OffsetLookup) -> Offsets:
        return lookup.earliest(partitions) if self.earliest_ else lookup.latest(partitions)


@dataclass(frozen=True)
class _Timestamp(KafkaOffsetsInitializer):
    milliseconds: int
    is_within_reach = True

    def resolve(self, partitions: Partitions, lookup: OffsetLookup) -> Offsets:
        # First get the end, then search: the search finds a record that arrives in between by its timestamp.
        ends = lookup.latest(partitions)
        return {**ends, **lookup.for_timestamp(partitions, self.milliseconds)}


@dataclass(frozen=True)
class _Committed(KafkaOffsetsInitializer):
    reset: KafkaOffsetResetStrategy
    needs_group = True
    is_within_reach = True

    def resolve(self, partitions: Partitions, lookup: OffsetLookup) -> Offsets:
        return _with_reset(partitions, lookup, lookup.committed(partitions), self.reset, "the consumer group has none")


@dataclass(frozen=True)
class _Given(KafkaOffsetsInitializer):
    given: Offsets
    reset: KafkaOffsetResetStrategy

    def resolve(self, partitions: Partitions, lookup: OffsetLookup) -> Offsets:
        return _with_reset(partitions, lookup, self.given, self.reset, "none was given")

    def resolve_end(self, partitions: Partitions, lookup: OffsetLookup) -> Offsets:
        others = [partition for partition in partitions if partition not in self.given]
        return {**self.given, **(self.resolve(others, lookup) if others else {})}


def _with_reset(
    partitions: Partitions, lookup: OffsetLookup, known: Offsets, reset: KafkaOffsetResetStrategy, why: str
) -> Offsets:
    """Return the known offsets if the partition has them, otherwise those of the strategy."""
    first, last = lookup.earliest(partitions), lookup.latest(partitions)
    resets: dict[KafkaOffsetResetStrategy, Callable[[KafkaTopicPartition], int]] = {
        KafkaOffsetResetStrategy.EARLIEST: first.__getitem__,
        KafkaOffsetResetStrategy.LATEST: last.__getitem__,
    }
    found: Offsets = {}
    for partition in partitions:
        offset = known.get(partition)
        if offset is not None and first[partition] <= offset <= last[partition]:
            found[partition] = offset
        elif reset in resets:
            found[partition] = resets[reset](partition)
        else:
            problem = why if offset is None else f"{offset} is not within {first[partition]} to {last[partition]}"
            raise KafkaError(
                f"no starting offset for partition {partition}: {problem}; "
                "pass a KafkaOffsetResetStrategy (EARLIEST or LATEST)"
            )
    return found
