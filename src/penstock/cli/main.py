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
  penstock run job.py --input readings.txt          run a program; what follows its name is the program's own
  penstock run -p 4 -D execution.checkpointing.dir=file:///var/lib/job job.py
  penstock run --master spark://host:7077 -d job.py
  penstock plan job.py                              what would run, as text
  penstock plan -o job.svg job.py                   the same as a picture
  penstock sql -e "SHOW TABLES"                     SQL; without -e and -f at a prompt
  penstock doctor                                   is everything there that Penstock needs?
  penstock list                                     jobs that penstock run has started on this machine
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
        description="Write a small project: a job, its tests, a README, a Dockerfile.",
    )
    command.add_argument("directory", metavar="NAME", help="the project's name, or the path of its directory")
    command.set_defaults(parser=command, do=("penstock.cli.new", "new"))


def _add_run(commands: _Commands) -> None:
    command = commands.add_parser("run", help="run a program", description="Run a program and wait for its end.")
    _add_run_options(command)
    command.add_argument("-d", "--detached", action="store_true", help="return once the job runs")
    command.add_argument(
        "--log", type=Path, metavar="FILE", help="with -d: where output goes (default: a new file here)"
    )
    command.add_argument("--no-progress", action="store_true", help="no line of progress in the terminal")
    command.add_argument("--ui", action="store_true", help="serve the dashboard beside the program, on this machine")
    _add_service(command)
    command.add_argument(
        "--shutdown-on-attached-exit",
        action="store_true",
        help="with -m: cancel the job if this command ends before it, even if killed",
    )
    _add_program(command)
    command.set_defaults(parser=command, do=("penstock.cli.run", "run"))
    command = commands.add_parser(
        "run-application",
        help="run a program with a REST API of its own",
        description="Run a program beside a REST API of its own; both end when its jobs have ended.",
    )
    command.add_argument(
        "-t", "--target", choices=["local", "spark", "yarn"], default="local", help="(default: %(default)s)"
    )
    command.add_argument("-d", "--detached", action="store_true", help="with -t yarn: return once it is submitted")
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
    command.add_argument("-s", "--from-savepoint", metavar="PATH", help="continue from this savepoint")
    command.add_argument(
        "-n",
        "--allow-non-restored-state",
        action="store_true",
        help="start though the savepoint has state that the program does not",
    )
    command.add_argument(
        "--take-over",
        action="store_true",
        help="take the checkpoint directory from a driver that holds it; that one ends without committing",
    )
    _add_settings(command)
    command.add_argument("--master", help="Spark's master, for example spark://host:7077 (default: local[*])")
    _add_mode(command)


def _add_mode(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--mode",
        choices=[mode.value for mode in SparkExecutionMode],
        help="one streaming query, or tasks that live as long as the job, for milliseconds of latency "
        "(default: micro-batch)",
    )


def _add_plan(commands: _Commands) -> None:
    command = commands.add_parser(
        "plan",
        help="show what a program would run",
        description="Run a program up to its first execute(), and show the job instead of running it.",
    )
    command.add_argument("-p", "--parallelism", type=_positive, metavar="N", help=_PARALLELISM)
    _add_mode(command)
    _add_settings(command)
    command.add_argument("-f", "--format", choices=PLAN_FORMATS, help="default: by the file's name, else text")
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to a file: plan.svg, plan.mmd, ...")
    _add_program(command)
    command.set_defaults(parser=command, do=("penstock.cli.plan", "plan"))


def _add_sql(commands: _Commands) -> None:
    command = commands.add_parser(
        "sql",
        help="run SQL statements, or ask for them",
        description="Run SQL: from the command line, from a script, from the standard input, or typed in at a prompt.",
    )
    command.add_argument("-p", "--parallelism", type=_positive, metavar="N", help=_PARALLELISM)
    _add_settings(command)
    _add_mode(command)
    command.add_argument("-e", "--execute", action="append", default=[], metavar="SQL", help="statements to run")
    command.add_argument("-f", "--file", type=Path, metavar="SCRIPT", help="a script to run")
    command.add_argument("-i", "--init", type=Path, metavar="SCRIPT", help="a script to run first")
    command.add_argument("-o", "--output", choices=["table", "csv", "json"], default="table", help="form of results")
    command.add_argument("--batch", action="store_true", help="final results of bounded tables only")
    command.add_argument("--mini", action="store_true", help="run in this process, without Spark and Java")
    command.set_defaults(parser=command, do=("penstock.cli.sql", "sql"))


def _add_doctor(commands: _Commands) -> None:
    command = commands.add_parser(
        "doctor",
        help="look at this machine",
        description="What Penstock needs: what is there, what is missing, how to get it.",
    )
    command.add_argument("--run", action="store_true", help="also start Spark and run a small job")
    command.set_defaults(parser=command, do=("penstock.cli.doctor", "doctor"))


# -- jobs that run ----------------------------------------------------------------------------------------------------


def _add_list_and_status(commands: _Commands) -> None:
    command = commands.add_parser(
        "list", help="jobs on this machine", description="Jobs that penstock run has started on this machine."
    )
    command.add_argument("-a", "--all", action="store_true", help="also those that have ended")
    _add_service(command)
    command.set_defaults(parser=command, do=("penstock.cli.jobs", "list_jobs"))
    command = commands.add_parser("status", help="how a job is doing", description="How a job is doing.")
    _add_job(command)
    _add_service(command)
    command.set_defaults(parser=command, do=("penstock.cli.jobs", "status"))


def _add_savepoint_and_stop(commands: _Commands) -> None:
    command = commands.add_parser(
        "savepoint", help="take a savepoint", description="Take a savepoint of a job, which runs on; or remove one."
    )
    _add_job(command, nargs="?")
    command.add_argument("directory", nargs="?", help=_DIRECTORY)
    command.add_argument("--dispose", metavar="PATH", help="remove this savepoint")
    _add_service(command)
    command.set_defaults(parser=command, do=("penstock.cli.jobs", "savepoint"))
    command = commands.add_parser(
        "stop", help="end a job with a savepoint", description="End a job with a savepoint, to resume it later."
    )
    _add_job(command)
    command.add_argument("-p", "--savepoint-path", metavar="DIRECTORY", help=_DIRECTORY)
    command.add_argument(
        "--drain", action="store_true", help="fire all windows and timers first: use it if the job will not be resumed"
    )
    _add_service(command)
    command.set_defaults(parser=command, do=("penstock.cli.jobs", "stop"))


def _add_cancel_and_rescale(commands: _Commands) -> None:
    command = commands.add_parser("cancel", help="end a job", description="End a job after its running batch.")
    _add_job(command)
    command.add_argument(
        "-s",
        "--with-savepoint",
        nargs="?",
        const="",
        metavar="DIRECTORY",
        help=f"take a savepoint, without which the job runs on; {_DIRECTORY}",
    )
    _add_service(command)
    command.set_defaults(parser=command, do=("penstock.cli.jobs", "cancel"))
    command = commands.add_parser(
        "rescale", help="give a job another parallelism", description="Give a running job another parallelism."
    )
    _add_job(command)
    command.add_argument("-p", "--parallelism", type=_positive, metavar="N", required=True, help="the new parallelism")
    _add_service(command)
    command.set_defaults(parser=command, do=("penstock.cli.jobs", "rescale"))


def _add_replay(commands: _Commands) -> None:
    command = commands.add_parser(
        "replay",
        help="run a checkpoint of a job again, here",
        description="Run one checkpoint of a job again in this process: the same input from the same state. The job is "
        "not touched, and sinks get nothing.",
    )
    _add_job(command)
    command.add_argument("checkpoint", nargs="?", default="last", type=_checkpoint, help="its number (default: last)")
    command.add_argument("--operator", metavar="UID", help="show the records of this operator: its uid, name or id")
    command.add_argument("--key", metavar="K", help="with --operator: only this key (text or JSON)")
    command.add_argument("--limit", type=_positive, default=20, metavar="N", help="records to show (default: 20)")
    command.add_argument(
        "--pdb",
        action="store_true",
        help="with --operator: stop in the debugger when its functions are called; always: where one fails",
    )
    command.set_defaults(parser=command, do=("penstock.cli.replay", "replay"))


def _add_completion(commands: _Commands) -> None:
    command = commands.add_parser(
        "completion",
        help="completion for the shell",
        description='Print what completes commands and options in the shell: eval "$(penstock completion bash)"',
    )
    command.add_argument("shell", choices=["bash", "zsh", "fish"])
    command.set_defaults(parser=command, do=("penstock.cli.completion", "completion"))


# -- shared options ---------------------------------------------------------------------------------------------------

_PARALLELISM = "parallelism, unless the program sets one"
_DIRECTORY = "where it goes (default: execution.checkpointing.savepoint-dir of the job)"


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


def _add_service(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-m", "--jobmanager", metavar="URL", help="the service to speak to, host:port or a URL (default: none)"
    )


def _add_program(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--entry", metavar="MODULE[:FUNCTION]", help="what to run of a .zip or .whl file, or beside a .py file"
    )
    command.add_argument("program", type=Path, help="a Python file, or a .zip or .whl of modules")
    rest = command.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program")
    rest.required = False  # otherwise argparse requires them if the program is missing


def _add_job(command: argparse.ArgumentParser, nargs: str | None = None) -> None:
    command.add_argument("job", nargs=nargs, help="the job's id, or how it begins (penstock list)")


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
