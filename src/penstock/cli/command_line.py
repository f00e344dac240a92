"""The command line of a run, for another process or for a user who wants to resume the job."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from dataclasses import dataclass

__all__ = ["RunCommand", "run_options"]


def run_options(options: argparse.Namespace) -> list[str]:
    """Return the options of ``penstock run`` that concern the job, without those about its starting point."""
    pairs = (
        ("--parallelism", options.parallelism),
        ("--master", options.master),
        ("--mode", options.mode),
        ("--py-files", options.py_files),
        ("--entry", getattr(options, "entry", None)),
    )
    given = [part for name, value in pairs if value is not None for part in (name, str(value))]
    return given + [part for setting in options.settings for part in ("-D", setting)]


@dataclass(frozen=True, slots=True)
class RunCommand:
    """The command line that started a job, and its directory.

    >>> command = RunCommand("/jobs/my job.py", ["-D", "a=b c"], ["--since", "2026-01-01 08:00"], "/nowhere")
    >>> print(command.resume("/savepoints/savepoint-1", here="/nowhere", penstock="penstock"))
    penstock run -D 'a=b c' -s /savepoints/savepoint-1 '/jobs/my job.py' --since '2026-01-01 08:00'
    """

    program: str
    options: list[str]
    arguments: list[str]
    directory: str
    detached: bool = False

    def resume(self, savepoint: str | None = None, *, here: str | None = None, penstock: str | None = None) -> str:
        """Return a shell command that resumes the job, from a savepoint or from its checkpoint directory.

        :param here: the directory in which it will be run; arguments may be relative to that of the job
        """
        words = [penstock] if penstock is not None else _this_program()
        words += ["run", *self.options, *(["-d"] if self.detached else [])]
        words += ["-s", savepoint] if savepoint is not None else []
        line = shlex.join([*words, self.program, *self.arguments])
        elsewhere = self.directory != (here if here is not None else os.getcwd())  # noqa: PTH109 - a string is compared
        return f"cd {shlex.quote(self.directory)} && {line}" if elsewhere else line


def _this_program() -> list[str]:
    return ["penstock"] if shutil.which("penstock") else [sys.executable, "-m", "penstock"]
