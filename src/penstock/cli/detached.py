"""Runs a program in a separate process that outlives the command."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from penstock.cli.command_line import run_options
from penstock.cli.progress import ProgressLine
from penstock.cluster.detached_program import LOG_OF_DETACHED, announce, start_program
from penstock.common.errors import InvalidProgramError, JobExecutionError

__all__ = ["LOG_OF_DETACHED", "announce", "run_detached"]

_SHORT_ID = 8


def run_detached(options: argparse.Namespace, progress: ProgressLine) -> int:
    """Start the program, wait until its first job runs, and print where to find it."""
    log: Path = options.log or Path(f"{options.program.stem}-{time.strftime('%Y%m%d-%H%M%S')}.log")
    try:
        started = start_program(_same_options(options), log)
    except OSError as error:
        raise InvalidProgramError(
            f"cannot write the program's output: {error}; use --log FILE for another place"
        ) from None
    progress.erase()
    if started.job_id is not None:
        print(f"Job {started.job_id} runs in process {started.process}.\nOutput: {log}")
        short = started.job_id[:_SHORT_ID]
        print(f"penstock status|savepoint|stop|cancel {short} control it; penstock list shows all.")
        return 0
    if started.exit_code == 0:
        print(f"The program ended without starting a job. Output: {log}")
        return 0
    raise JobExecutionError(
        f"the program failed (exit code {started.exit_code}); the end of {log}:\n{started.last_lines()}"
    )


def _same_options(options: argparse.Namespace) -> list[str]:
    """Return this command line without -d."""
    given = run_options(options)
    given += ["--from-savepoint", options.from_savepoint] if options.from_savepoint is not None else []
    given += ["--allow-non-restored-state"] if options.allow_non_restored_state else []
    given += ["--take-over"] if options.take_over else []
    return [*given, str(options.program), *options.arguments]
