"""Application mode: runs one program with its driver and a REST endpoint in one process."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from penstock.cli.job_records import JobRecord, JobRecords
from penstock.common.errors import InvalidProgramError, JobCancelledError
from penstock.common.job_client import JobClient

__all__ = ["Application", "serving_application"]


_IN_YARN = "CONTAINER_ID"
"""YARN sets this variable for the processes that it starts."""


class _OwnRecords:
    """The job records of this process only."""

    def __init__(self) -> None:
        self._records = JobRecords()

    @property
    def archive(self) -> Path:
        return self._records.archive

    def all(self) -> list[JobRecord]:
        return [record for record in self._records.all() if record.process == os.getpid()]


class Application:
    """The jobs of the program."""

    def __init__(self, address: str) -> None:
        self.address = address
        """The address of its REST API and dashboard."""
        self._clients: list[JobClient] = []

    def follow(self, client: JobClient) -> None:
        """Add a job that has started."""
        self._clients.append(client)
        if _IN_YARN in os.environ:
            from penstock.spark.yarn import publish_address

            publish_address(self.address)

    def wait_for_jobs(self) -> int:
        """Wait for jobs that the program started without waiting for them. Return 1 if any job has failed."""
        errors = [client.get_job_execution_result().exception() for client in self._clients]
        return int(any(error is not None and not isinstance(error, JobCancelledError) for error in errors))

    @staticmethod
    def wait_for_signal() -> None:
        """Wait for SIGTERM or Ctrl-C, so that clients can read the results."""
        ended = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ended.set())
        ended.wait()


@contextmanager
def serving_application(host: str, port: str, settings: Mapping[str, str]) -> Iterator[Application]:
    """Serve the REST API for the jobs of this process within the block."""
    try:
        from penstock.cluster.gateway import create_gateway
        from penstock.cluster.rest.authentication import token_file
        from penstock.cluster.rest.security import host_names
        from penstock.cluster.rest_server import RestServer
        from penstock.cluster.tls import tls_files
    except ImportError as error:
        raise InvalidProgramError(
            f"this command needs the extra 'service' ({error}): pip install 'penstock[service]'"
        ) from None
    own = dict(settings)
    app = create_gateway(_OwnRecords(), own, tokens=token_file(own), allowed_hosts=host_names(host, own))
    server = RestServer.on_port(app, host, port, tls_files(own))
    print(f"REST API of the application: {server.address}", file=sys.stderr, flush=True)
    try:
        yield Application(server.address)
    finally:
        server.close()
