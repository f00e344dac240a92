"""The REST API of a driver process: for its own jobs, on a Unix socket that only its user can open."""

from __future__ import annotations

import logging
import os
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cluster.archive import write_archive, write_operation
from penstock.cluster.job_registry import JobRegistry
from penstock.cluster.monitored_job import MonitoredJob, now_ms
from penstock.cluster.reporters.reporting import Reporting
from penstock.cluster.reporters.samples import collect
from penstock.cluster.rest.app import ClusterContext, create_app
from penstock.cluster.rest.process_files import LogFiles
from penstock.cluster.rest_server import RestServer
from penstock.cluster.workers import Workers
from penstock.common.errors import PenstockError
from penstock.runtime.job.job_client import ThreadJobClient

if TYPE_CHECKING:
    from penstock.common.completable_future import CompletableFuture
    from penstock.common.job_client import JobClient
    from penstock.common.job_execution_result import JobExecutionResult

__all__ = ["DriverRest"]

_LOG = logging.getLogger(__name__)
_ARCHIVE_SECONDS = 60.0
_WORKERS_SECONDS = 3.0


class DriverRest:
    """Serves the REST API of a driver. It starts with the first job of the process."""

    def __init__(self, program: str | None = None, log: Path | None = None) -> None:
        self._program = program
        self._log = log
        self._registry = JobRegistry()
        self._context: ClusterContext | None = None
        self._server: RestServer | None = None
        self._reporting: Reporting | None = None
        self._workers: _WorkerUpdates | None = None
        self._archived: dict[CompletableFuture[JobExecutionResult], threading.Event] = {}

    def follow(self, client: JobClient, directory: Path, archive: Path) -> str | None:
        """Serve a job. Return the path of the socket, which is in a private directory of the user.

        :param archive: the directory for the archive of the ended job
        """
        if not isinstance(client, ThreadJobClient):
            return None
        job = self._registry.add(client, self._program)
        if self._context is None:
            workers = Workers.local(os.cpu_count() or 1, now_ms(), port=os.getpid())
            settings = dict(client.job.graph.settings.configuration)
            logs = LogFiles(lambda: [] if self._log is None else [self._log])
            try:
                self._reporting = Reporting(settings, lambda: list(collect(self._registry.all(), workers)))
            except PenstockError:
                client.cancel()
                raise
            self._context = ClusterContext(self._registry, workers, settings, logs=logs)
            self._workers = _WorkerUpdates(self._registry, workers)
            self._context.operations.on_complete = partial(write_operation, archive)
            self._server = RestServer.on_unix_socket(create_app(self._context), directory / "rest")
        context = self._context
        done = threading.Event()
        result = client.get_job_execution_result()
        self._archived[result] = done
        result.add_done_callback(lambda _: _archive(archive, job, context, done))
        return None if self._server is None else self._server.address

    def close(self) -> None:
        """Stop serving and reporting when the archives of ended jobs are complete."""
        for result, archived in self._archived.items():
            if result.done():
                archived.wait(_ARCHIVE_SECONDS)
        if self._workers is not None:
            self._workers.close()
            self._workers = None
        if self._reporting is not None:
            self._reporting.close()
            self._reporting = None
        if self._server is not None:
            self._server.close()
            self._server = None


class _WorkerUpdates:
    """Updates the executors every few seconds, so that requests need not wait for them."""

    def __init__(self, registry: JobRegistry, workers: Workers) -> None:
        self._registry = registry
        self._workers = workers
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="penstock-workers", daemon=True).start()

    def _run(self) -> None:
        while not self._closed.is_set():
            for job in self._registry.all():
                if not job.status.is_terminal_state():
                    self._workers.use_executors(job.client.job.executors())
                    break
            self._closed.wait(_WORKERS_SECONDS)

    def close(self) -> None:
        """Stop the updates."""
        self._closed.set()


def _archive(directory: Path, job: MonitoredJob, context: ClusterContext, done: threading.Event) -> None:
    try:
        write_archive(directory, job, context)
        shared = job.settings.configuration.get("jobmanager.archive.fs.dir")
        if shared:
            place = Path(shared.removeprefix("file://")) / "default" / "applications" / job.job_id / "jobs"
            write_archive(place, job, context)
    except Exception:  # this must not change the result of the job
        _LOG.exception("job %s could not be archived in %s", job.job_id, directory)
    finally:
        done.set()
