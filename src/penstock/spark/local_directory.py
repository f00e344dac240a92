"""Checkpoint directories that are on this machine, or mounted here."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["local_directory"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)")


def local_directory(location: str) -> Path | None:
    """A location as a path; ``None`` for an address on another storage.

    >>> [str(local_directory(f"{scheme}/c")) for scheme in ("", "file:", "file://", "hdfs:", "s3://")]
    ['/c', '/c', '/c', 'None', 'None']
    """
    scheme = _SCHEME.match(location)
    if scheme is not None and scheme.group(1).lower() != "file":
        return None
    return Path(re.sub("^/+", "/", location[scheme.end() :] if scheme is not None else location))
