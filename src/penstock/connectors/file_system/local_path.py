"""Paths as programs write them."""

from __future__ import annotations

import os

from penstock.common import local_path as common
from penstock.common.errors import InvalidProgramError


def local_path(path: str | os.PathLike[str]) -> str:
    """A path of the local file system, also when written as an address.

    >>> local_path("file:///tmp/a.txt"), local_path("/tmp/a.txt")
    ('/tmp/a.txt', '/tmp/a.txt')
    """
    found = common.local_path(path)
    if found is None:
        raise InvalidProgramError(
            f"{os.fspath(path)!r} is not on a local (or mounted) file system: read it by Spark and use "
            "env.from_dataframe()"
        )
    return found
