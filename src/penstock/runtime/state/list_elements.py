"""The elements of list state: anything but None, as in Flink."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_REJECTED = "list state cannot hold None: leave it out, or store a placeholder value"


def checked_element(value: Any) -> Any:
    """Return the element to add, which must not be None."""
    if value is None:
        raise TypeError(_REJECTED)
    return value


def checked_elements(values: Iterable[Any]) -> list[Any]:
    """Return the elements to add as a new list without None."""
    if values is None:
        raise TypeError("list state takes a list of elements, not None: call clear() to remove all elements")
    elements = list(values)
    if any(value is None for value in elements):  # not `None in elements`, which would compare values
        raise TypeError(_REJECTED)
    return elements
