"""``penstock history-server``: shows ended jobs from their archives."""

from __future__ import annotations

import argparse
import sys

from penstock.cli.job_records import JobRecords
from penstock.common.errors import InvalidProgramError

__all__ = ["serve"]


def serve(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    try:
        from penstock.cluster.history_server import create_history_server
        from penstock.cluster.rest_server import RestServer
    except ImportError as error:
        raise InvalidProgramError(
            f"this command needs the extra 'service' ({error}): pip install 'penstock[service]'"
        ) from None
    hosts = frozenset({"localhost", "127.0.0.1", "[::1]", options.host})
    app = create_history_server(options.dir or [JobRecords().archive], hosts)
    server = RestServer.on_port(app, options.host, options.port)
    print(f"History of jobs: {server.address}  (Ctrl-C to end)", flush=True)
    try:
        server.wait()
    except KeyboardInterrupt:
        print(file=sys.stderr)
    finally:
        server.close()
    return 0
