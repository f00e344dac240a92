"""The REST API of a driver process: for its own jobs, on a Unix socket that only its user can open."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cluster.job_registry import JobRegistry
from penstock.cluster.monitored_job import now_ms
from penstock.cluster.rest.app import ClusterContext, create_app
from penstock.cluster.rest_server import RestServer
from penstock.cluster.workers import Workers
from penstock.runtime.job_client import ThreadJobClient

if TYPE_CHECKING:
    from penstock.common.job_client import JobClient

__all__ = ["DriverRest"]


class DriverRest:
    """Starts with the first job of the process."""

    def __init__(self, program: str | None = None) -> None:
        self._program = program
        self._registry = JobRegistry()
        self._server: RestServer | None = None

    def follow(self, client: JobClient, directory: Path) -> str | None:
        """Serve a job; returns the path of the socket, which is in a directory of this user's own."""
        if not isinstance(client, ThreadJobClient):
            return None
        self._registry.add(client, self._program)
        if self._server is None:
            workers = Workers.local(os.cpu_count() or 1, now_ms(), port=os.getpid())
            app = create_app(ClusterContext(self._registry, workers, dict(client.job.graph.settings.configuration)))
            self._server = RestServer.on_unix_socket(app, directory / "rest")
        return self._server.address

    def close(self) -> None:
        """Stop serving."""
        if self._server is not None:
            self._server.close()
            self._server = None
