"""32-bit floating-point numbers, the values of a FLOAT."""

from __future__ import annotations

from ctypes import c_float
from typing import Any

__all__ = ["single"]


def single(value: Any) -> Any:
    """Return the nearest 32-bit number as a Python float; ``None`` stays ``None``.

    Numbers too large for 32 bits become infinite, as with Java's cast.

    >>> single(0.1), single(16777217), single(1e39), single(None)
    (0.10000000149011612, 16777216.0, inf, None)
    """
    return None if value is None else c_float(value).value
