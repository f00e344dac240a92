"""A source from the coordinator's view: the enumerator, its splits, and the subtask that reads each split."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from penstock.core.source import Source, SourceSplit, SplitEnumerator
from penstock.runtime.operators.user_errors import source_errors
from penstock.runtime.plan.job_vertex import JobVertex
from penstock.runtime.plan.offset import SplitPosition, SplitState

__all__ = ["CoordinatedSource", "idle_timeout_of", "readers", "subtask_for_new_split", "with_subtasks"]


@dataclass(slots=True)
class CoordinatedSource:
    """One source vertex and its enumerator."""

    vertex: JobVertex
    source: Source
    enumerator: SplitEnumerator
    idle_timeout: int | None
    splits: dict[str, SourceSplit] = field(default_factory=dict)
    last_active: dict[str, int] = field(default_factory=dict)
    restored: bool = False
    unfinished: int = 1  # number of splits, when the last batch was planned
    busy: set[str] = field(default_factory=set)  # those of them that had something to read
    withholds: bool = False  # whether splits wait until a task is free to take them

    @property
    def key(self) -> str:
        """The source's key in offsets."""
        return self.vertex.operators[0].operator_id

    def guard(self, action: str) -> AbstractContextManager[None]:
        """Add the source and the action to errors of the enumerator."""
        return source_errors(self.vertex.operators[0].name, action)


def readers(vertex: JobVertex, split_id: str, subtask: int) -> list[tuple[str, int]]:
    """Return the names under which a split is read, and the subtasks. Each part has its own clock."""
    if not vertex.spread:
        return [(split_id, subtask)]
    return [(f"{split_id}/{reader}", reader) for reader in range(vertex.parallelism)]


def with_subtasks(source: CoordinatedSource, positions: dict[str, SplitPosition]) -> dict[str, SplitPosition]:
    """Assign a subtask to each position. A savepoint has none, or those of another parallelism."""
    parallelism = source.vertex.parallelism
    if all(at.subtask is not None and at.subtask < parallelism for at in positions.values()):
        return positions
    assigned: dict[str, SplitPosition] = {}
    for split_id, at in positions.items():
        assigned[split_id] = replace(at, subtask=subtask_for_new_split(source, split_id, assigned))
    return assigned


def subtask_for_new_split(source: CoordinatedSource, split_id: str, positions: dict[str, SplitPosition]) -> int:
    """Return the source's choice, or the subtask with the fewest unfinished splits. A split stays there to its end."""
    wanted = source.enumerator.subtask_for(split_id, source.vertex.parallelism)
    if wanted is not None:
        return wanted
    loads = [0] * source.vertex.parallelism
    for at in positions.values():
        if at.state != SplitState.GONE and at.subtask is not None:
            loads[at.subtask] += 1
    return loads.index(min(loads))


def idle_timeout_of(vertex: JobVertex) -> int | None:
    """Return the idleness timeout of the watermark strategy in a source chain, or None."""
    timeouts = [getattr(chained.operator, "idle_timeout", None) for chained in vertex.operators]
    return min((timeout for timeout in timeouts if timeout is not None), default=None)
