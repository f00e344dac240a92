"""``penstock ui``: shows the jobs of this machine in a browser, however they were started."""

from __future__ import annotations

import argparse
import sys
import webbrowser

from penstock.cli.job_records import JobRecords
from penstock.common.errors import InvalidProgramError

__all__ = ["ui"]


def ui(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    try:
        from penstock.cluster.gateway import create_gateway
        from penstock.cluster.rest_server import RestServer
    except ImportError as error:
        raise InvalidProgramError(
            f"this command needs the extra 'service' ({error}): pip install 'penstock[service]'"
        ) from None
    server = RestServer.on_port(create_gateway(JobRecords()), options.host, options.port)
    print(f"Jobs of this machine: {server.address}  (Ctrl-C to end)", flush=True)
    if options.open:
        webbrowser.open(server.address)
    try:
        server.wait()
    except KeyboardInterrupt:
        print(file=sys.stderr)
    finally:
        server.close()
    return 0
