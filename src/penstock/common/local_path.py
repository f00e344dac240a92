"""Paths and URIs of files on this machine, or mounted here."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from penstock.common.errors import InvalidProgramError

__all__ = ["local_path"]

_SCHEME = re.compile(r"(file):|([a-z][a-z0-9+.-]+):(?=/)", re.IGNORECASE)  # at least two letters: C:/ is a path


def local_path(location: str | os.PathLike[str], *, decode: bool = False) -> str | None:
    """Return the path that a path or a ``file:`` URI names, or None for a URI of another storage.

    >>> local_path("/c"), local_path("file:/c"), local_path("file:///c"), local_path("s3://bucket/c")
    ('/c', '/c', '/c', None)

    :param decode: whether ``%20`` in a URI is a space, as in browsers but not in Hadoop
    """
    text = os.fspath(location)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return text
    if scheme.group(1) is None:
        return None
    address = text[scheme.end() :]
    if address.startswith("//"):
        host, slash, path = address[2:].partition("/")
        if host not in ("", "localhost"):
            raise InvalidProgramError(f"the URI {text} names a host '{host}': use file:///{host}/... for a path")
        address = slash + path
    address = re.sub("^/+", "/", address)
    return unquote(address) if decode else address
