"""Emitted records are snapshots: a function may go on changing an object after it emitted it.

Flink serializes records between tasks, so a later mutation never shows downstream (spec: 3.4). Records here wait in a
list until the batch is passed on, so an object that somebody still holds (state, a member, a local variable of a
suspended generator) is copied when it is emitted. Immutable values and objects nobody else holds are not.
"""

from __future__ import annotations

import pickle
from itertools import chain
from sys import getrefcount
from typing import Any

from penstock.runtime.serialization import dumps

IMMUTABLE: frozenset[type] = frozenset({int, float, str, bool, bytes, complex, type(None)})

# References to an object that only its receiver holds: the caller's variable, our parameter, getrefcount's argument.
_UNSHARED = 3
_UNSHARED_IN_TUPLE = 3  # the tuple, the loop variable, getrefcount's argument


def protect(value: Any) -> Any:
    """`value`, or a copy of it if it can still be changed by whoever emitted it.

    >>> held = [1]
    >>> protect(held) is held, protect(held) == held
    (False, True)
    """
    kind = type(value)
    if kind in IMMUTABLE:
        return value
    if kind is tuple:
        for part in value:
            if type(part) not in IMMUTABLE and (type(part) is tuple or getrefcount(part) > _UNSHARED_IN_TUPLE):
                return copy_of(value) if not deeply_immutable(value) else value
        return value
    if getrefcount(value) > _UNSHARED and not deeply_immutable(value):
        return copy_of(value)
    return value


def deeply_immutable(value: Any) -> bool:
    """Whether nothing inside can change: scalars, and tuples of such."""
    return type(value) in IMMUTABLE or (type(value) is tuple and all(map(deeply_immutable, value)))


def copy_of(value: Any) -> Any:
    """A deep copy, as serialization would make it."""
    return pickle.loads(dumps(value, "a record"))


def copy_batch(values: list[Any]) -> list[Any]:
    """A batch for one more consumer: the same list object is never shared, mutable records are copied."""
    kinds = set(map(type, values))
    if kinds <= IMMUTABLE:
        return list(values)
    if kinds == {tuple} and set(map(type, chain.from_iterable(values))) <= IMMUTABLE:
        return list(values)
    copied: list[Any] = copy_of(values)
    return copied
