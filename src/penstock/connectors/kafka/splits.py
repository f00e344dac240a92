"""A split is a partition; its offset is Kafka's, with an optional stopping offset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.connectors.kafka.offsets import KafkaTopicPartition
from penstock.core.source import SourceSplit

__all__ = ["KafkaPartitionSplit", "position_of", "stop_of"]


@dataclass(frozen=True)
class KafkaPartitionSplit(SourceSplit):
    """One partition."""

    topic: str
    partition: int

    @staticmethod
    def of(partition: KafkaTopicPartition) -> KafkaPartitionSplit:
        """Create the split of a partition."""
        return KafkaPartitionSplit(str(partition), partition.topic, partition.partition)

    @property
    def name(self) -> KafkaTopicPartition:
        """The partition."""
        return KafkaTopicPartition(self.topic, self.partition)


def position_of(offset: Any) -> int:
    """Return the offset in the partition.

    >>> position_of(7), position_of([7, 100])
    (7, 7)
    """
    return int(offset if type(offset) is int else offset[0])


def stop_of(offset: Any) -> int | None:
    """Return the stopping offset, if there is one.

    >>> stop_of(7), stop_of([7, 100])
    (None, 100)
    """
    return None if type(offset) is int else int(offset[1])
