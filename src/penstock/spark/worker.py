"""State of a Python worker between batches: known jobs and their source tasks. See also stage_host.py."""

from __future__ import annotations

import faulthandler
import gc
import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO

from pyspark import SparkFiles

from penstock.runtime.operators.black_box import BLACK_BOX
from penstock.runtime.source.source_stage import SourceStage
from penstock.runtime.state.pages import MemoryPageStore, PageStore
from penstock.runtime.state.snapshots import StageSnapshot
from penstock.runtime.task.job_blob import unpack_job
from penstock.runtime.task.job_spec import JobSpec
from penstock.runtime.task.stage import StageChannel

_MAX_JOBS = 4
_FULL_COLLECTION_EVERY = 500
_YOUNG_OBJECTS = 500_000
_batches = 0
_black_box: IO[bytes] | None = None
_blobs: OrderedDict[str, bytes] = OrderedDict()
_source_stages: OrderedDict[str, SourceStage] = OrderedDict()
forget_job: list[Callable[[str], None]] = []
"""Called with the file of a job that this worker has not run for a long time."""


class RebindableStore:
    """The page store of a live stage: the same object for the tasks, with another Spark handle in every batch."""

    __slots__ = ("target",)

    def __init__(self, target: PageStore) -> None:
        self.target = target

    def get(self, page_id: str) -> bytes | None:
        """Read a page."""
        return self.target.get(page_id)

    def put(self, page_id: str, blob: bytes) -> None:
        """Write a page."""
        self.target.put(page_id, blob)

    def remove(self, page_id: str) -> None:
        """Remove a page."""
        self.target.remove(page_id)


class LiveStage:
    """A stage channel and its store."""

    __slots__ = ("stage", "store")

    def __init__(self, stage: StageChannel, store: RebindableStore) -> None:
        self.stage = stage
        self.store = store


def job_bytes(job_file: str) -> bytes:
    """Return the job as it was shipped."""
    blob = _blobs.get(job_file)
    if blob is None:
        blob = _blobs[job_file] = Path(SparkFiles.get(job_file)).read_bytes()
        _forget_old_jobs()
    return blob


def _forget_old_jobs() -> None:
    while len(_blobs) > _MAX_JOBS:
        old, _ = _blobs.popitem(last=False)
        _source_stages.pop(old, None)
        for forget in forget_job:
            forget(old)


def _unpack(job_file: str) -> JobSpec:
    return unpack_in_worker(job_bytes(job_file))


def unpack_in_worker(job: bytes) -> JobSpec:
    """Decode the job, with the driver's log settings and this worker's paths of files."""
    open_black_box()
    spec = unpack_job(job)
    if spec.logging is not None:
        spec.logging.apply()
    files = {name: SparkFiles.get(Path(path).name) for name, path in spec.info.cached_files.items()}
    return replace(spec, info=replace(spec.info, cached_files=files))


def open_black_box() -> None:
    """Write notes to the file that Spark reads after a worker has died, before Python's own output there."""
    global _black_box  # noqa: PLW0603
    directory = os.environ.get("PYTHON_FAULTHANDLER_DIR")
    path = Path(directory or "", str(os.getpid()))
    if directory is None or (_black_box is not None and _black_box.name == str(path)) or not path.exists():
        return
    BLACK_BOX.write_to(str(path))
    _black_box = path.open("ab")
    faulthandler.enable(_black_box)


def source_stage(job_file: str) -> SourceStage:
    """Return the source tasks of a job in this worker."""
    stage = _source_stages.get(job_file)
    if stage is None:
        stage = _source_stages[job_file] = new_source_stage(job_file)
    return stage


def new_source_stage(job_file: str) -> SourceStage:
    """Create source tasks with their own functions."""
    spec = _unpack(job_file)
    gc.set_threshold(_YOUNG_OBJECTS, 10, 1000)
    return SourceStage(spec, spec.environment(MemoryPageStore()))


def drop_source_stage(job_file: str) -> None:
    """Drop the source tasks after a failure: the next batch creates new ones."""
    _source_stages.pop(job_file, None)


def new_stage(job_file: str, level: int, channel: int, store: PageStore, snapshot: StageSnapshot) -> LiveStage:
    """Create a stage from stored state."""
    spec = _unpack(job_file)
    rebindable = RebindableStore(store)
    return LiveStage(StageChannel(spec, level, channel, spec.environment(rebindable), snapshot), rebindable)


def settle() -> None:
    """Hide state that stays alive from the garbage collector.

    Spark collects garbage after every task; visiting a million state entries would cost more than the batch. From time
    to time, one full collection removes cycles that have become garbage since.
    """
    global _batches  # noqa: PLW0603
    _batches += 1
    if _batches % _FULL_COLLECTION_EVERY == 0:
        gc.unfreeze()
        gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 10, 1000)
