"""Checks of user arguments that type hints alone do not enforce."""

from __future__ import annotations

from penstock.common.errors import InvalidProgramError

__all__ = ["is_int", "require_name"]


def is_int(value: object) -> bool:
    """Whether a value is an int and not a bool.

    >>> is_int(1), is_int(True), is_int(1.0)
    (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool)


def require_name(value: object, label: str) -> str:
    """Return the value if it is a non-empty string.

    >>> require_name("late-data", "the id of an OutputTag")
    'late-data'
    """
    if isinstance(value, str) and value:
        return value
    raise InvalidProgramError(f"{label} must be a non-empty string, got {value!r}")
