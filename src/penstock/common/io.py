"""Input formats."""

from __future__ import annotations

from penstock.common.utils import JavaObjectWrapper

__all__ = ["InputFormat"]


class InputFormat(JavaObjectWrapper):
    """A wrapper of a Java input format in PyFlink: write a ``Source`` instead."""
