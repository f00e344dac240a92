"""Private copies of accumulators and results.

A user's `merge` or `reduce` may change and return what it was given, and a result may be the accumulator itself. So
whatever stays in state is copied before it is handed out. Nothing is copied that cannot change.
"""

from __future__ import annotations

import pickle
from copy import deepcopy
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

_FIXED: frozenset[type] = frozenset(
    {int, float, str, bool, type(None), bytes, complex, Decimal, date, datetime, time, timedelta}
)
_all_fixed = _FIXED.issuperset  # of the types of all parts


def copied(value: Any) -> Any:
    """The value itself if nobody can change it, else a copy that shares nothing changeable with it.

    >>> pair, counts = (1, 2.0), {"a": 1}
    >>> copied(pair) is pair, copied(counts) is counts, copied(counts) == counts
    (True, False, True)
    """
    kind = type(value)
    if kind in _FIXED or (kind is tuple and _all_fixed(map(type, value))):
        return value
    if kind is list and _all_fixed(map(type, value)):
        return value[:]
    if kind is dict and _all_fixed(map(type, value.values())):
        return value.copy()
    try:
        return pickle.loads(pickle.dumps(value, 5))  # several times as fast as deepcopy
    except Exception:
        return deepcopy(value)
