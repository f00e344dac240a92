"""``penstock list``, ``status``, ``savepoint``, ``stop``, ``cancel``, ``rescale``: control jobs on this machine."""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import datetime
from typing import Any

from penstock.cli.job_records import JobRecord, JobRecords
from penstock.cli.job_server import NoAnswerError, ask
from penstock.common.errors import InvalidProgramError, JobExecutionError
from penstock.common.job_status import JobStatus
from penstock.runtime.savepoint.manifest import read_manifest
from penstock.runtime.savepoint.storage import absolute, directory_at

__all__ = ["cancel", "list_jobs", "rescale", "savepoint", "status", "stop"]

_ANSWER_SECONDS = 5.0
_HEADER = ("JOB", "STATUS", "STARTED", "PROCESS", "NAME")


def list_jobs(options: argparse.Namespace) -> int:
    """Print a table of running and lost jobs. With ``-a``, include ended ones."""
    records = JobRecords().all() if options.all else JobRecords().current()
    if not records:
        print("No jobs are known." if options.all else "No jobs are running. (penstock list -a: also ended ones)")
        return 0
    rows = [_HEADER, *(_row(_asked(record)) for record in records)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print("  ".join([*cells, row[-1]]))
    if any(record.is_lost for record in records):
        print("The process of a LOST job was killed: penstock status JOB shows how to start it again.")
    return 0


def status(options: argparse.Namespace) -> int:
    """Show all known details of a job."""
    record = JobRecords().find(options.job)
    shown, progress = record.status, ""
    if not record.is_over:
        try:
            answer = ask(record, "status")
            shown, progress = answer["status"], answer["progress"]
        except NoAnswerError:
            record = JobRecords().find(record.job_id)
            if not record.is_over:
                raise
            shown = record.status  # it has just ended
    lines = [
        ("job", record.job_id),
        ("name", record.name),
        ("status", shown),
        ("progress", progress),
        ("error", record.error),
        ("program", record.program),
        ("process", str(record.process)),
        ("started", _moment(record.started)),
        ("ended", None if record.ended is None else _moment(record.ended)),
        ("output", record.log),
        ("resume", record.command.resume() if record.is_lost and record.command is not None else None),
    ]
    for title, text in lines:
        if text:
            print(f"{title:9} {text}")
    return 0


def savepoint(options: argparse.Namespace) -> int:
    """Take a savepoint without stopping the job, or delete one."""
    if options.dispose:
        return _dispose(options.dispose)
    if options.job is None:
        raise InvalidProgramError("missing job id: use penstock savepoint JOB [DIRECTORY]; penstock list shows the ids")
    record = _running(options.job)
    print(f"Triggering a savepoint of job {record.job_id} ...", flush=True)
    path = _tell(record, "savepoint", directory=_as_typed(options.directory))
    print(f"Savepoint completed.\nPath: {path}")
    return 0


def stop(options: argparse.Namespace) -> int:
    """Stop a job with a savepoint."""
    record = _running(options.job)
    print(f"Stopping job {record.job_id} with a savepoint ...", flush=True)
    path = _tell(record, "stop", drain=options.drain, directory=_as_typed(options.savepoint_path))
    print(f"Savepoint completed.\nPath: {path}")
    if options.drain:
        print("All windows and timers have fired: do not resume from this savepoint with the same input.")
    else:
        _print_resume(record, path)
    return 0


def cancel(options: argparse.Namespace) -> int:
    """Cancel a job, optionally with a savepoint; a lost job is only removed from the list."""
    record = JobRecords().find(options.job)
    if record.is_lost:
        JobRecords().ended(record, JobStatus.CANCELED.name, record.error)
        print(f"Job {record.job_id} was lost; it is no longer listed.")
        return 0
    record = _running(options.job)
    if options.with_savepoint is None:
        ended = _tell(record, "cancel")
        if ended == JobStatus.CANCELED.name:
            print(f"Cancelled job {record.job_id}.")
        else:
            print(f"Job {record.job_id} was not cancelled: it had already ended ({ended}).")
        return 0
    path = _tell(record, "cancel-with-savepoint", directory=_as_typed(options.with_savepoint))
    print(f"Cancelled job {record.job_id}.\nPath: {path}")
    _print_resume(record, path)
    return 0


def rescale(options: argparse.Namespace) -> int:
    """Change the parallelism of a job."""
    record = _running(options.job)
    print(f"Rescaling job {record.job_id} ...", flush=True)
    _tell(record, "rescale", parallelism=options.parallelism)
    print(f"Job {record.job_id} continues with parallelism {options.parallelism}.")
    return 0


def _print_resume(record: JobRecord, savepoint: str) -> None:
    if record.command is not None:
        print(f"To resume: {record.command.resume(savepoint)}")


def _running(job: str) -> JobRecord:
    record = JobRecords().find(job)
    if record.is_over:
        raise _over(record)
    return record


def _over(record: JobRecord) -> InvalidProgramError:
    return InvalidProgramError(f"job {record.job_id} ({record.name}) is no longer running: {record.status}")


def _tell(record: JobRecord, do: str, **details: Any) -> Any:
    """Send a request to a job. If it has ended meanwhile, report that, and not a missing response."""
    try:
        return ask(record, do, **details)
    except NoAnswerError:
        now = JobRecords().find(record.job_id)
        if now.is_over:
            raise _over(now) from None
        raise


def _asked(record: JobRecord) -> JobRecord:
    """Return the record with the job's current status, or with the recorded one if it does not respond."""
    if record.is_over:
        return record
    try:
        return replace(record, status=ask(record, "status", within=_ANSWER_SECONDS)["status"])
    except JobExecutionError:
        return record


def _row(record: JobRecord) -> tuple[str, ...]:
    return record.job_id, record.status, _moment(record.started), str(record.process), record.name


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S}"


def _as_typed(directory: str | None) -> str | None:
    """Resolve a relative path here, because the job may run in another directory."""
    return absolute(directory) if directory else None


def _dispose(location: str) -> int:
    read_manifest(location)  # raises an error if it is not a savepoint
    directory_at(location).dispose()
    print(f"Savepoint {location} disposed.")
    return 0
