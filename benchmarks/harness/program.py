"""Loads a job's text for a package: the jobs are written for Penstock, PyFlink runs them with the import swapped."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.jobs.catalogue import Job

_BENCHMARKS = Path(__file__).parent.parent
_IMPORT = re.compile(r"^(\s*(?:from|import) )penstock\b", re.MULTILINE)


def swap_import(text: str, package: str) -> str:
    """The same program for another package.

    >>> swap_import("from penstock.common import Types", "pyflink")
    'from pyflink.common import Types'
    """
    return _IMPORT.sub(rf"\g<1>{package}", text)


def load_builder(job: Job, package: str) -> Callable[..., Any]:
    """The function that builds the job's stream.

    The text runs as `__main__`, as a user's script does: then every system ships the functions by value, and no
    worker has to find this directory.
    """
    path = _BENCHMARKS / job.directory / f"{job.module}.py"
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    exec(compile(swap_import(path.read_text(), package), str(path), "exec", dont_inherit=True), names)
    builder: Callable[..., Any] = names[job.builder]
    return builder
