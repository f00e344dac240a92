"""Runs a job in the continuous mode, attempt after attempt. Failures are handled as for a query."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from penstock.common.errors import InvalidProgramError, PenstockError
from penstock.graph.job_graph import JobGraph, job_spec
from penstock.runtime.savepoint.storage import join
from penstock.runtime.task.job_blob import pack_job
from penstock.spark.checkpoint_metadata import CONTINUOUS, CheckpointDirectory
from penstock.spark.checkpoint_storage import SparkCheckpointStorage
from penstock.spark.continuous.barrier_stage import BarrierStage, is_one_machine
from penstock.spark.continuous.checkpoint_files import CheckpointFiles
from penstock.spark.continuous.engine import ContinuousEngine
from penstock.spark.continuous.slots import slots_needed
from penstock.spark.continuous.stepper import DEFAULT_INTERVAL_MS, Stepper
from penstock.spark.continuous.tls import TlsFiles, tls_files
from penstock.spark.dependencies import working_directory
from penstock.spark.job_master import JobMaster
from penstock.spark.worker_pools import forget_dead_pools

__all__ = ["ContinuousMaster"]

PORTS = "penstock.continuous.ports"
_CANCEL_SECONDS = 3.0  # how long the running step of a cancelled job may take


class ContinuousStorage(SparkCheckpointStorage):
    """The checkpoint directory of a job in the continuous mode."""

    files: CheckpointFiles

    @classmethod
    def claim(
        cls, directory: CheckpointDirectory, graph: JobGraph, job_id: str, *, epoch: int = 0
    ) -> ContinuousStorage:
        """Claim the directory for the job."""
        storage = super().claim(directory, graph, job_id, epoch=epoch)
        assert isinstance(storage, cls)
        where = directory.location if directory.local_path is None else str(directory.local_path)
        storage.files = CheckpointFiles(
            join(where, CONTINUOUS), epoch=epoch, retained=graph.settings.retained_checkpoints or 1
        )
        return storage

    def last_checkpoint(self) -> int:
        """Return the checkpoint of the last manifest."""
        last = self.files.last()
        return self.base if last is None else last.checkpoint_id


class ContinuousMaster(JobMaster):
    """One job in the continuous mode, at one parallelism."""

    stepped = True

    def claim(self, checkpoint: CheckpointDirectory) -> ContinuousStorage:
        """Claim a checkpoint directory for the job."""
        return ContinuousStorage.claim(checkpoint, self.graph, self.life.job_id, epoch=self.checkpoints.fence.epoch)

    def _run_attempt(self, attempt: int, storage: SparkCheckpointStorage, *, loading_only: bool = False) -> None:
        assert isinstance(storage, ContinuousStorage)
        settings, checkpoints, files = self.graph.settings, self.checkpoints, storage.files
        forget_dead_pools(self._spark)
        last = files.adopt()
        sources = self._new_sources(storage)
        unions = checkpoints.open(sources)
        spec = job_spec(
            self.graph,
            storage.job_id,
            attempt,
            batch=False,
            restore=storage.restore,
            unions=unions,
            skip_key_check=settings.ignore_unclaimed_state or self._same_program,
            epoch=checkpoints.fence.epoch,
            stepped=True,
        )
        group = f"{self.life.job_id}-{attempt}"
        name = f"{settings.job_name} {self.life.job_id[:8]}-{attempt}"
        ports, tls = _ports(settings.configuration.get(PORTS)), tls_of(self._spark, settings.configuration)
        stage = BarrierStage(self._spark, slots_needed(self.graph), group, name, ports, tls)
        engine: ContinuousEngine | None = None
        try:
            with working_directory(self._spark.sparkContext, settings):
                links = stage.start(self._look)
            engine = ContinuousEngine(links, files, self._look, checkpoints.fence.check)
            engine.start(pack_job(spec), f"{checkpoints.fence.epoch}-{attempt}", last)
            interval = DEFAULT_INTERVAL_MS if settings.checkpoint_interval is None else settings.checkpoint_interval
            offset = sources.initial_offset if last is None else last.offset
            stepper = Stepper(checkpoints, engine, offset, interval_ms=interval)
            self._attempt_started(loading_only=False)
            self._take_steps(stepper)
        except CancelledError:
            return
        finally:
            self._end_attempt(engine, stage)

    def _take_steps(self, stepper: Stepper) -> None:
        checkpoints = self.checkpoints
        while not checkpoints.stopping and not checkpoints.ended:
            checkpoints.fence.raise_if_lost()
            if not stepper.run_once():
                stepper.wait()

    def _end_attempt(self, engine: ContinuousEngine | None, stage: BarrierStage) -> None:
        try:
            if engine is not None:
                engine.close()
        finally:
            stage.end()
            self.checkpoints.close_attempt()

    def _look(self) -> None:
        """Check, while the driver waits for tasks, whether it should continue."""
        self.checkpoints.fence.raise_if_lost()
        if self.life.seconds_since_cancelled > _CANCEL_SECONDS:
            raise CancelledError


class CancelledError(PenstockError):
    """The job was cancelled in the middle of a step."""


def tls_of(spark: SparkSession, configuration: Mapping[str, str]) -> TlsFiles | None:
    """Return the TLS files for connections between machines. On one machine, connections are not encrypted."""
    if is_one_machine(spark):
        return None
    return tls_files({**dict(spark.sparkContext.getConf().getAll()), **configuration})


def _ports(text: str | None) -> tuple[int, int] | None:
    """Parse a range of ports.

    >>> _ports("50100-50200"), _ports(None)
    ((50100, 50200), None)
    """
    if text is None:
        return None
    first, _, last = text.partition("-")
    if not first.strip().isdigit() or not last.strip().isdigit() or int(first) > int(last):
        raise InvalidProgramError(f"{PORTS} is {text!r}: give the first and the last port, as in 50100-50200")
    return int(first), int(last)
