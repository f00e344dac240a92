"""A job's checkpoint directory: the checkpoint from which it continues, and the location of the driver's files."""

from __future__ import annotations

from pathlib import Path

from penstock.common.local_path import local_path
from penstock.graph.job_graph import JobGraph
from penstock.runtime.lease.epoch_directory import adopt_directory
from penstock.runtime.savepoint.manifest import Json
from penstock.runtime.savepoint.restore import RestorePlan, plan_restore
from penstock.runtime.savepoint.storage import Directory, absolute
from penstock.runtime.task.union_states import UnionFiles
from penstock.spark.checkpoint_metadata import CheckpointDirectory, CheckpointRecord
from penstock.spark.frame_positions import FramePositions

__all__ = ["SparkCheckpointStorage"]


class SparkCheckpointStorage:
    """The checkpoint directory of a job whose query Spark runs.

    Spark stores offsets and state there. Its batch n completes the checkpoint with the id base + n + 1.
    """

    def __init__(
        self,
        directory: CheckpointDirectory,
        graph: JobGraph,
        record: CheckpointRecord,
        restore: RestorePlan | None,
        *,
        epoch: int = 0,
    ) -> None:
        self.checkpoint = directory
        self.positions = FramePositions(graph, directory)
        """The job's positions in the DataFrames that it reads."""
        self.restore = restore
        """The savepoint that tasks load in the first batch."""
        self.base = record.base
        self.job_id = record.job_id
        """The job that created the directory. Sinks identify their files and transactions by it."""
        self._epoch = epoch
        self._has_frames = bool(graph.frames)
        self._compress = graph.settings.snapshot_compression

    @classmethod
    def claim(
        cls, directory: CheckpointDirectory, graph: JobGraph, job_id: str, *, epoch: int = 0
    ) -> SparkCheckpointStorage:
        """Check that the job can continue from its starting point, and claim the directory."""
        settings = graph.settings
        restore: RestorePlan | None = None
        if settings.savepoint_path is not None and not directory.committed:
            restore = plan_restore(
                settings.savepoint_path, graph.vertices, graph.edges, ignore_unclaimed=settings.ignore_unclaimed_state
            )
            FramePositions(graph, directory).check(restore.manifest, restore.location)
        base = 0 if restore is None else restore.manifest.checkpoint_id
        savepoint = None if settings.savepoint_path is None else absolute(settings.savepoint_path)
        record = directory.claim(graph, savepoint, base, job_id)
        directory.check_logs(graph.channels)
        if restore is None and record.savepoint is not None:  # it started there, but never completed a checkpoint
            restore = plan_restore(record.savepoint, graph.vertices, graph.edges, ignore_unclaimed=True)
        return cls(directory, graph, record, restore, epoch=epoch)

    @property
    def location(self) -> str:
        """The URI of the directory."""
        return self.checkpoint.location

    @property
    def union_files(self) -> UnionFiles:
        """The storage of union list states, beside Spark's files."""
        return self.checkpoint.union_files

    def directory(self, name: str) -> str | None:
        """Return a directory beside the checkpoint, if that is local or mounted."""
        parent = local_path(self.location)
        return None if parent is None else str(adopt_directory(Path(parent), name, self._epoch))

    def checkpoint_id(self, batch_id: int) -> int:
        """Return the checkpoint that a Spark batch completes."""
        return self.base + batch_id + 1

    def last_checkpoint(self) -> int:
        """Return the checkpoint of the last batch in Spark's commit log."""
        last = self.checkpoint.last_batch
        return self.base if last is None else self.checkpoint_id(last)

    def check(self) -> None:
        """Raise an error if the directory is gone: Spark would create it again, without the state."""
        self.checkpoint.check_presence()

    def source_positions(self, checkpoint_id: int, directory: Directory) -> dict[str, Json]:
        """Return the positions of DataFrames."""
        if not self._has_frames:
            return {}
        return self.positions.save(checkpoint_id - self.base - 1, directory, compress=self._compress)
