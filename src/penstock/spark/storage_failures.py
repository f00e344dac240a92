"""Failures of Spark that are caused by a disk: Spark reports them as plans, stack traces and broken pipes."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.common.errors import CheckpointError, JobExecutionError, PenstockError, StorageError
from penstock.common.storage import directory_trouble, free_space, storage_error

__all__ = ["checkpoint_gone", "explain_storage", "full_disk_in", "unwritable"]

_FULL = re.compile(r"No space left on device|Disk quota exceeded|There is not enough space on the disk")
_ADVICE = (
    "Free some space there or make it writable, then restart the program: it resumes from "
    "its last checkpoint. To use another directory, set execution.checkpointing.dir"
)
_SCRATCH_ADVICE = "Free some space, or set spark.local.dir to a directory on another disk"


def full_disk_in(text: str) -> str | None:
    """Return the part of an error's text that reports a full disk."""
    found = _FULL.search(text)
    return None if found is None else found.group()


def unwritable(location: str, path: Path | None, reason: str) -> StorageError:
    """Return the error for a checkpoint directory, on any storage, that rejects a file."""
    if path is None:
        return StorageError(f"cannot write to {location}: {reason}. {_ADVICE}")
    return storage_error(path, reason, _ADVICE)


def checkpoint_gone(location: str) -> CheckpointError:
    """Return the error for a checkpoint directory that was deleted while its job was running."""
    return CheckpointError(
        f"the checkpoint directory {location} was deleted while the job was running: its state is lost. Restore the "
        "directory, or restart the program with an empty directory, from a savepoint if there is one"
    )


def explain_storage(error: PenstockError, checkpoint: Path | None, spark: SparkSession) -> PenstockError:
    """Return the error, or a clearer one if a full or read-only disk is the reason.

    :param checkpoint: the checkpoint directory, if it is on this machine
    """
    if type(error) not in (JobExecutionError, StorageError, CheckpointError):
        return error
    if checkpoint is not None and not checkpoint.exists():
        return checkpoint_gone(str(checkpoint))
    said = full_disk_in(str(error))
    places = _places(checkpoint, spark)
    for path, advice in places:
        trouble = directory_trouble(path)
        if trouble is not None:
            return _with_spark_error(storage_error(path, trouble, advice), said)
    if said is None or isinstance(error, StorageError):
        return error
    space = ", ".join(f"{path}: {free_space(path)}" for path, _ in places)
    return StorageError(f"the disk was full while the job was running ({said}). {space}. {_ADVICE}")


def _with_spark_error(explained: PenstockError, said: str | None) -> PenstockError:
    if said is not None:
        explained.add_note(f"Spark said: {said}")
    return explained


def _places(checkpoint: Path | None, spark: SparkSession) -> list[tuple[Path, str]]:
    """Return the local directories that a job writes to, and what to do about each."""
    places = [] if checkpoint is None else [(checkpoint, _ADVICE)]
    scratch = os.environ.get("SPARK_LOCAL_DIRS") or spark.conf.get("spark.local.dir", tempfile.gettempdir())
    return places + [(Path(name), _SCRATCH_ADVICE) for name in (scratch or "").split(",") if name]
