"""The names and life cycle of the files that a file sink writes.

A file is *in progress* while records are added, *pending* when it is complete, and *finished* when its checkpoint
completes. Until then its name begins with a dot, so that readers ignore it:

    .part-3f2a77c1-0-5.inprogress.9d41e0b2    .part-3f2a77c1-0-5.pending.9d41e0b2    part-3f2a77c1-0-5

The parts of a name are the prefix, the sink (job and operator), the subtask, and the number of the file; hidden files
also have the attempt that wrote them. When a job resumes with another parallelism, its subtasks are different ones with
the same numbers. From then on, a name also contains the checkpoint since which the subtask exists
(``part-3f2a77c1-0_17-5``).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from penstock.common.errors import JobExecutionError
from penstock.common.storage import storage_errors

IN_PROGRESS, PENDING = "inprogress", "pending"
UNCOMPACTED = ".uncompacted-"


def sink_writes(base: Path) -> AbstractContextManager[None]:
    """Wrap writes to a sink's directory: errors name the directory and say what to do."""
    return storage_errors(
        base,
        "Free some space there or make it writable, then restart the program: it resumes from its last checkpoint",
    )


def sink_tag(job_id: str, sink_id: str) -> str:
    """Return a tag that distinguishes the files of sinks that write to one directory."""
    return hashlib.sha256(f"{job_id}/{sink_id}".encode()).hexdigest()[:8]


def new_attempt() -> str:
    """Return a tag that distinguishes the files of several attempts at the same batch."""
    return uuid.uuid4().hex[:8]


@dataclass(frozen=True, slots=True)
class PartFile:
    """The names of one file."""

    directory: str
    name: str

    def path(self, stage: str, attempt: str) -> Path:
        """Return the hidden name in a stage."""
        return Path(self.directory) / f".{self.name}.{stage}.{attempt}"

    @property
    def final(self) -> Path:
        """Return the name of the finished file."""
        return Path(self.directory) / self.name


@dataclass(frozen=True, slots=True)
class Numbering:
    """Numbers the files of a subtask, so that no two files of a sink ever have the same name.

    >>> Numbering(1, 2).writer, Numbering(1, 2, since=17).writer
    ('1', '1_17')
    """

    subtask: int
    parallelism: int
    since: int = 0
    next: int = 0

    @property
    def writer(self) -> str:
        """The subtask's part of a file name."""
        return f"{self.subtask}_{self.since}" if self.since else str(self.subtask)

    def belongs_to(self, other: Numbering) -> bool:
        """Whether both belong to the same subtask. Another parallelism has other subtasks."""
        return (self.subtask, self.parallelism) == (other.subtask, other.parallelism)


@dataclass(frozen=True, slots=True)
class InProgress:
    """A file in progress as stored in the checkpoint. It is valid up to `length`."""

    bucket: str
    file: PartFile
    attempt: str
    length: int
    created: int
    modified: int


@dataclass(frozen=True, slots=True)
class Superseded:
    """A file that is obsolete after the checkpoint that names it: another writer continued with a copy."""

    path: str


@dataclass(frozen=True, slots=True)
class Pending:
    """A committable: a complete file to give its final name or, without a final name, a file to remove."""

    source: str
    target: str

    @classmethod
    def to_remove(cls, path: Path) -> Pending:
        """Return a committable for a file that an earlier attempt left behind."""
        return cls(str(path), "")


def sync(file: BinaryIO) -> None:
    """Make all written data durable."""
    file.flush()
    os.fsync(file.fileno())


def continue_file(left: InProgress, attempt: str, *, compacted: bool) -> Path:
    """Copy the valid part of another writer's file, which this attempt continues.

    It is a copy because a lost task may still be writing, and because the batch may have to be written again from the
    same state. The file may since have been renamed: to pending, and to finished if the commit came before the crash.
    """
    final = left.file.final
    sources = [left.file.path(IN_PROGRESS, left.attempt), left.file.path(PENDING, left.attempt)]
    sources.append(final.with_name(UNCOMPACTED + final.name) if compacted else final)
    target = left.file.path(IN_PROGRESS, attempt)
    for source in sources:
        if source.exists() and source.stat().st_size >= left.length:
            with source.open("rb") as reading, target.open("wb") as writing:
                _copy(reading, writing, left.length)
            return target
    raise JobExecutionError(
        f"the file {sources[0]} is part of the checkpoint but is missing: files whose names begin with a dot belong to "
        "the running job and must not be touched"
    )


def _copy(source: BinaryIO, target: BinaryIO, length: int) -> None:
    if length > 0:
        shutil.copyfileobj(source, target)
        target.truncate(length)


def hidden_files(base: Path, prefix: str, tag: str, writer: str) -> Iterator[Path]:
    """Return all in-progress and pending files of a subtask, from all attempts."""
    start = f".{prefix}-{tag}-{writer}-"
    for directory, _, names in os.walk(base):
        for name in names:
            if name.startswith(start) and (f".{IN_PROGRESS}." in name or f".{PENDING}." in name):
                yield Path(directory) / name
