"""Paths in programs."""

from __future__ import annotations

import os

from penstock.common import local_path as common
from penstock.common.errors import InvalidProgramError


def local_path(path: str | os.PathLike[str]) -> str:
    """Return the path in the local file system of a path or URI.

    >>> local_path("file:///tmp/a.txt"), local_path("/tmp/a.txt")
    ('/tmp/a.txt', '/tmp/a.txt')
    """
    found = common.local_path(path)
    if found is None:
        raise InvalidProgramError(
            f"{os.fspath(path)!r} is not on a local (or mounted) file system: read it with Spark and use "
            "env.from_dataframe()"
        )
    return found
