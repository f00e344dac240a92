"""``penstock run``: runs a program in this process or in the background."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from penstock.cli.command_line import RunCommand, run_options
from penstock.cli.detached import LOG_OF_DETACHED, announce, run_detached
from penstock.cli.job_server import JobServer
from penstock.cli.live_page import show_live_page
from penstock.cli.programs import check_program, configuration, run_program
from penstock.cli.progress import ProgressLine
from penstock.common.errors import InvalidProgramError, JobCancelledError
from penstock.common.job_client import JobClient
from penstock.datastream.execution_defaults import ExecutionDefaults
from penstock.runtime.lease.lease import TAKE_OVER_KEY
from penstock.runtime.savepoint.manifest import read_manifest

__all__ = ["run", "run_application"]

_INTERRUPTED = 130
_SHUTDOWN_KEY = "execution.shutdown-on-application-finish"


def run_application(options: argparse.Namespace) -> int:
    """Run a program with a REST endpoint. Return 0 if its jobs finish or are cancelled, 1 if one fails."""
    from penstock.cli.application import serving_application

    if options.target == "yarn":
        from penstock.cli.yarn_application import run_on_yarn

        return run_on_yarn(options)
    if options.target != "local" and not options.master:
        raise InvalidProgramError(f"-t {options.target} needs --master: the address of Spark's master")
    options.detached = False
    settings = configuration(options).to_dict()
    shutdown = settings.get(_SHUTDOWN_KEY, "true").strip().lower() != "false"
    with serving_application(options.host, options.port, settings) as application:
        try:
            code = run(options, application.follow)
        except JobCancelledError:
            code = 0
        code = application.wait_for_jobs() or code
        if not shutdown:
            application.wait_for_signal()
        return code


def run(options: argparse.Namespace, *listeners: Callable[[JobClient], None]) -> int:
    """Run the program and wait for its end, or with -d until it runs."""
    check_program(options.program)
    if options.ui and options.detached:
        raise InvalidProgramError("--ui serves the dashboard while this command runs: with -d, use penstock ui")
    defaults = ExecutionDefaults(configuration(options))
    if options.master:
        defaults.configuration.set_string("spark.master", options.master)
    if options.from_savepoint:
        read_manifest(options.from_savepoint)  # report a bad savepoint now: Spark takes a while to start
        defaults.configuration.set_string("execution.savepoint.path", options.from_savepoint)
    if options.allow_non_restored_state:
        defaults.configuration.set_boolean("execution.savepoint.ignore-unclaimed-state", value=True)
    if options.take_over:
        defaults.configuration.set_boolean(TAKE_OVER_KEY, value=True)
    wanted = not options.no_progress and sys.stderr.isatty()
    with ProgressLine(sys.stderr, enabled=wanted) as progress:
        if options.detached:
            progress.wait_for(f"starting {options.program}, with Spark some seconds")
            return run_detached(options, progress)
        if options.ui:
            defaults.job_listeners.append(show_live_page)
        defaults.job_listeners += listeners
        return _run_here(options, defaults, progress)


def _run_here(options: argparse.Namespace, defaults: ExecutionDefaults, progress: ProgressLine) -> int:
    _stop_on_sigterm()
    log = os.environ.pop(LOG_OF_DETACHED, None)
    program = str(options.program.resolve())
    command = RunCommand(program, run_options(options), options.arguments, str(Path.cwd()), detached=log is not None)
    server = JobServer(command, log=log)
    submitted: list[str] = []
    defaults.submission_listeners += [server.submitting, progress.submitting, submitted.append]
    defaults.job_listeners += [server.follow, announce, progress.follow]
    try:
        code = run_program(options.program, options.arguments, defaults, options.entry)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return _INTERRUPTED
    finally:
        server.close()
    if code == 0 and defaults.waiting_sinks and not submitted:
        raise InvalidProgramError(f"{options.program} ended without calling execute(): its job was not run")
    return code


def _stop_on_sigterm() -> None:
    """Let ``kill`` stop a job like Ctrl-C: at a batch boundary, leaving no process behind."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # set by a shell for background processes
        raise KeyboardInterrupt
    os.kill(os.getpid(), signal.SIGINT)
