"""Sources that are read in order: every task reads one split, and takes the next one when it is done.

Flink's tasks read files in this way. The job does not know a split until a task takes it: it is not in the checkpoint,
and its clock does not hold back event time. Therefore one task reads all splits in order, and with several tasks, the
job has at most one open split per task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.core.source import SourceSplit
from penstock.runtime.plan.offset import SplitPosition


class SplitQueue:
    """Assigns splits to subtasks in the planned batch.

    :param positions: positions of the splits taken in earlier batches
    """

    def __init__(self, splits: Sequence[SourceSplit], positions: Mapping[str, SplitPosition], parallelism: int) -> None:
        taken = [split for split in splits if split.split_id in positions]
        waiting = [split for split in splits if split.split_id not in positions]
        self.splits = [*taken, *waiting]
        self.withheld = False
        self._left = [0] * parallelism
        self._under_way = [0] * parallelism
        for split in taken:
            at = positions[split.split_id]
            self._under_way[at.subtask or 0] += not at.state.is_finished
        busy = sum(map(bool, self._under_way))
        self.tasks_with_work = min(busy + len(waiting), parallelism)

    def begin(self, share: int) -> None:
        """Set the number of records that each task may read."""
        self._left = [share] * len(self._left)

    def take(self) -> int | None:
        """Return the task that takes the next split, or ``None`` if all tasks have one."""
        free = [subtask for subtask, under_way in enumerate(self._under_way) if not under_way]
        if not free:
            self.withheld = True
            return None
        subtask = max(free, key=lambda free_task: self._left[free_task])
        self._under_way[subtask] += 1
        return subtask

    def budget(self, at: SplitPosition) -> int:
        """Return how many records the task of a split may still read."""
        return self._left[at.subtask or 0]

    def planned(self, at: SplitPosition, records: int) -> None:
        """Record that the task of a split reads this many records up to this position, which may be the split's end."""
        subtask = at.subtask or 0
        self._left[subtask] = max(0, self._left[subtask] - records)
        self._under_way[subtask] -= at.state.is_finished
