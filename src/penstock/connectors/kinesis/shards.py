"""Shards as splits, and offsets as positions within a shard.

``TRIM_HORIZON`` is the oldest record, ``AT_TIMESTAMP:ms`` the first record with at least that time, ``AFTER:sequence
number`` the position after a record, and ``SHARD_END`` the end of a shard that was split or merged.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from penstock.common.errors import InvalidProgramError, shorten
from penstock.core.source import SourceSplit

__all__ = ["KinesisShard", "KinesisShardAssigner", "Record", "ShardSplit"]

TRIM_HORIZON = "TRIM_HORIZON"
SHARD_END = "SHARD_END"
_AT, _AFTER = "AT_TIMESTAMP:", "AFTER:"
_HASH_KEYS = 1 << 128

Record = tuple[str, int, str, bytes]
"""Sequence number, approximate time of arrival in milliseconds, partition key, data."""


def at_timestamp(milliseconds: int) -> str:
    """Return the position at a time."""
    return f"{_AT}{milliseconds}"


def after(sequence_number: str) -> str:
    """Return the position after a record."""
    return f"{_AFTER}{sequence_number}"


def sequence_number_of(offset: str) -> int | None:
    """Return the record that an offset follows.

    >>> sequence_number_of("AFTER:49"), sequence_number_of("SHARD_END")
    (49, None)
    """
    return int(offset.removeprefix(_AFTER)) if offset.startswith(_AFTER) else None


def iterator_arguments(offset: str) -> dict[str, Any]:
    """Return the arguments of a request for an iterator that begins at an offset.

    >>> iterator_arguments("AFTER:49")
    {'ShardIteratorType': 'AFTER_SEQUENCE_NUMBER', 'StartingSequenceNumber': '49'}
    """
    if offset.startswith(_AT):
        moment = datetime.fromtimestamp(int(offset.removeprefix(_AT)) / 1000, UTC)
        return {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": moment}
    if offset.startswith(_AFTER):
        number = offset.removeprefix(_AFTER)
        return {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": number}
    return {"ShardIteratorType": offset}


def stream_argument(stream: str) -> dict[str, str]:
    """Return the argument for a stream, by name or ARN."""
    return {"StreamARN" if stream.startswith("arn:") else "StreamName": stream}


def record_of(answer: Mapping[str, Any]) -> Record:
    """Parse a record of GetRecords."""
    arrival = round(answer["ApproximateArrivalTimestamp"].timestamp() * 1000)
    return answer["SequenceNumber"], arrival, answer["PartitionKey"], answer["Data"]


@dataclass(frozen=True)
class KinesisShard:
    """A shard as Kinesis lists it."""

    stream: str
    shard_id: str
    starting_hash_key: int = 0
    ending_hash_key: int = 0
    parents: tuple[str, ...] = ()

    @staticmethod
    def of(stream: str, answer: Mapping[str, Any]) -> KinesisShard:
        """Parse an entry of ListShards."""
        parents = (answer.get("ParentShardId"), answer.get("AdjacentParentShardId"))
        keys = answer["HashKeyRange"]
        return KinesisShard(
            stream,
            answer["ShardId"],
            int(keys["StartingHashKey"]),
            int(keys["EndingHashKey"]),
            tuple(f"{stream}/{parent}" for parent in parents if parent),
        )

    @property
    def split_id(self) -> str:
        """The id of the shard in a checkpoint."""
        return f"{self.stream}/{self.shard_id}"


@dataclass(frozen=True)
class ShardSplit(SourceSplit):
    """A shard. For a task, it contains the records to read, if the driver has them."""

    stream: str
    shard_id: str
    records: list[Record] | None = field(default=None, compare=False)

    @staticmethod
    def of(split_id: str) -> ShardSplit:
        """Create the split of a shard."""
        stream, _, shard_id = split_id.rpartition("/")
        return ShardSplit(split_id, stream, shard_id)


class KinesisShardAssigner:
    """Chooses the subtask that reads a shard. Subclass it, or pass a function of shard and number of subtasks.

    >>> by_number = KinesisShardAssigner(lambda shard, subtasks: int(shard.shard_id[-12:]))
    >>> by_number.assign(KinesisShard("readings", "shardId-000000000003"), 2)
    3
    """

    def __init__(self, function: Callable[[KinesisShard, int], int] | None = None) -> None:
        if function is not None and not callable(function):
            raise InvalidProgramError(f"a shard assigner must be a function of a shard, got {shorten(function)}")
        self._function = function

    def assign(self, shard: KinesisShard, number_of_parallel_subtasks: int) -> int | None:
        """Return the subtask, modulo their number, or ``None`` for the one with the fewest shards."""
        return None if self._function is None else self._function(shard, number_of_parallel_subtasks)

    @staticmethod
    def default_shard_assigner() -> KinesisShardAssigner:
        """Choose the subtask with the fewest shards when a shard is found."""
        return KinesisShardAssigner()

    @staticmethod
    def uniform_shard_assigner() -> KinesisShardAssigner:
        """Choose by the hash keys of a shard: subtasks get equal parts of the key space, also after splits."""
        return KinesisShardAssigner(_by_hash_keys)


def _by_hash_keys(shard: KinesisShard, subtasks: int) -> int:
    middle = (shard.starting_hash_key + shard.ending_hash_key) // 2
    # Start at a different subtask for each stream, so that streams with one shard do not share a subtask.
    return middle * subtasks // _HASH_KEYS + zlib.crc32(shard.stream.encode())
