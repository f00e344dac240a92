"""All code that depends on CPython's internals.

- :data:`UNSHARED` and its siblings: ``sys.getrefcount``. The counts are measured at import, since versions differ.
- :func:`returned_values`: ``dis`` shows a return as ``RETURN_CONST``, or as ``RETURN_VALUE`` after ``LOAD_CONST``.
- :func:`code_parts`: byte code, names and constants of a code object are the same for the same source.
- :func:`local_variable`: ``f_locals`` of a frame that a traceback holds.
- ``PICKLE_...``: protocol 5 writes a class as module, name, ``MEMOIZE``, ``STACK_GLOBAL``, ``MEMOIZE``.

``tests/core/test_cpython.py`` fails on a Python version for which one of these no longer holds.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from sys import getrefcount
from types import CodeType, FrameType
from typing import Any

__all__ = [
    "ALONE",
    "MISSING",
    "PICKLE_CLASS",
    "PICKLE_MEMOIZE",
    "PICKLE_SHORT_STRING",
    "PICKLE_STACK_GLOBAL",
    "UNSHARED",
    "UNSHARED_IN_TUPLE",
    "code_parts",
    "getrefcount",
    "local_variable",
    "returned_values",
]

# -- references -----------------------------------------------------------------------------------------------------

_ENOUGH_CALLS = 100  # after which the interpreter has specialised a call


def _references_when_passed_on() -> int:
    """Count the references to an object that only its receiver holds: in the receiver's variable and our parameter.

    The count depends on the version of Python, because some references are only borrowed. This function returns the
    lowest count it sees, so at worst an object is copied unnecessarily.
    """

    def count(value: object) -> int:
        return getrefcount(value)

    def made() -> Iterator[object]:
        for _ in range(_ENOUGH_CALLS):
            yield object()

    return min(count(item) for item in made())


def _references_in_a_tuple() -> int:
    """Count the references to a part of an otherwise unshared tuple: in the tuple and in a variable."""
    parts = tuple(object() for _ in range(_ENOUGH_CALLS))
    return min(getrefcount(part) for part in parts)


def _references_of_a_local() -> int:
    probe = object()
    return getrefcount(probe)


UNSHARED = _references_when_passed_on()
UNSHARED_IN_TUPLE = _references_in_a_tuple()
ALONE = _references_of_a_local()

# -- code -----------------------------------------------------------------------------------------------------------


def returned_values(code: CodeType) -> list[bool]:
    """For each return statement, whether it returns a value.

    >>> returned_values((lambda: None).__code__), returned_values((lambda: 1).__code__)
    ([False], [True])
    """
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return [True]
    found = []
    before: dis.Instruction | None = None
    for instruction in dis.get_instructions(code):
        if instruction.opname == "RETURN_CONST":
            found.append(instruction.argval is not None)
        elif instruction.opname == "RETURN_VALUE":
            found.append(not (before and before.opname == "LOAD_CONST" and before.argval is None))
        before = instruction
    return found


def code_parts(code: CodeType) -> Iterator[str]:
    """The parts that identify a code object: byte code, names and constants, including those of inner functions."""
    yield code.co_code.hex()
    yield " ".join(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_parts(constant)
        elif isinstance(constant, frozenset):
            yield repr(sorted(map(repr, constant)))
        else:
            yield repr(constant)


MISSING: Any = object()


def local_variable(frame: FrameType, name: str) -> Any:
    """The value of a local variable in a frame, or MISSING."""
    return frame.f_locals.get(name, MISSING)


# -- pickles --------------------------------------------------------------------------------------------------------

PICKLE_MEMOIZE, PICKLE_STACK_GLOBAL, PICKLE_SHORT_STRING = b"\x94", b"\x93", b"\x8c"
PICKLE_CLASS = PICKLE_MEMOIZE + PICKLE_STACK_GLOBAL + PICKLE_MEMOIZE
"""Follows the name of a class or function, once in each pickle."""
