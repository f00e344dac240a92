"""The socket of a running job, through which other processes control it. Only its user can open it.

A request is one line of JSON, and so is the answer: ``{"job": id, "do": "savepoint", ...}``, then ``{"result": ...}``
or ``{"error": ...}``.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.cli.command_line import RunCommand
from penstock.cli.job_records import JobRecord, JobRecords
from penstock.cli.progress import describe
from penstock.common.completable_future import CompletableFuture
from penstock.common.errors import JobCancelledError, JobExecutionError, PenstockError
from penstock.common.job_client import JobClient
from penstock.common.job_execution_result import JobExecutionResult
from penstock.runtime.lease.owner import this_machine

__all__ = ["JobServer", "NoAnswerError", "ask"]

_BACKLOG = 8
_LAST_WORDS_SECONDS = 5.0
_RECORD_SECONDS = 60.0


class NoAnswerError(JobExecutionError):
    """The job's process does not respond: it has ended, or is about to end."""


class JobServer:
    """Lets other processes query and control the jobs of this one. It starts with the first job."""

    def __init__(self, command: RunCommand, records: JobRecords | None = None, log: str | None = None) -> None:
        self._command = command
        self._records = records or JobRecords()
        self._log = log
        self._name = ""
        self._jobs: dict[str, JobClient] = {}
        self._directory: str | None = None
        self._socket: socket.socket | None = None
        self._answering: list[threading.Thread] = []
        self._recorded: dict[CompletableFuture[JobExecutionResult], threading.Event] = {}
        self._rest = _rest_of_driver(command.program, log)

    def submitting(self, job_name: str) -> None:
        """Handle that a job with this name is about to start."""
        self._name = job_name

    def follow(self, client: JobClient) -> None:
        """Serve this job. Called when it is submitted."""
        job_id = str(client.get_job_id())
        self._jobs[job_id] = client
        try:
            address = self._listen()
        except OSError as error:  # the job runs anyway
            print(f"This job cannot be reached by other commands: {error}", file=sys.stderr)
            return
        status = client.get_job_status().result().name
        rest = None if self._rest is None else self._rest.follow(client, Path(address).parent, self._records.archive)
        record = JobRecord(
            *(job_id, self._name, status, self._command.program, os.getpid(), time.time(), address),
            log=self._log,
            rest=rest,
            command=self._command,
            machine=this_machine(),
        )
        with contextlib.suppress(OSError):
            self._records.write(record)
            self._records.forget_old()
        result = client.get_job_execution_result()
        self._recorded[result] = threading.Event()
        result.add_done_callback(lambda done: self._ended(record, client, done))

    def close(self) -> None:
        """Stop accepting requests, after answering the pending ones and recording how jobs ended."""
        for result, recorded in self._recorded.items():
            if result.done():
                recorded.wait(_RECORD_SECONDS)
        for thread in self._answering:
            thread.join(_LAST_WORDS_SECONDS)
        if self._rest is not None:
            self._rest.close()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    def _ended(self, record: JobRecord, client: JobClient, done: CompletableFuture[JobExecutionResult]) -> None:
        error = done.exception()
        if isinstance(error, JobCancelledError):
            error = None  # the cancellation was requested
        status = "FAILED" if error is not None else client.get_job_status().result().name
        with contextlib.suppress(OSError):
            self._records.ended(record, status, None if error is None else str(error).partition("\n")[0])
        self._recorded[done].set()

    # -- the server side of the socket ------------------------------------------------------------------------------

    def _listen(self) -> str:
        if self._directory is None:
            # A separate directory: only its user can access it, and its name is short enough for a socket.
            self._directory = tempfile.mkdtemp(prefix="penstock-")
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.bind(str(Path(self._directory) / "jobs"))
            self._socket.listen(_BACKLOG)
            threading.Thread(target=self._accept, args=(self._socket,), name="penstock-jobs", daemon=True).start()
        return str(Path(self._directory) / "jobs")

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:  # the socket was closed
                return
            thread = threading.Thread(target=self._serve, args=(connection,), name="penstock-answer", daemon=True)
            self._answering = [other for other in self._answering if other.is_alive()] + [thread]
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rw", encoding="utf-8") as lines, contextlib.suppress(OSError):
            lines.write(json.dumps(self._answer(lines.readline())) + "\n")
            lines.flush()

    def _answer(self, request: str) -> dict[str, Any]:
        try:
            wanted = json.loads(request)
            return {"result": _HANDLERS[wanted["do"]](self._jobs[wanted["job"]], wanted)}
        except PenstockError as error:
            return {"error": str(error)}
        except Exception as error:  # report any error to the client
            return {"error": f"{type(error).__name__}: {error}"}


def _rest_of_driver(program: str, log: str | None) -> Any:
    """Return the REST API for the jobs of this process, if the extra ``service`` is installed."""
    try:
        from penstock.cluster.driver_rest import DriverRest
    except ImportError:
        return None
    return DriverRest(program, None if log is None else Path(log))


def ask(record: JobRecord, do: str, *, within: float | None = None, **details: Any) -> Any:
    """Send a request to a job of another process, and wait for the answer. An error of the job is raised here.

    :param within: seconds to wait for the answer; None means no limit
    """
    request = json.dumps({"job": record.job_id, "do": do, **details})
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(within)
            connection.connect(record.socket)
            with connection.makefile("rw", encoding="utf-8") as lines:
                lines.write(request + "\n")
                lines.flush()
                answer = lines.readline()
    except OSError as error:
        raise NoAnswerError(f"job {record.job_id} does not answer (process {record.process}): {error}") from None
    if not answer:
        raise NoAnswerError(f"process {record.process} ended before job {record.job_id} had answered")
    found = json.loads(answer)
    if "error" in found:
        raise JobExecutionError(found["error"])
    return found["result"]


def _status(client: JobClient, wanted: dict[str, Any]) -> dict[str, str]:
    progress = getattr(client, "progress", None)
    shown = "" if progress is None else describe(progress, time.time())
    return {"status": client.get_job_status().result().name, "progress": shown}


def _cancel(client: JobClient, wanted: dict[str, Any]) -> str:
    """Cancel a job, and return its final state: it may have ended just before."""
    client.cancel().result()
    return client.get_job_status().result().name


def _savepoint(client: JobClient, wanted: dict[str, Any]) -> str:
    return client.trigger_savepoint(wanted["directory"]).result()


def _stop(client: JobClient, wanted: dict[str, Any]) -> str:
    return client.stop_with_savepoint(wanted["drain"], wanted["directory"]).result()


def _cancel_with_savepoint(client: JobClient, wanted: dict[str, Any]) -> str:
    return client.cancel_with_savepoint(wanted["directory"]).result()


def _rescale(client: JobClient, wanted: dict[str, Any]) -> None:
    client.rescale(wanted["parallelism"]).result()


_HANDLERS: dict[str, Callable[[JobClient, dict[str, Any]], Any]] = {
    "status": _status,
    "cancel": _cancel,
    "savepoint": _savepoint,
    "stop": _stop,
    "cancel-with-savepoint": _cancel_with_savepoint,
    "rescale": _rescale,
}
