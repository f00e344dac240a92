"""The dashboard of a running program: `penstock run --ui`, or `PENSTOCK_UI=true python job.py`."""

from __future__ import annotations

import atexit
import sys
import threading

from penstock.cli.job_records import JobRecords
from penstock.common.errors import InvalidProgramError
from penstock.common.job_client import JobClient

__all__ = ["show_live_page"]

_PORTS = "8081-8181"
_lock = threading.Lock()
_address: str | None = None


def show_live_page(client: JobClient) -> None:
    """Print the address of the job's page. The first call starts the server, which ends with the process."""
    global _address  # noqa: PLW0603 - one server for all jobs of the process
    with _lock:
        if _address is None:
            _address = _serve()
        print(f"Live page: {_address}/#/jobs/{client.get_job_id()}", file=sys.stderr, flush=True)


def _serve() -> str:
    try:
        from penstock.cluster.gateway import create_gateway
        from penstock.cluster.rest_server import RestServer
    except ImportError as error:
        raise InvalidProgramError(
            f"the live page needs the extra 'service' ({error}): pip install 'penstock[service]'"
        ) from None
    server = RestServer.on_port(create_gateway(JobRecords()), "127.0.0.1", _PORTS)
    atexit.register(server.close)
    return server.address
