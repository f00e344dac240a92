"""Programs in separate processes, which outlive the process that started them.

User code never runs in the service: a program may call `sys.exit`, block, or change global state. Its process sends the
id of its first job through a pipe to the process that started it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.common.job_client import JobClient

__all__ = ["LOG_OF_DETACHED", "PlanningError", "Started", "announce", "plan_program", "start_program"]

LOG_OF_DETACHED = "PENSTOCK_LOG"
_ANNOUNCE_TO = "PENSTOCK_ANNOUNCE_FD"
_SHOWN_LINES = 20


class PlanningError(Exception):
    """Raised when a program has no job to plan."""


@dataclass(frozen=True, slots=True)
class Started:
    """A program that is running its first job, or has ended without one."""

    process: int
    job_id: str | None
    exit_code: int | None
    log: Path

    def last_lines(self) -> str:
        """Return the end of the program's output."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-_SHOWN_LINES:])


def plan_program(arguments: Sequence[str], directory: Path, seconds: float) -> str:
    """Return the output of `penstock plan` for arguments, or raise a `PlanningError` with the program's output."""
    with tempfile.TemporaryDirectory(dir=directory) as place:
        plan, log = Path(place) / "plan", Path(place) / "log"
        command = [sys.executable, "-m", "penstock.cli", "plan", "-f", "rest", "-o", str(plan), *arguments]
        with log.open("wb") as output:
            try:
                subprocess.run(  # noqa: S603 - this program again
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=seconds, check=False
                )
            except subprocess.TimeoutExpired:
                raise PlanningError(f"The program has not called execute() within {seconds:.0f} seconds.") from None
        if plan.exists():
            return plan.read_text(encoding="utf-8")
        last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_SHOWN_LINES:]
        raise PlanningError("\n".join(["The program failed before it had a job.", *last]))


def start_program(arguments: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> Started:
    """Run `penstock run` with arguments in a new session. Return when its first job runs or it has ended.

    Raises an `OSError` if the log cannot be written.
    """
    reading, writing = os.pipe()
    ours = {_ANNOUNCE_TO: str(writing), LOG_OF_DETACHED: str(log.resolve()), "PYTHONUNBUFFERED": "1"}
    try:
        with log.open("ab") as output:
            process = subprocess.Popen(  # noqa: S603 - this program again
                [sys.executable, "-m", "penstock.cli", "run", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(writing,),
                env={**os.environ, **(environment or {}), **ours},
            )
    except OSError:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as announcements:
        announced = announcements.readline().strip()  # the pipe closes with the process if it gets no further
    if announced:
        process.returncode = 0  # leave it running: nothing waits for it
        return Started(process.pid, announced, None, log)
    return Started(process.pid, None, process.wait(), log)


def announce(client: JobClient) -> None:
    """Tell the process that started this one that a job is running."""
    descriptor = os.environ.pop(_ANNOUNCE_TO, None)
    if descriptor is not None:
        with contextlib.suppress(OSError), os.fdopen(int(descriptor), "w", encoding="utf-8") as announcements:
            announcements.write(f"{client.get_job_id()}\n")
