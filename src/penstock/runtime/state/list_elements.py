"""The elements of list state: anything but None, as in Flink."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_REJECTED = "list state cannot hold None: leave it out, or store a value that stands for it"


def checked_element(value: Any) -> Any:
    """The element that is to be added."""
    if value is None:
        raise TypeError(_REJECTED)
    return value


def checked_elements(values: Iterable[Any]) -> list[Any]:
    """The elements that are to be added, as a list of its own."""
    if values is None:
        raise TypeError("list state takes a list of elements, not None: call clear() to remove all")
    elements = list(values)
    if any(value is None for value in elements):  # not `None in`: that would compare
        raise TypeError(_REJECTED)
    return elements
