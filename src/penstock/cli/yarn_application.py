"""``penstock run-application -t yarn``: runs the program and its REST API in YARN's application master."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from penstock.cli.programs import check_program, configuration
from penstock.common.errors import InvalidProgramError
from penstock.spark.yarn import YarnProgram, submit_to_yarn

__all__ = ["run_on_yarn"]

_DRIVER = Path(__file__).with_name("yarn_driver.py")


def run_on_yarn(options: argparse.Namespace) -> int:
    """Submit the program, and wait for its end unless `-d` is given."""
    check_program(options.program)
    if options.master:
        raise InvalidProgramError("-t yarn needs no --master: HADOOP_CONF_DIR names the cluster")
    # YARN puts the program into the directory in which its driver starts.
    arguments = [*_run_options(options), options.program.name, *options.arguments]
    program = YarnProgram(
        _DRIVER, options.program, arguments, configuration(options).to_dict(), python_files=options.py_files
    )
    with tempfile.TemporaryDirectory(prefix="penstock-yarn-") as scratch:
        return submit_to_yarn(program, Path(scratch), wait=not options.detached, tell=_tell)


def _run_options(options: argparse.Namespace) -> list[str]:
    """Return the options that are not settings. Settings are in the configuration that is sent along."""
    given: list[str] = []
    if options.from_savepoint:
        given += ["--from-savepoint", options.from_savepoint]
    if options.allow_non_restored_state:
        given.append("--allow-non-restored-state")
    if options.entry:
        given += ["--entry", options.entry]
    return given


def _tell(news: str) -> None:
    print(news, file=sys.stderr, flush=True)
