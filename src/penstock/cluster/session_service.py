"""The session service: one process that serves the REST API and the dashboard, and starts programs.

Each program runs in a separate driver process, so a restart of the service does not affect jobs: it finds them by their
records. One service owns a directory, with a lock that the kernel releases when the process ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from penstock.cluster.detached_program import Started, start_program
from penstock.cluster.gateway import DriverRecords, create_gateway
from penstock.cluster.leadership import LeaderOnly, Leadership
from penstock.cluster.lease_stores import lease_store
from penstock.cluster.program_store import ProgramStore
from penstock.cluster.recovery import JobStore, Recovery, StoredJob
from penstock.cluster.rest.authentication import token_file
from penstock.cluster.rest.process_files import LogFiles
from penstock.cluster.rest.programs import program_routes
from penstock.cluster.rest.responses import RestError, json_response
from penstock.cluster.rest.security import host_names
from penstock.cluster.rest_server import RestServer
from penstock.cluster.tls import tls_files
from penstock.common.errors import InvalidProgramError
from penstock.runtime.lease.lease import DEFAULT_TIMEOUT

__all__ = ["ServiceRecord", "SessionService", "default_directory", "running_service"]

_LOCK = "service.lock"
_RECORD = "service.json"
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def _lease_seconds(settings: dict[str, str]) -> float:
    return float(settings.get("penstock.lease.timeout", DEFAULT_TIMEOUT))


def _leadership(shared: Path, settings: dict[str, str]) -> Leadership:
    shared.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Leadership(shared, _lease_seconds(settings), files=lease_store(settings, shared))


@dataclass(frozen=True, slots=True)
class ServiceRecord:
    """The address of a running service."""

    url: str
    process: int
    started: float


def default_directory() -> Path:
    """Return ``PENSTOCK_CLUSTER_DIR``, or a directory of the user."""
    chosen = os.environ.get("PENSTOCK_CLUSTER_DIR")
    if chosen:
        return Path(chosen)
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "penstock" / "cluster"


def running_service(directory: Path) -> ServiceRecord | None:
    """Return the service that owns a directory, or None. The lock decides, not the record, since pids are reused."""
    path = directory / _LOCK
    if not path.exists():
        return None
    with path.open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read_record(directory)
    return None


def _read_record(directory: Path) -> ServiceRecord | None:
    with contextlib.suppress(OSError, ValueError, TypeError):
        return ServiceRecord(**json.loads((directory / _RECORD).read_text(encoding="utf-8")))
    return None


@contextlib.contextmanager
def _owned(directory: Path) -> Iterator[None]:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (directory / _LOCK).open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = _read_record(directory)
            where = "" if other is None else f" at {other.url} (process {other.process})"
            raise InvalidProgramError(
                f"a service is running in {directory}{where}: stop it with penstock cluster stop, or choose another "
                "directory with --dir"
            ) from None
        try:
            yield
        finally:
            (directory / _RECORD).unlink(missing_ok=True)


class SessionService:
    """A service in this process."""

    def __init__(
        self,
        directory: Path,
        records: DriverRecords,
        settings: dict[str, str] | None = None,
        master: str | None = None,
        *,
        shared: Path | None = None,
        report_failure: Callable[[StoredJob, str], None] = lambda job, error: None,
    ) -> None:
        """:param shared: the directory of a cluster of services, of which one leads"""
        self._directory = directory
        self._shared = shared
        self._leadership = None if shared is None else _leadership(shared, settings or {})
        self._store = None if shared is None else JobStore(shared / "jobs")
        self._recovery = None if self._store is None else Recovery(self._store, records, start_program, report_failure)
        self._records = records
        self._settings = {"web.submit.enable": "true", **(settings or {})}
        self._submit_was_chosen = "web.submit.enable" in (settings or {})
        self._tokens = token_file(self._settings)
        self._tls = tls_files(self._settings)
        self._master = master
        self._ended = threading.Event()
        self._address = ""
        self.programs = ProgramStore((shared or directory) / "programs")

    def run(self, host: str, ports: str) -> None:
        """Serve until a signal or `DELETE /cluster`. Jobs keep running."""
        with _owned(self._directory):
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self._ended.set())
            logs = LogFiles(lambda: [*self._directory.glob("*.log"), *(self._directory / "log").glob("*.log")])
            if host not in _LOOPBACK and self._tokens is None and not self._submit_was_chosen:
                self._settings["web.submit.enable"] = "false"  # otherwise anyone on the network could run programs
            app = create_gateway(
                self._records,
                self._settings,
                extra_routes=self._routes(),
                logs=logs,
                tokens=self._tokens,
                allowed_hosts=host_names(host, self._settings),
            )
            served: ASGIApp = app if self._leadership is None else LeaderOnly(app, self._leadership)
            server = RestServer.on_port(served, host, ports, self._tls)
            self._address = server.address
            self._write_record()
            try:
                self._serve()
            finally:
                server.close()

    def _serve(self) -> None:
        if self._leadership is None or self._recovery is None:
            self._ended.wait()
            return
        try:
            if self._leadership.wait(self._address, self._ended):
                self._recovery.supervise(self._ended)
        finally:
            self._leadership.release()

    def _write_record(self) -> None:
        record = ServiceRecord(self._address, os.getpid(), time.time())
        hidden = self._directory / f".{_RECORD}.tmp"
        hidden.write_text(json.dumps(asdict(record)), encoding="utf-8")
        hidden.replace(self._directory / _RECORD)

    def _routes(self) -> list[BaseRoute]:
        async def end(request: Request) -> Response:
            threading.Timer(0.2, self._ended.set).start()  # after the response
            return json_response({})

        routes: list[BaseRoute] = [Route(path, end, methods=["DELETE"]) for path in ("/cluster", "/v1/cluster")]
        if self._settings["web.submit.enable"].strip().lower() == "true":
            routes += program_routes(self.programs, self._run_program, lambda: self._address)
        return routes

    def _run_program(self, arguments: list[str], log: Path) -> Started:
        """Run a program. Its job gets its own checkpoint directory, unless the request or the program sets one."""
        defaults: list[str] = []
        job_id = next((a.partition("=")[2] for a in arguments if a.startswith("pipeline.jobid=")), uuid.uuid4().hex)
        if any(record.job_id == job_id and not record.is_over for record in self._records.all()):
            raise RestError(409, f"A job with the id {job_id} is running.")
        if not any("execution.checkpointing.dir=" in argument for argument in arguments):
            checkpoints = (self._shared or self._directory) / "checkpoints" / job_id
            defaults += ["-D", f"execution.checkpointing.dir=file://{checkpoints}"]
        if self._master is not None:
            defaults += ["--master", self._master]
        if self._store is None or self._recovery is None:
            return start_program([*defaults, *arguments], log)
        return self._start_recoverable(job_id, [*defaults, *arguments], log)

    def _start_recoverable(self, job_id: str, arguments: list[str], log: Path) -> Started:
        """Store the job before it starts, so that the next leader recovers it if this service is killed."""
        assert self._store is not None
        assert self._recovery is not None
        if not any(argument.startswith("pipeline.jobid=") for argument in arguments):
            arguments = ["-D", f"pipeline.jobid={job_id}", *arguments]
        self._recovery.submitting(job_id)
        try:
            self._store.write(StoredJob(job_id, arguments, str(log)))
            started = start_program(arguments, log)
            if started.job_id is None:
                self._store.remove(job_id)
            return started
        finally:
            self._recovery.submitted(job_id)
