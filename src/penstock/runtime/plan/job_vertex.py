"""The tasks' view of the job: vertices, their operator chains, and the exchanges between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.common.watermark_strategy import WatermarkAlignment
from penstock.runtime.exchange.partitioner import (
    ForwardPartitioner,
    KeyGroupPartitioner,
    Partitioner,
    RescalePartitioner,
    rescale_targets,
)
from penstock.runtime.operators.operator import StreamOperator


@dataclass(slots=True)
class ChainLink:
    """A chained consumer: its position in the vertex, and the side output it reads (None: the main output)."""

    position: int
    tag_id: str | None


@dataclass(slots=True)
class ChainedOperator:
    """One operator of a chain. A source has no operator."""

    operator_id: str
    name: str
    operator: StreamOperator | None
    source: Any
    uid: str | None
    max_parallelism: int
    explicit_max_parallelism: bool = False  # set by the user, not derived from the parallelism
    links: list[ChainLink] = field(default_factory=list)


@dataclass(slots=True)
class JobVertex:
    """A chain of operators that runs as one task, `parallelism` times."""

    id: int
    name: str
    parallelism: int
    max_parallelism: int
    operators: list[ChainedOperator]
    source_bounded: bool
    level: int = 0
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    split_parallelism: int | None = None
    """The number of subtasks into which a source was split at its first start. It never changes."""
    spread: bool = False
    """Whether all tasks of this vertex read a source of parallelism 1, each a part of every range."""
    alignment: WatermarkAlignment | None = None
    """The alignment of a source's watermark strategy, if any."""
    declares_idleness: bool = False
    """Whether the watermark strategy has an idleness timeout."""

    @property
    def is_source(self) -> bool:
        """Whether the chain starts with a source."""
        return self.operators[0].operator is None

    @property
    def source_parallelism(self) -> int:
        """The number of tasks into which the source is split."""
        return self.split_parallelism or (1 if self.spread else self.parallelism)


@dataclass(slots=True)
class JobEdge:
    """An exchange."""

    id: int
    source: int
    source_position: int
    tag_id: str | None
    target: int
    input_index: int
    partitioner: Partitioner
    senders: int
    receivers: int
    max_parallelism: int
    target_name: str
    target_level: int = 0

    def reachable(self, sender: int) -> list[int]:
        """Return the receivers to which a sender may send."""
        if isinstance(self.partitioner, ForwardPartitioner):
            return [sender]
        if isinstance(self.partitioner, RescalePartitioner):
            return rescale_targets(sender, self.senders, self.receivers)
        return list(range(self.receivers))

    def senders_to(self, receiver: int) -> list[int]:
        """Return the senders from which a receiver may receive, and for whose clocks it waits."""
        return [sender for sender in range(self.senders) if receiver in self.reachable(sender)]


def key_types_of(edges: Iterable[JobEdge]) -> list[dict[str, Any] | None]:
    """Return the declared types of the keys of each input."""
    return [edge.partitioner.key_type for edge in edges if isinstance(edge.partitioner, KeyGroupPartitioner)]
