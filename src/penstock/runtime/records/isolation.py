"""Emitted records are snapshots: a function may change an object after emitting it.

Flink serializes records between tasks, so a later change is never visible downstream (rule 3.4). Here records wait in a
list until the batch is passed on. Therefore an object with other references (state, an attribute, a local variable of a
suspended generator) is copied when it is emitted. Immutable values and objects without other references are not copied.
"""

from __future__ import annotations

import datetime as dt
import enum
import pickle
from copy import copy
from decimal import Decimal
from functools import cache
from itertools import chain
from typing import Any
from uuid import UUID

from penstock.common.types import Row
from penstock.core.cpython import UNSHARED, UNSHARED_IN_TUPLE, getrefcount
from penstock.runtime.records.serialization import dumps

IMMUTABLE: frozenset[type] = frozenset(
    {
        int, float, str, bool, bytes, complex, type(None),
        Decimal, dt.date, dt.time, dt.datetime, dt.timedelta, UUID,
    }
)  # fmt: skip

_all_immutable = IMMUTABLE.issuperset


def protect(value: Any, known_holders: int = 0) -> Any:
    """Return `value`, or a copy if the function that emitted it can still change it.

    `known_holders` is the number of references, besides the caller's variable, that are not used for changes.

    >>> held = [1]
    >>> state = {"held": held}
    >>> protect(held) is held, protect(held) == held
    (False, True)
    """
    kind = type(value)
    if kind in IMMUTABLE:
        return value
    shared = getrefcount(value) > UNSHARED + known_holders
    if kind is tuple:
        for part in value:
            if type(part) not in IMMUTABLE and (shared or type(part) is tuple or getrefcount(part) > UNSHARED_IN_TUPLE):
                return value if deeply_immutable(value) else copy_of(value)
        return value
    if shared and not deeply_immutable(value):
        return copy_of(value)
    return value


def deeply_immutable(value: Any) -> bool:
    """Whether nothing inside can change: scalars, enums, and tuples and frozen dataclasses of these."""
    if type(value) in IMMUTABLE:
        return True
    if isinstance(value, tuple):
        return all(map(deeply_immutable, value))
    if isinstance(value, enum.Enum):
        return True
    parameters = getattr(type(value), "__dataclass_params__", None)
    if parameters is not None and parameters.frozen:
        return all(deeply_immutable(getattr(value, name)) for name in type(value).__dataclass_fields__)
    return False


def copied(value: Any) -> Any:
    """Return the value if it is immutable, otherwise a copy that shares no mutable parts with it.

    A user's `merge` or `reduce` may change and return its arguments, so state passes copies to it.

    >>> pair, counts = (1, 2.0), {"a": 1}
    >>> copied(pair) is pair, copied(counts) is counts, copied(counts) == counts
    (True, False, True)
    """
    kind = type(value)
    if kind in IMMUTABLE or (kind is tuple and _all_immutable(map(type, value))):
        return value
    return copy_of(value)


def copy_of(value: Any) -> Any:
    """Return a deep copy, like serialization. Flat containers and objects have a faster path."""
    kind: Any = type(value)
    if kind is list and _all_immutable(map(type, value)):
        return value[:]
    if kind is dict and _all_immutable(map(type, value.values())) and _all_immutable(map(type, value)):
        return dict(value)
    if kind is Row and _all_immutable(map(type, value)):
        return copy(value)
    state = getattr(value, "__dict__", None)
    if state is not None and _plain_to_pickle(kind) and _all_immutable(map(type, state.values())):
        twin = kind.__new__(kind)
        twin.__dict__.update(state)
        return twin
    return pickle.loads(dumps(value, "a record"))


@cache
def _plain_to_pickle(kind: Any) -> bool:
    """Whether an object of this class consists only of its attributes."""
    custom = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")
    return not hasattr(kind, "__slots__") and not any(
        name in vars(base) for base in kind.__mro__[:-1] for name in custom
    )


def copy_batch(values: list[Any]) -> list[Any]:
    """Copy a batch for one more consumer. List objects are never shared, and mutable records are copied.

    A batch that is not a list is a column batch, which is immutable.
    """
    if type(values) is not list:
        return values
    kinds = set(map(type, values))
    if kinds <= IMMUTABLE:
        return list(values)
    if kinds == {tuple} and set(map(type, chain.from_iterable(values))) <= IMMUTABLE:
        return list(values)
    return [value if deeply_immutable(value) else copy_of(value) for value in values]
