"""Lists and reports jobs of programs started with ``python job.py``, like those of ``penstock run``."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from pathlib import Path

from penstock.cli.command_line import RunCommand
from penstock.cli.job_server import JobServer
from penstock.cli.live_page import show_live_page
from penstock.common.job_client import JobClient

__all__ = ["follow"]

_lock = threading.Lock()
_servers: dict[int, JobServer] = {}  # by process: a forked process has its own


def follow(client: JobClient, job_name: str) -> None:
    """Serve this job to other commands until the job or the process ends."""
    with _lock:
        server = _servers.get(os.getpid())
        if server is None:
            program = str(Path(sys.argv[0]).resolve()) if sys.argv and sys.argv[0] else sys.executable
            server = _servers[os.getpid()] = JobServer(RunCommand(program, [], sys.argv[1:], str(Path.cwd())))
            atexit.register(server.close)
        server.submitting(job_name)
        server.follow(client)
    if os.environ.get("PENSTOCK_UI", "").lower() == "true":
        show_live_page(client)
