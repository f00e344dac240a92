"""Records of the jobs that ``penstock run`` has started on this machine, in one small file per job.

The process of a job writes its file and keeps it up to date, and other commands read it. It contains the address of the
process.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from penstock.cli.command_line import RunCommand
from penstock.common.errors import InvalidProgramError
from penstock.common.job_status import JobStatus
from penstock.runtime.lease.owner import this_machine

__all__ = ["JobRecord", "JobRecords"]

_KEPT_ENDED = 100
_LOST = "LOST"
_LIVING = {status.name for status in JobStatus if not status.is_terminal_state()}


@dataclass(frozen=True, slots=True)
class JobRecord:
    """The record of a job. Times are in seconds, as in :func:`time.time`."""

    job_id: str
    name: str
    status: str
    program: str
    process: int
    started: float
    socket: str
    log: str | None = None
    ended: float | None = None
    error: str | None = None
    rest: str | None = None
    """The Unix socket on which the job's process serves the REST API, or None without the extra ``service``."""
    command: RunCommand | None = None
    machine: str | None = None
    """The machine of the process, if several machines share the directory of records."""

    @staticmethod
    def from_json(text: str) -> JobRecord:
        """Parse a record written by :meth:`JobRecords.write`."""
        fields = json.loads(text)
        command = fields.pop("command", None)
        return JobRecord(**fields, command=None if command is None else RunCommand(**command))

    @property
    def is_over(self) -> bool:
        """Whether the job has ended, in any way."""
        return self.status not in _LIVING

    @property
    def is_lost(self) -> bool:
        """Whether the process of the job was killed."""
        return self.status == _LOST

    def as_found(self) -> JobRecord:
        """Return the current record: a process that was killed could not record the end of its jobs."""
        if self.is_over or (self.machine is not None and self.machine != this_machine()) or _is_alive(self.process):
            return self
        return replace(self, status=_LOST, error="its process is gone: it was killed")


class JobRecords:
    """The files, in a directory of the user."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or default_directory()
        self._read: dict[Path, tuple[tuple[int, int], JobRecord]] = {}

    @property
    def archive(self) -> Path:
        """The directory for records of ended jobs."""
        return self._directory / "archive"

    def write(self, record: JobRecord) -> None:
        """Store the record. Readers see the old one or the new one."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._directory / f"{record.job_id}.json"
        hidden = path.with_suffix(f".{os.getpid()}.tmp")
        hidden.touch(mode=0o600)  # the command line may contain secrets
        hidden.write_text(json.dumps(asdict(record)), encoding="utf-8")
        hidden.replace(path)

    def all(self) -> list[JobRecord]:
        """Return all known records, newest last."""
        found = []
        for path in self._directory.glob("*.json"):
            # Removed meanwhile, or not a record: ignore it.
            with contextlib.suppress(OSError, ValueError, TypeError):
                found.append(self._record_in(path).as_found())
        return sorted(found, key=lambda record: record.started)

    def _record_in(self, path: Path) -> JobRecord:
        """Read a record. Files are replaced when a record changes, which is rare, so unchanged files are cached."""
        file = path.stat()
        version = (file.st_ino, file.st_mtime_ns)
        known = self._read.get(path)
        if known is None or known[0] != version:
            known = self._read[path] = (version, JobRecord.from_json(path.read_text(encoding="utf-8")))
        return known[1]

    def current(self) -> list[JobRecord]:
        """Return running jobs, and lost ones until the same job is started again."""
        found = self.all()
        resumed = {(record.program, record.name): record.started for record in found if not record.is_lost}
        return [
            record
            for record in found
            if not record.is_over
            or (record.is_lost and resumed.get((record.program, record.name), record.started) <= record.started)
        ]

    def find(self, job_id: str) -> JobRecord:
        """Return the job whose id starts with this prefix."""
        found = [record for record in self.all() if record.job_id.startswith(job_id.lower())] if job_id else []
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(record.job_id for record in found)
            raise InvalidProgramError(f"the ids of several jobs start with '{job_id}': {names}")
        raise InvalidProgramError(f"there is no job '{job_id}' on this machine; penstock list -a shows all")

    def forget_old(self) -> None:
        """Keep only the latest ended jobs."""
        ended = [record for record in self.all() if record.is_over]
        for record in ended[:-_KEPT_ENDED]:
            (self._directory / f"{record.job_id}.json").unlink(missing_ok=True)
            for kept in self.archive.glob(f"{record.job_id}*"):
                kept.unlink(missing_ok=True)

    def ended(self, record: JobRecord, status: str, error: str | None = None) -> None:
        """Record the end of a job."""
        self.write(replace(record, status=status, ended=time.time(), error=error))


def default_directory() -> Path:
    """Return ``PENSTOCK_JOBS``, or else the user's directory for state."""
    chosen = os.environ.get("PENSTOCK_JOBS")
    if chosen:
        return Path(chosen)
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "penstock" / "jobs"


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:  # a process that has ended but was not waited for still exists
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2][1] != "Z"
    except (OSError, IndexError):
        return True
