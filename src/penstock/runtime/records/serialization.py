"""Pickle records and state: with the C pickler first, with cloudpickle for what it cannot name."""

from __future__ import annotations

import pickle
from typing import Any

import cloudpickle

from penstock.common.errors import InvalidProgramError, SerializationError, shorten

MISSING_OR_CHANGED = (AttributeError, ImportError, TypeError)
"""The errors of unpickling if a class is missing or has changed."""


def dumps(value: Any, label: str) -> bytes:
    """Pickle `value`. Classes defined inside functions are pickled by value, which is slower.

    >>> import pickle
    >>> pickle.loads(dumps([1, 2], "records"))
    [1, 2]
    """
    try:
        return pickle.dumps(value, 5)
    except Exception:
        try:
            return bytes(cloudpickle.dumps(value, 5))
        except Exception as error:
            hint = "; to emit what a generator yields, use flat_map()" if "'generator'" in str(error) else ""
            raise SerializationError(f"{label} cannot be pickled ({error}{hint}): {shorten(value)}") from error


def unreadable(label: str, error: Exception) -> InvalidProgramError:
    """Return the error for a value that cannot be read."""
    return InvalidProgramError(
        f"{label} cannot be read from the checkpoint ({type(error).__name__}: {error}): restore the previous "
        "classes of its values, in their previous modules"
    )
