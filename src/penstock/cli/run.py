"""``penstock run``: a program, here or in a process of its own."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from types import FrameType

from penstock.cli.detached import announce, run_detached
from penstock.cli.programs import configuration, run_program
from penstock.cli.progress import ProgressLine
from penstock.common.errors import UnsupportedFeatureError
from penstock.datastream.execution_defaults import ExecutionDefaults
from penstock.graph.settings import JobSettings

__all__ = ["run"]

_INTERRUPTED = 130


def run(options: argparse.Namespace) -> int:
    """Run the program and wait for its end; detached, until it runs."""
    defaults = ExecutionDefaults(configuration(options))
    if options.master:
        defaults.configuration.set_string("spark.master", options.master)
    if options.from_savepoint:
        _check_savepoints()
        defaults.configuration.set_string("execution.savepoint.path", options.from_savepoint)
    if options.allow_non_restored_state:
        defaults.configuration.set_boolean("execution.savepoint.ignore-unclaimed-state", value=True)
    if options.detached:
        return run_detached(options)
    _stop_on_sigterm()
    defaults.job_listeners.append(announce)
    wanted = not options.no_progress and sys.stderr.isatty()
    with ProgressLine(sys.stderr, enabled=wanted) as progress:
        defaults.job_listeners.append(progress.follow)
        try:
            return run_program(options.program, options.arguments, defaults)
        except KeyboardInterrupt:
            print("\nstopped", file=sys.stderr)
            return _INTERRUPTED


def _check_savepoints() -> None:
    if "savepoint_path" not in JobSettings.__dataclass_fields__:
        raise UnsupportedFeatureError(
            "-s: this version cannot start from a savepoint; a job continues by itself from the checkpoint directory "
            "it was given (-D execution.checkpointing.dir=file:///...)"
        )


def _stop_on_sigterm() -> None:
    """``kill`` stops a job as Ctrl-C does: at a batch boundary, leaving no process behind."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what it runs in the background
        raise KeyboardInterrupt
    os.kill(os.getpid(), signal.SIGINT)
