"""The end of a job's log, so that a browser never loads a file of hundreds of megabytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from penstock.cluster.redaction import redact_text

__all__ = ["read_tail"]

_TAIL_BYTES = 256 * 1024
_SEARCHED_BYTES = 16 * 1024 * 1024
_LINES = 2000


def read_tail(path: str | None, wanted: str = "") -> dict[str, Any]:
    """Return the last lines, or those that contain `wanted`, ignoring case. Without a log file there are none."""
    if path is None:
        return {"file": None, "size": 0, "lines": [], "truncated": False}
    searched = _SEARCHED_BYTES if wanted else _TAIL_BYTES
    try:
        with Path(path).open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - searched))
            lines = log.read(searched).decode("utf-8", errors="replace").splitlines()
    except OSError:
        return {"file": path, "size": 0, "lines": [], "truncated": False}
    cut = size > searched
    if cut:
        del lines[:1]  # an incomplete line
    found = [line for line in lines if wanted.lower() in line.lower()]
    return {
        "file": path,
        "size": size,
        "lines": [redact_text(line) for line in found[-_LINES:]],
        "truncated": cut or len(found) > _LINES,
    }
