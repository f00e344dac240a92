"""The command line of the service: ``ui``, ``cluster``, ``token``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypeAlias

__all__ = ["add_service_commands"]

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_service_commands(commands: _Commands) -> None:
    """Add the commands to the parser."""
    _add_ui(commands)
    _add_cluster(commands)
    _add_token(commands)
    _add_history_server(commands)


def _add_ui(commands: _Commands) -> None:
    command = commands.add_parser(
        "ui",
        help="jobs in the browser",
        description="Serve the REST API and the dashboard for the jobs of this machine, until Ctrl-C.",
    )
    command.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    command.add_argument(
        "--port", default="8081-8090", help="a port, or a range of which the first free one is taken (%(default)s)"
    )
    command.add_argument("--open", action="store_true", help="also open it in the browser")
    command.set_defaults(parser=command, do=("penstock.cli.ui", "ui"))


def _add_cluster(commands: _Commands) -> None:
    group = commands.add_parser(
        "cluster",
        help="the service: start, stop, status",
        description="The service of this machine: REST API, programs.",
    )
    group.set_defaults(parser=group, do=("penstock.cli.cluster", "status"), dir=None)
    actions = group.add_subparsers(dest="action", metavar="action")
    command = actions.add_parser("start", help="start the service", description="Start the service in the background.")
    _add_directory(command)
    command.add_argument("--host", help="the address to listen on (default: rest.bind-address, else 127.0.0.1)")
    command.add_argument("--port", help="a port or a range of ports (default: rest.bind-port, else 8081-8090)")
    command.add_argument("--master", help="Spark's master for the jobs (default: local[*], a Spark for each job)")
    command.add_argument(
        "--workers", type=int, metavar="N", help="also start a Spark on this machine, which all jobs share"
    )
    command.add_argument("-D", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="a setting")
    command.add_argument("--foreground", action="store_true", help="stay in this process")
    command.add_argument(
        "--ha-dir",
        type=Path,
        metavar="DIRECTORY",
        help="a directory that several services share: one leads, the others take over, and jobs are brought back",
    )
    command.set_defaults(parser=command, do=("penstock.cli.cluster", "start"))
    command = actions.add_parser("stop", help="end the service", description="End the service and its jobs.")
    _add_directory(command)
    command.add_argument("--keep-jobs", action="store_true", help="leave jobs running")
    command.add_argument(
        "--savepoint", metavar="DIRECTORY", help="stop every job with a savepoint; if one fails, all of them go on"
    )
    command.add_argument("--yes", action="store_true", help="cancel running jobs without asking")
    command.set_defaults(parser=command, do=("penstock.cli.cluster", "stop"))
    command = actions.add_parser("status", help="where the service is", description="Where the service is.")
    _add_directory(command)
    command.set_defaults(parser=command, do=("penstock.cli.cluster", "status"))


def _add_history_server(commands: _Commands) -> None:
    command = commands.add_parser(
        "history-server",
        help="jobs that have ended",
        description="Serve the REST API and the dashboard for jobs that have ended, from their archives, until Ctrl-C.",
    )
    command.add_argument(
        "--dir",
        type=Path,
        action="append",
        metavar="DIRECTORY",
        help="where archives are; may be given several times (default: those of the jobs of this machine)",
    )
    command.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    command.add_argument("--port", default="8082-8091", help="a port or a range of ports (default: %(default)s)")
    command.set_defaults(parser=command, do=("penstock.cli.history_server", "serve"))


def _add_directory(command: argparse.ArgumentParser) -> None:
    command.add_argument("--dir", type=Path, metavar="DIRECTORY", help="where the service keeps its files")


def _add_token(commands: _Commands) -> None:
    group = commands.add_parser("token", help="users of the service", description="Users of the service.")
    group.set_defaults(parser=group, do=("penstock.cli.token", "create"))
    actions = group.add_subparsers(dest="action", metavar="action", required=True)
    command = actions.add_parser(
        "create", help="add a user", description="Add a user to a token file, and print the token."
    )
    command.add_argument("name", help="the user's name")
    command.add_argument("--role", choices=["viewer", "operator", "admin"], default="viewer")
    command.add_argument("--file", type=Path, required=True, help="penstock.security.token-file of the service")
    command.set_defaults(parser=command, do=("penstock.cli.token", "create"))
