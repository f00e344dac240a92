"""Paths as programs write them."""

from __future__ import annotations

import os

from penstock.common.errors import InvalidProgramError


def local_path(path: str | os.PathLike[str]) -> str:
    """A path of the local file system, also when written as an address.

    >>> local_path("file:///tmp/a.txt"), local_path("/tmp/a.txt")
    ('/tmp/a.txt', '/tmp/a.txt')
    """
    text = os.fspath(path)
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    if "://" in text:
        raise InvalidProgramError(
            f"{text!r} is not on a local (or mounted) file system: read it by Spark and use env.from_dataframe()"
        )
    return text
