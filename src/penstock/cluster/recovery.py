"""Recovers jobs after their driver or the service itself was killed."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from penstock.cluster.detached_program import Started
from penstock.cluster.gateway import DriverRecord, DriverRecords
from penstock.runtime.lease.owner import this_machine

__all__ = ["JobStore", "Recovery", "StoredJob"]

LOG = logging.getLogger("penstock.recovery")
_FIRST_DELAY, _LAST_DELAY = 1.0, 60.0
_THREADS = 4


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A submitted job, with all data to restart it under the same id."""

    job_id: str
    arguments: list[str]
    log: str


class JobStore:
    """The jobs of a cluster, one file each in the shared directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(self, job: StoredJob) -> None:
        """Store a job. It is durable when this returns."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        hidden = self._directory / f".{job.job_id}.{os.getpid()}"
        with hidden.open("w", encoding="utf-8") as file:
            json.dump(asdict(job), file)
            file.flush()
            os.fsync(file.fileno())
        hidden.chmod(0o600)
        hidden.replace(self._directory / f"{job.job_id}.json")

    def remove(self, job_id: str) -> None:
        """Remove a job."""
        (self._directory / f"{job_id}.json").unlink(missing_ok=True)

    def all(self) -> list[StoredJob]:
        """Return all readable jobs. A damaged file must not prevent the recovery of others."""
        found = []
        for path in sorted(self._directory.glob("*.json")):
            try:
                found.append(StoredJob(**json.loads(path.read_text(encoding="utf-8"))))
            except (OSError, ValueError, TypeError) as error:
                LOG.warning("the job in %s cannot be recovered: %s", path, error)
        return found


@dataclass(slots=True)
class _Attempts:
    delay: float = _FIRST_DELAY
    next_at: float = 0.0


@dataclass(slots=True)
class Recovery:
    """Restarts jobs whose drivers are lost. Finished, failed and cancelled jobs are not affected.

    :param start: starts `penstock run` with these arguments
    :param report_failure: reports that a job cannot be recovered
    """

    store: JobStore
    records: DriverRecords
    start: Callable[[list[str], Path], Started]
    report_failure: Callable[[StoredJob, str], None]
    clock: Callable[[], float] = time.monotonic
    _attempts: dict[str, _Attempts] = field(default_factory=dict)
    _starting: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def supervise(self, ended: threading.Event, interval: float = 1.0) -> None:
        """Supervise the jobs until the service ends."""
        with ThreadPoolExecutor(_THREADS, "penstock-recovery") as threads:
            while not ended.is_set():
                for job, take_over in self.due():
                    threads.submit(self.restart, job, take_over=take_over)
                ended.wait(interval)

    def due(self) -> list[tuple[StoredJob, bool]]:
        """Return the jobs to start now, and whether to take over their directories from another machine."""
        known = {record.job_id: record for record in self.records.all()}
        now, found = self.clock(), []
        for job in self.store.all():
            record = known.get(job.job_id)
            with self._lock:
                attempts = self._attempts.get(job.job_id)
                waiting = job.job_id in self._starting or (attempts is not None and now < attempts.next_at)
                if waiting or not _is_gone(record):
                    continue
                self._starting.add(job.job_id)
            found.append((job, record is not None and _is_elsewhere(record)))
        return found

    def submitting(self, job_id: str) -> None:
        """Ignore a job that a request is starting, until `submitted` is called."""
        with self._lock:
            self._starting.add(job_id)

    def submitted(self, job_id: str) -> None:
        """Supervise the job that a request has started."""
        with self._lock:
            self._starting.discard(job_id)

    def restart(self, job: StoredJob, *, take_over: bool) -> None:
        """Restart a job. The delay grows with each attempt."""
        with self._lock:
            attempts = self._attempts.setdefault(job.job_id, _Attempts())
        LOG.info("starting job %s again", job.job_id)
        try:
            started = self.start([*(["--take-over"] if take_over else []), *job.arguments], Path(job.log))
            if started.job_id is None:
                self.report_failure(job, started.last_lines())
        except Exception as error:  # one bad job must not stop the supervision of the others
            LOG.exception("job %s could not be started again", job.job_id)
            self.report_failure(job, str(error))
        finally:
            attempts.next_at = self.clock() + attempts.delay
            attempts.delay = min(attempts.delay * 2, _LAST_DELAY)
            self.submitted(job.job_id)


def _is_gone(record: DriverRecord | None) -> bool:
    """Whether a job has no driver although it has not ended. A driver on another machine counts as lost with it."""
    return record is None or record.status == "LOST" or (not record.is_over and _is_elsewhere(record))


def _is_elsewhere(record: DriverRecord) -> bool:
    return record.machine is not None and record.machine != this_machine()
