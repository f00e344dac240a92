"""Defaults for each new environment of this process. The runner of a program sets them, not the program itself."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from penstock.common.configuration import Configuration
from penstock.common.job_client import JobClient

__all__ = ["ExecutionDefaults", "current_defaults", "execution_defaults", "follow_plain_program"]


@dataclass(slots=True)
class ExecutionDefaults:
    """Defaults of settings, job listeners, and the executor. The program's own settings take precedence.

    Submission listeners get the name of a job before it starts, because Spark may have to start first. Job listeners
    get its client once it runs.

    An executor given here replaces any other: a command that only inspects a program runs nothing.

    Environments count the sinks that wait for execute(). When a program ends, the remaining ones never run.
    """

    configuration: Configuration = field(default_factory=Configuration)
    job_listeners: list[Callable[[JobClient], None]] = field(default_factory=list)
    submission_listeners: list[Callable[[str], None]] = field(default_factory=list)
    executor: Any = None
    waiting_sinks: int = 0
    by_command: bool = True
    """False for a program that runs without a penstock command: `python job.py`."""


_current = ExecutionDefaults(by_command=False)


def follow_plain_program(client: JobClient, job_name: str) -> None:
    """List a job that no command started, unless ``PENSTOCK_LISTED`` is ``false``."""
    if os.environ.get("PENSTOCK_LISTED", "true").lower() != "false":
        # Imported by name, because the commands depend on this package.
        importlib.import_module("penstock.cli.plain_program").follow(client, job_name)


def current_defaults() -> ExecutionDefaults:
    """Return the current defaults."""
    return _current


@contextmanager
def execution_defaults(defaults: ExecutionDefaults) -> Iterator[None]:
    """Apply these defaults within the block.

    >>> from penstock.datastream import StreamExecutionEnvironment
    >>> four = ExecutionDefaults(Configuration().set_integer("parallelism.default", 4))
    >>> with execution_defaults(four):
    ...     env = StreamExecutionEnvironment.get_execution_environment()
    >>> env.get_parallelism()
    4
    """
    global _current  # noqa: PLW0603 - environments are made by the user's program, which knows nothing of this
    before, _current = _current, defaults
    try:
        yield
    finally:
        _current = before
