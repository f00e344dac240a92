"""Running a program in a process of its own, which stays when the command returns."""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO

from penstock.cli.command_line import run_options
from penstock.cli.progress import ProgressLine
from penstock.common.errors import InvalidProgramError, JobExecutionError
from penstock.common.job_client import JobClient

__all__ = ["LOG_OF_DETACHED", "announce", "run_detached"]

_ANNOUNCE_TO = "PENSTOCK_ANNOUNCE_FD"
LOG_OF_DETACHED = "PENSTOCK_LOG"
_SHOWN_LINES = 20
_SHORT_ID = 8


def run_detached(options: argparse.Namespace, progress: ProgressLine) -> int:
    """Start the program, wait until its first job runs, and say where to find it."""
    log: Path = options.log or Path(f"{options.program.stem}-{time.strftime('%Y%m%d-%H%M%S')}.log")
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "penstock.cli", "run", *_same_options(options)]
    ours = {_ANNOUNCE_TO: str(writing), LOG_OF_DETACHED: str(log.resolve()), "PYTHONUNBUFFERED": "1"}
    with _open(log) as output:
        process = subprocess.Popen(  # noqa: S603 - this program again
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(writing,),
            env={**os.environ, **ours},
        )
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as announcements:
        announced = announcements.readline().strip()  # ends with the process, if it never gets that far
    progress.erase()
    if announced:
        print(f"Job {announced} runs in process {process.pid}.\nOutput: {log}")
        print(
            f"penstock status|savepoint|stop|cancel {announced[:_SHORT_ID]} asks and tells it; penstock list shows all."
        )
        process.returncode = 0  # it is not ours to wait for
        return 0
    code = process.wait()
    if code == 0:
        print(f"The program ended without starting a job. Output: {log}")
        return 0
    last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_SHOWN_LINES:]
    raise JobExecutionError("\n".join([f"the program failed (exit code {code}); the end of {log}:", *last]))


def _open(log: Path) -> BinaryIO:
    try:
        return log.open("ab")
    except OSError as error:
        raise InvalidProgramError(
            f"cannot write the program's output: {error}; --log FILE names another place"
        ) from None


def announce(client: JobClient) -> None:
    """Tell the process that started this one that a job runs."""
    descriptor = os.environ.pop(_ANNOUNCE_TO, None)
    if descriptor is not None:
        with contextlib.suppress(OSError), os.fdopen(int(descriptor), "w", encoding="utf-8") as announcements:
            announcements.write(f"{client.get_job_id()}\n")


def _same_options(options: argparse.Namespace) -> list[str]:
    """This command line without -d."""
    given = run_options(options)
    given += ["--from-savepoint", options.from_savepoint] if options.from_savepoint is not None else []
    given += ["--allow-non-restored-state"] if options.allow_non_restored_state else []
    return [*given, str(options.program), *options.arguments]
