"""A fingerprint of the code of the user's functions, to detect whether a program has changed.

For an unchanged program that continues from its state, the results of key selectors need not be checked again.
Functions that the user's functions call are not included.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from collections.abc import Iterable, Iterator
from types import FunctionType, MethodType
from typing import Any

from penstock.core.cpython import code_parts
from penstock.runtime.plan.job_vertex import JobVertex

_DEEP_ENOUGH = 4
_KEYS = ("penstock.datastream.key_selector", "penstock.runtime.operators.fields")
_NOT_THE_USERS = ("penstock.", "builtins", "abc", "typing")


def fingerprint(vertices: Iterable[JobVertex]) -> str:
    """Return a fingerprint that changes only with the code of a job's functions.

    >>> len(fingerprint([]))
    40
    """
    digest = hashlib.sha1(usedforsecurity=False)
    for vertex in vertices:
        for chained in vertex.operators:
            if chained.operator is None:
                continue
            for function in (*chained.operator.user_functions(), *chained.operator.key_selectors()):
                for part in _code_of(function, 0):
                    digest.update(part.encode())
    return digest.hexdigest()


def _code_of(value: Any, depth: int) -> Iterator[str]:
    """Yield the code of a function or of an object's methods, including closure variables and attributes."""
    if depth == _DEEP_ENOUGH:
        return
    if isinstance(value, MethodType):
        yield from _code_of(value.__func__, depth)
        yield from _code_of(value.__self__, depth + 1)
    elif isinstance(value, FunctionType):
        yield from code_parts(value.__code__)
        for cell in value.__closure__ or ():
            with contextlib.suppress(ValueError):  # the variable of a function that is not defined yet
                yield from _part(cell.cell_contents, depth)
    elif isinstance(value, type):
        yield f"{value.__module__}.{value.__qualname__}"
    elif not hasattr(value, "__dict__") and not any("__slots__" in vars(cls) for cls in type(value).__mro__):
        if callable(value):  # written in C, for instance an itemgetter
            with contextlib.suppress(Exception):
                yield pickle.dumps(value, 5).hex()
    else:
        yield from _methods(type(value))
        ours = type(value).__module__.startswith(_KEYS)  # other objects may hold anything, such as ids
        for held in _held_by(value):
            if ours or not isinstance(held, (int, str)):
                yield from _part(held, depth)


def _held_by(value: Any) -> Iterator[Any]:
    yield from getattr(value, "__dict__", {}).values()
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            yield getattr(value, name, None)


def _methods(kind: type) -> Iterator[str]:
    for cls in kind.__mro__:
        if not cls.__module__.startswith(_NOT_THE_USERS):
            for method in vars(cls).values():
                if isinstance(method, FunctionType):
                    yield from code_parts(method.__code__)


def _part(held: Any, depth: int) -> Iterator[str]:
    """Describe a value in a closure or an object: another function, or the position or name of a field."""
    if isinstance(held, (int, str)):
        yield repr(held)
    else:
        yield from _code_of(held, depth + 1)
