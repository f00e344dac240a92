"""``penstock cluster stop --savepoint``: stops every job with a savepoint, or none of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.cli.job_records import JobRecords
from penstock.cli.remote import RestClient
from penstock.cluster.detached_program import Started, start_program
from penstock.common.errors import JobExecutionError, PenstockError

__all__ = ["stop_all"]


def stop_all(
    client: RestClient,
    jobs: list[Any],
    directory: str,
    records: JobRecords,
    start: Callable[[list[str], Path], Started] = start_program,
) -> None:
    """Stop the jobs. If a savepoint fails, restart the stopped ones, and raise an error with the list."""
    savepoints: dict[str, str] = {}
    for job in jobs:
        path = f"/jobs/{job['jid']}"
        try:
            trigger = client.send("POST", f"{path}/stop", {"targetDirectory": directory})["request-id"]
            savepoints[job["jid"]] = client.wait_for(f"{path}/savepoints", trigger)["location"]
        except PenstockError as error:
            again = [_start_again(records, job_id, savepoint, start) for job_id, savepoint in savepoints.items()]
            lines = [f"job {job['jid']} ({job['name']}) could not be stopped with a savepoint: {error}", *again]
            raise JobExecutionError("\n".join([*lines, "The service was not stopped."])) from None
        print(f"Stopped job {job['jid']} ({job['name']}): {savepoints[job['jid']]}", file=sys.stderr)


def _start_again(records: JobRecords, job_id: str, savepoint: str, start: Callable[[list[str], Path], Started]) -> str:
    record = records.find(job_id)
    command = record.command
    if command is None:
        return f"Job {job_id} has ended; it can be started again from {savepoint}"
    log = Path(record.log or f"{Path(command.program).stem}.log")
    # With its own directory, the job continues there: its last checkpoint is the savepoint.
    lasting = any(option.startswith("execution.checkpointing.dir=") for option in command.options)
    origin = [] if lasting else ["--from-savepoint", savepoint]
    started = start([*command.options, *origin, command.program, *command.arguments], log)
    if started.job_id is None:
        return f"Job {job_id} has ended, and could not be started again from {savepoint}: {started.last_lines()}"
    return f"Job {job_id} runs again from {savepoint}, as {started.job_id}"
