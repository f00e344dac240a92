"""The command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from penstock import __version__
from penstock.cli import doctor, plan, run
from penstock.common.errors import PenstockError

__all__ = ["main"]

_EPILOG = """\
examples:
  penstock run job.py --input readings.txt          run a program; what follows its name is the program's own
  penstock run -p 4 -D execution.checkpointing.dir=file:///var/lib/job job.py
  penstock run --master spark://host:7077 -d job.py
  penstock plan job.py                              what would run, as text
  penstock plan -o job.svg job.py                   the same as a picture
  penstock doctor                                   is everything there that Penstock needs?
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line says; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        code: int = options.do(options)
    except PenstockError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="penstock",
        description="Flink's programming model for Python, on Apache Spark.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"penstock {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    _add_run(commands)
    _add_plan(commands)
    _add_doctor(commands)
    return parser


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("run", help="run a program", description="Run a program and wait for its end.")
    command.add_argument("-p", "--parallelism", type=int, metavar="N", help="parallelism, unless the program sets one")
    command.add_argument("-s", "--from-savepoint", metavar="PATH", help="continue from this savepoint")
    command.add_argument(
        "-n",
        "--allow-non-restored-state",
        action="store_true",
        help="start though the savepoint has state that the program does not",
    )
    _add_settings(command)
    command.add_argument("--master", help="Spark's master, for example spark://host:7077 (default: local[*])")
    command.add_argument("-d", "--detached", action="store_true", help="return once the job runs")
    command.add_argument("--log", type=Path, metavar="FILE", help="with -d: where output goes (default: beside here)")
    command.add_argument("--no-progress", action="store_true", help="no line of progress in the terminal")
    _add_program(command)
    command.set_defaults(do=run.run)


def _add_plan(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "plan",
        help="show what a program would run",
        description="Run a program up to its first execute(), and show the job instead of running it.",
    )
    command.add_argument("-p", "--parallelism", type=int, metavar="N", help="parallelism, unless the program sets one")
    _add_settings(command)
    command.add_argument("-f", "--format", choices=list(plan.FORMATS), help="default: by the file's name, else text")
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to a file: plan.svg, plan.mmd, ...")
    _add_program(command)
    command.set_defaults(do=plan.plan)


def _add_doctor(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "doctor",
        help="look at this machine",
        description="What Penstock needs: what is there, what is missing, how to get it.",
    )
    command.add_argument("--run", action="store_true", help="also start Spark and run a small job")
    command.set_defaults(do=doctor.doctor)


def _add_settings(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-D",
        dest="settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting by its key: Flink's, spark.* or penstock.*; the program's own settings win",
    )
    command.add_argument(
        "--py-files", metavar="FILES", help="modules that functions import, with commas between them (default: none)"
    )


def _add_program(command: argparse.ArgumentParser) -> None:
    command.add_argument("program", type=Path, help="a Python file")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program")
