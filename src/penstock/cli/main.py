"""The command line. A command imports its modules when it runs, so that help and completion are fast."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from penstock import __version__
from penstock.cli.service_options import add_service_commands
from penstock.common.errors import JobCancelledError, PenstockError
from penstock.common.spark_execution_mode import SparkExecutionMode

__all__ = ["main"]

_EPILOG = """\
examples:
  penstock new my_job                               write a small project with a job and its tests
  penstock run job.py --input readings.txt          run a program; options after its name are for the program
  penstock run -p 4 -D execution.checkpointing.dir=file:///var/lib/job job.py
  penstock run --master spark://host:7077 -d job.py
  penstock plan job.py                              show the plan as text
  penstock plan -o job.svg job.py                   draw the plan
  penstock sql -e "SHOW TABLES"                     run SQL; without -e and -f, open a prompt
  penstock doctor                                   check that this machine has everything Penstock needs
  penstock list                                     list the jobs that penstock run started on this machine
  penstock stop 1a2b3c --savepoint-path /savepoints
"""

PLAN_FORMATS = ("text", "json", "svg", "mermaid", "dot", "rest")

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, and return the exit code."""
    parser = build_parser()
    options, unknown = parser.parse_known_args(argv)
    if unknown:  # reported by the command, because the user needs its options
        getattr(options, "parser", parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.command is None:
        parser.print_help()
        return 0
    try:
        module, function = options.do
        if getattr(options, "jobmanager", None):
            module = "penstock.cli.remote"
        code: int = getattr(importlib.import_module(module), function)(options)
    except JobCancelledError as error:  # cancelled on request, so not a failure
        print(error, file=sys.stderr)
        return 1
    except PenstockError as error:
        print("\n".join([f"error: {error}", *getattr(error, "__notes__", ())]), file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader closed the pipe: penstock list | head -1
        sys.stderr.close()
        return 1
    return code


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands and their options."""
    parser = argparse.ArgumentParser(
        prog="penstock",
        description="Flink's programming model for Python, on Apache Spark.",
        epilog=_EPILOG,
        formatter_class=_CommandHelp,
    )
    parser.add_argument("--version", action="version", version=f"penstock {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    _add_new(commands)
    _add_run(commands)
    _add_plan(commands)
    _add_sql(commands)
    _add_doctor(commands)
    _add_list_and_status(commands)
    _add_savepoint_and_stop(commands)
    _add_cancel_and_rescale(commands)
    _add_replay(commands)
    add_service_commands(commands)
    _add_completion(commands)
    return parser


class _CommandHelp(argparse.RawDescriptionHelpFormatter):
    """Print commands and their help side by side: argparse ignores the indentation when it computes the widest one."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=18)
        self._action_max_length = 14


def _add_new(commands: _Commands) -> None:
    command = commands.add_parser(
        "new",
        help="write a new project",
        description="Write a small project: a job, its tests, a README and a Dockerfile.",
    )
    command.add_argument("directory", metavar="NAME", help="the project's name, or the path of its directory")
    command.set_defaults(parser=command, do=("penstock.cli.new", "new"))


def _add_run(commands: _Commands) -> None:
    command = commands.add_parser("run", help="run a program", description="Run a program and wait until it ends.")
    _add_run_options(command)
    command.add_argument(
        "-d", "--detached", action="store_true", help="run in the background: return when the job is running"
    )
    command.add_argument(
        "--log",
        type=Path,
        metavar="FILE",
        help="with -d: the file for the output (default: a new file in this directory)",
    )
    command.add_argument("--no-progress", action="store_true", help="show no progress in the terminal")
    command.add_argument("--ui", action="store_true", help="also serve the dashboard on this machine")
    _add_service(command)
    command.add_argument(
        "--shutdown-on-attached-exit",
        action="store_true",
        help="with -m: cancel the job if this command ends first, even if it is killed",
    )
    _add_program(command)
    command.set_defaults(parser=command, do=("penstock.cli.run", "run"))
    command = commands.add_parser(
        "run-application",
        help="run a program with its own REST API",
        description="Run a program with its own REST API; both end when its jobs have ended.",
    )
    command.add_argument(
        "-t", "--target", choices=["local", "spark", "yarn"], default="local", help="(default: %(default)s)"
    )
    command.add_argument(
        "-d", "--detached", action="store_true", help="with -t yarn: return when the program is submitted"
    )
    command.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    command.add_argument("--port", default="8081-8090", help="a port or a range of ports (default: %(default)s)")
    _add_run_options(command)
    _add_program(command)
    command.set_defaults(
        parser=command,
        do=("penstock.cli.run", "run_application"),
        log=None,
        no_progress=False,
        ui=False,
    )


def _add_run_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("-p", "--parallelism", type=_positive, metavar="N", help=_PARALLELISM)
    command.add_argument("-s", "--from-savepoint", metavar="PATH", help="resume from this savepoint")
    command.add_argument(
        "-n",
        "--allow-non-restored-state",
        action="store_true",
        help="drop state of the savepoint that the program does not have",
    )
    command.add_argument(
        "--take-over",
        action="store_true",
        help="take the checkpoint directory over from another driver, which ends without committing",
    )
    _add_settings(command)
    command.add_argument("--master", help="Spark's master, for example spark://host:7077 (default: local[*])")
    _add_mode(command)


def _add_mode(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--mode",
        choices=[mode.value for mode in SparkExecutionMode],
        help="micro-batch: one streaming query; continuous: long-lived tasks, for latencies of milliseconds "
        "(default: micro-batch)",
    )


def _add_plan(commands: _Commands) -> None:
    command = commands.add_parser(
        "plan",
        help="show the plan of a program",
        description="Run a program up to its first execute(), and show the plan of the job instead of running it.",
    )
    command.add_argument("-p", "--parallelism", type=_positive, metavar="N", help=_PARALLELISM)
    _add_mode(command)
    _add_settings(command)
    command.add_argument(
        "-f", "--format", choices=PLAN_FORMATS, help="default: from the name of the output file, otherwise text"
    )
    command.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write the plan to a file: plan.svg, plan.mmd, ..."
    )
    _add_program(command)
    command.set_defaults(parser=command, do=("penstock.cli.plan", "plan"))


def _add_sql(commands: _Commands) -> None:
    command = commands.add_parser(
        "sql",
        help="run SQL statements, or open a prompt",
        description="Run SQL from the command line, a script, the standard input or a prompt.",
    )
    command.add_argument("-p", "--parallelism", type=_positive, metavar="N", help=_PARALLELISM)
    _add_settings(command)
    _add_mode(command)
    command.add_argument(
        "-e", "--execute", action="append", default=[], metavar="SQL", help="statements to run; repeatable"
    )
    command.add_argument("-f", "--file", type=Path, metavar="SCRIPT", help="a script to run")
    command.add_argument(
        "-i", "--init", type=Path, metavar="SCRIPT", help="a script to run before the other statements"
    )
    command.add_argument(
        "-o", "--output", choices=["table", "csv", "json"], default="table", help="the format of results"
    )
    command.add_argument("--batch", action="store_true", help="show only the final results of bounded tables")
    command.add_argument("--mini", action="store_true", help="run in this process, without Spark and Java")
    command.set_defaults(parser=command, do=("penstock.cli.sql", "sql"))


def _add_doctor(commands: _Commands) -> None:
    command = commands.add_parser(
        "doctor",
        help="check this machine",
        description="Show what Penstock needs: what is installed, what is missing and how to install it.",
    )
    command.add_argument("--run", action="store_true", help="also start Spark and run a small job")
    command.set_defaults(parser=command, do=("penstock.cli.doctor", "doctor"))


# -- jobs that run ----------------------------------------------------------------------------------------------------


def _add_list_and_status(commands: _Commands) -> None:
    command = commands.add_parser(
        "list", help="list jobs", description="List the jobs that penstock run has started on this machine."
    )
    command.add_argument("-a", "--all", action="store_true", help="include jobs that have ended")
    _add_service(command)
    command.set_defaults(parser=command, do=("penstock.cli.jobs", "list_jobs"))
    command = commands.add_parser(
        "status", help="show the progress of a job", description="Show the progress of a job."
    )
    _add_job(command)
    _add_service(command)
    command.set_defaults(parser=command, do=("penstock.cli.jobs", "status"))


def _add_savepoint_and_stop(commands: _Commands) -> None:
    command = commands.add_parser(
        "savepoint",
        help="take a savepoint",
        description="Take a savepoint of a job, which keeps running, or remove a savepoint.",
    )
    _add_job(command, nargs="?")
    command.add_argument("directory", nargs="?", help=_DIRECTORY)
    command.add_argument("--dispose", metavar="PATH", help="remove this savepoint")
    _add_service(command)
    command.set_defaults(parser=command, do=("penstock.cli.jobs", "savepoint"))
    command = commands.add_parser(
        "stop", help="stop a job with a savepoint", description="Stop a job with a savepoint, to resume it later."
    )
    _add_job(command)
    command.add_argument("-p", "--savepoint-path", metavar="DIRECTORY", help=_DIRECTORY)
    command.add_argument(
        "--drain",
        action="store_true",
        help="fire all windows and timers first; use it only if you do not want to resume the job",
    )
    _add_service(command)
    command.set_defaults(parser=command, do=("penstock.cli.jobs", "stop"))


def _add_cancel_and_rescale(commands: _Commands) -> None:
    command = commands.add_parser(
        "cancel", help="cancel a job", description="Cancel a job at the end of its current batch."
    )
    _add_job(command)
    command.add_argument(
        "-s",
        "--with-savepoint",
        nargs="?",
        const="",
        metavar="DIRECTORY",
        help=f"take a savepoint first, and keep the job running if that fails; {_DIRECTORY}",
    )
    _add_service(command)
    command.set_defaults(parser=command, do=("penstock.cli.jobs", "cancel"))
    command = commands.add_parser(
        "rescale", help="change the parallelism of a job", description="Change the parallelism of a running job."
    )
    _add_job(command)
    command.add_argument("-p", "--parallelism", type=_positive, metavar="N", required=True, help="the new parallelism")
    _add_service(command)
    command.set_defaults(parser=command, do=("penstock.cli.jobs", "rescale"))


def _add_replay(commands: _Commands) -> None:
    command = commands.add_parser(
        "replay",
        help="repeat a checkpoint of a job in this process",
        description="Repeat one checkpoint of a job in this process: the same input, from the same state. The job is "
        "not affected, and sinks receive nothing.",
    )
    _add_job(command)
    command.add_argument(
        "checkpoint", nargs="?", default="last", type=_checkpoint, help="the number of the checkpoint (default: last)"
    )
    command.add_argument("--operator", metavar="UID", help="show the records of this operator: its uid, name or id")
    command.add_argument("--key", metavar="K", help="with --operator: only this key (text or JSON)")
    command.add_argument("--limit", type=_positive, default=20, metavar="N", help="records to show (default: 20)")
    command.add_argument(
        "--pdb",
        action="store_true",
        help="stop in the debugger where a function fails; with --operator, also when its functions are called",
    )
    command.set_defaults(parser=command, do=("penstock.cli.replay", "replay"))


def _add_completion(commands: _Commands) -> None:
    command = commands.add_parser(
        "completion",
        help="print shell completion",
        description='Print a script for the completion of commands and options: eval "$(penstock completion bash)"',
    )
    command.add_argument("shell", choices=["bash", "zsh", "fish"])
    command.set_defaults(parser=command, do=("penstock.cli.completion", "completion"))


# -- shared options ---------------------------------------------------------------------------------------------------

_PARALLELISM = "parallelism, unless the program sets one"
_DIRECTORY = "the directory of the savepoint (default: the job's execution.checkpointing.savepoint-dir)"


def _add_settings(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-D",
        dest="settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting: Flink's keys, spark.* or penstock.*; settings in the program take precedence",
    )
    command.add_argument(
        "--py-files", metavar="FILES", help="modules that functions import, separated by commas (default: none)"
    )


def _add_service(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-m", "--jobmanager", metavar="URL", help="use the service at this host:port or URL (default: none)"
    )


def _add_program(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--entry", metavar="MODULE[:FUNCTION]", help="the module to run in a .zip or .whl file, or beside a .py file"
    )
    command.add_argument("program", type=Path, help="a Python file, or a .zip or .whl of modules")
    rest = command.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program")
    rest.required = False  # otherwise argparse requires them if the program is missing


def _add_job(command: argparse.ArgumentParser, nargs: str | None = None) -> None:
    command.add_argument("job", nargs=nargs, help="the job's ID or the beginning of it (see penstock list)")


def _checkpoint(text: str) -> str:
    if text != "last" and not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' must be the number of a checkpoint, or 'last'")
    return text


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' must be a positive integer")
    return number
