"""Input formats."""

from __future__ import annotations

from penstock.common.utils import JavaObjectWrapper

__all__ = ["InputFormat"]


class InputFormat(JavaObjectWrapper):
    """Wraps a Java input format in PyFlink. Write a ``Source`` instead."""
