"""The continuous mode in this process: tasks are threads, and everything else is as on Spark."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

from penstock.core.fence import Fence
from penstock.graph.job_graph import JobGraph
from penstock.runtime.checkpoint.checkpoint_coordinator import Batch
from penstock.runtime.checkpoint.checkpoint_storage import MemoryCheckpointStorage
from penstock.runtime.plan.offset import Offset
from penstock.spark.continuous.checkpoint_files import CheckpointFiles, Manifest
from penstock.spark.continuous.engine import ContinuousEngine
from penstock.spark.continuous.slots import check_can_run_continuously, slots_needed
from penstock.spark.continuous.stepper import Stepper
from penstock.spark.continuous.threads import ThreadLinks
from penstock.testing.mini_cluster import MiniCluster, MiniClusterJob

__all__ = ["ContinuousCluster", "ContinuousJob"]

_FILES = "continuous"


class ContinuousJob(MiniClusterJob):
    """A running job. With a directory, a job started there again resumes from its last checkpoint."""

    stepped = True
    steps_per_checkpoint = 3
    _temporary: str | None = None

    def _last_complete(self, directory: str | None, fence: Fence, graph: JobGraph) -> Offset | None:
        check_can_run_continuously(graph)
        if directory is None:
            directory = self._temporary = tempfile.mkdtemp(prefix="penstock-continuous-")
        self.files = CheckpointFiles(str(Path(directory) / _FILES), epoch=fence.epoch)
        self._manifest: Manifest | None = self.files.adopt()
        return None if self._manifest is None else self._manifest.offset

    def _start_tasks(self, job: bytes, offset: Offset, storage: MemoryCheckpointStorage) -> None:
        self._engine = _Engine(ThreadLinks(slots_needed(self.graph)), self.files, check=self.checkpoints.fence.check)
        self._engine.storage = storage
        self._engine.start(job, f"{self.checkpoints.fence.epoch}-{uuid.uuid4().hex[:8]}", self._manifest)
        self._stepper = Stepper(
            self.checkpoints, self._engine, offset, interval_ms=1000 * self.steps_per_checkpoint, clock=_counter()
        )

    @property
    def offset(self) -> Offset:
        """The offset of the last complete checkpoint."""
        return self._stepper.durable

    def run_batch(self) -> bool:
        """Run one step if there is something to do. Some steps end with a checkpoint."""
        return self._stepper.run_once()

    def run(self) -> None:
        """Run until there is nothing to do, or the job has ended. Then everything is in a checkpoint."""
        super().run()
        if not self.over:
            self._stepper.settle()

    def close(self) -> None:
        """Close user functions, sources and sinks, even if one of them fails."""
        self.queries.checkpoint_complete(self.offset.checkpoint_id)
        with contextlib.ExitStack() as stack:
            if self._temporary is not None:
                stack.callback(shutil.rmtree, self._temporary, ignore_errors=True)
            stack.callback(self.checkpoints.close)
            stack.callback(self.checkpoints.close_attempt)
            stack.callback(self._engine.close)

    def kill(self) -> None:
        """End everything immediately, like kill -9 of the driver and all its tasks."""
        self._engine.abandon()
        self.checkpoints.close_attempt()


class _Engine(ContinuousEngine):
    """Also records complete checkpoints in the storage of the mini cluster."""

    storage: MemoryCheckpointStorage

    def is_written(self, batch: Batch) -> bool:
        """Wait until the state is written, so that the number of steps does not depend on the speed of threads."""
        self.wait_until_written(batch)
        return True

    def make_durable(self, batch: Batch) -> None:
        super().make_durable(batch)
        self.storage.complete(batch.end.checkpoint_id)


def _counter() -> Callable[[], float]:
    """Return a clock that advances with every call."""
    numbers = itertools.count()
    return lambda: float(next(numbers))


class ContinuousCluster(MiniCluster):
    """An executor for `StreamExecutionEnvironment(executor=ContinuousCluster())`."""

    def _job_class(self, graph: JobGraph) -> type[MiniClusterJob]:
        return MiniClusterJob if graph.runs_as_batch else ContinuousJob
