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
        help="serve the dashboard",
        description="Serve the REST API and the dashboard for the jobs of this machine, until Ctrl-C.",
    )
    command.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    command.add_argument(
        "--port", default="8081-8090", help="a port, or a range to take the first free port from (default: %(default)s)"
    )
    command.add_argument("--open", action="store_true", help="open the dashboard in the browser")
    command.set_defaults(parser=command, do=("penstock.cli.ui", "ui"))


def _add_cluster(commands: _Commands) -> None:
    group = commands.add_parser(
        "cluster",
        help="start, stop or check the service",
        description="Start, stop or check the service of this machine, which accepts programs through a REST API.",
    )
    group.set_defaults(parser=group, do=("penstock.cli.cluster", "status"), dir=None)
    actions = group.add_subparsers(dest="action", metavar="action")
    command = actions.add_parser("start", help="start the service", description="Start the service in the background.")
    _add_directory(command)
    command.add_argument("--host", help="the address to listen on (default: rest.bind-address, or 127.0.0.1)")
    command.add_argument("--port", help="a port or a range of ports (default: rest.bind-port, or 8081-8090)")
    command.add_argument("--master", help="Spark's master for the jobs (default: local[*], with one Spark per job)")
    command.add_argument(
        "--workers", type=int, metavar="N", help="also start a Spark on this machine that all jobs share"
    )
    command.add_argument("-D", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="a setting")
    command.add_argument("--foreground", action="store_true", help="run in the foreground")
    command.add_argument(
        "--ha-dir",
        type=Path,
        metavar="DIRECTORY",
        help="a directory that several services share: if the leader fails, another takes over and recovers the jobs",
    )
    command.set_defaults(parser=command, do=("penstock.cli.cluster", "start"))
    command = actions.add_parser("stop", help="stop the service", description="Stop the service and its jobs.")
    _add_directory(command)
    command.add_argument("--keep-jobs", action="store_true", help="keep the jobs running")
    command.add_argument(
        "--savepoint",
        metavar="DIRECTORY",
        help="stop every job with a savepoint; if one savepoint fails, all jobs continue",
    )
    command.add_argument("--yes", action="store_true", help="cancel running jobs without asking")
    command.set_defaults(parser=command, do=("penstock.cli.cluster", "stop"))
    command = actions.add_parser(
        "status", help="show the address of the service", description="Show the address of the service."
    )
    _add_directory(command)
    command.set_defaults(parser=command, do=("penstock.cli.cluster", "status"))


def _add_history_server(commands: _Commands) -> None:
    command = commands.add_parser(
        "history-server",
        help="serve ended jobs",
        description="Serve the REST API and the dashboard for jobs that have ended, from their archives, until Ctrl-C.",
    )
    command.add_argument(
        "--dir",
        type=Path,
        action="append",
        metavar="DIRECTORY",
        help="a directory of archives; repeatable (default: the archives of the jobs of this machine)",
    )
    command.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    command.add_argument("--port", default="8082-8091", help="a port or a range of ports (default: %(default)s)")
    command.set_defaults(parser=command, do=("penstock.cli.history_server", "serve"))


def _add_directory(command: argparse.ArgumentParser) -> None:
    command.add_argument("--dir", type=Path, metavar="DIRECTORY", help="the directory for the files of the service")


def _add_token(commands: _Commands) -> None:
    group = commands.add_parser("token", help="manage users of the service", description="Manage users of the service.")
    group.set_defaults(parser=group, do=("penstock.cli.token", "create"))
    actions = group.add_subparsers(dest="action", metavar="action", required=True)
    command = actions.add_parser(
        "create", help="add a user", description="Add a user to a token file, and print the token."
    )
    command.add_argument("name", help="the user's name")
    command.add_argument("--role", choices=["viewer", "operator", "admin"], default="viewer")
    command.add_argument("--file", type=Path, required=True, help="penstock.security.token-file of the service")
    command.set_defaults(parser=command, do=("penstock.cli.token", "create"))
