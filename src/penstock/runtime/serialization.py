"""Pickling of records and state: the C pickler first, cloudpickle for what it cannot name."""

from __future__ import annotations

import pickle
from typing import Any

import cloudpickle

from penstock.common.errors import SerializationError, shorten


def dumps(value: Any, what: str) -> bytes:
    """Pickle `value`; classes defined inside functions go by value, which is slower but works.

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
            raise SerializationError(f"{what} cannot be pickled ({error}{hint}): {shorten(value)}") from error
