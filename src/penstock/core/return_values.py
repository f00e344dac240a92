"""Checks the return values of user code for mistakes that Python silently accepts.

A forgotten ``return`` gives ``None``, missing parentheses give a method, and a stray ``yield`` gives a generator. The
first is false and the others are true, for each record. Functions are checked once, where the job is defined. Results
are checked once per batch or on a branch that is rarely taken.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import BuiltinFunctionType, CoroutineType, FunctionType, GeneratorType, MethodType
from typing import Any

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError, TypeMismatchError, shorten
from penstock.core.cpython import returned_values

__all__ = [
    "can_return_something",
    "check_arity",
    "check_returns",
    "check_verdict",
    "describe",
    "forgotten_call",
    "milliseconds",
]

_CALLABLES = (FunctionType, MethodType, BuiltinFunctionType)
_RESUMABLE = (CoroutineType, GeneratorType)


def can_return_something(method: Callable[..., Any]) -> bool:
    """Whether a Python function has a return statement with a value.

    PyFlink requires a `merge` of every AggregateFunction, and many define it as ``pass`` or raise: do not call such a
    `merge`.

    >>> can_return_something(lambda a, b: a + b), can_return_something(lambda a, b: None)
    (True, False)
    """
    code = getattr(method, "__code__", None)
    return True if code is None else any(returned_values(code))  # written in C: no code to inspect


def check_returns(function: Any, method: str, expected: str) -> None:
    """Reject a function that returns ``None`` or a generator for all arguments.

    >>> def is_large(value):
    ...     value > 100
    >>> check_returns(is_large, "filter", "whether to keep the record")
    Traceback (most recent call last):
    ...
    penstock.common.errors.InvalidProgramError: is_large() never returns a value: return whether to keep the record
    """
    called = function if isinstance(function, _CALLABLES) else getattr(function, method, function)
    code = getattr(called, "__code__", None)
    if code is None:
        return  # written in C
    if code.co_flags & inspect.CO_GENERATOR:
        raise InvalidProgramError(f"{describe(function, method)} yields: return {expected} instead")
    returned = returned_values(code)
    if returned and not any(returned):
        raise InvalidProgramError(f"{describe(function, method)} never returns a value: return {expected}")


def check_arity(function: Any, method: str, *arguments: str) -> None:
    """Reject a function that cannot be called with these arguments.

    >>> check_arity(lambda a, b: a + b, "map", "the record")
    Traceback (most recent call last):
    ...
    penstock.common.errors.InvalidProgramError: map() calls the lambda with the record: missing a required argument: 'b'
    """
    called = function if isinstance(function, _CALLABLES) else getattr(function, method, None)
    if isinstance(function, type) or not isinstance(called, (FunctionType, MethodType)):
        return  # a class by mistake, written in C, or an object whose __call__ may be anything
    if hasattr(called, "__signature__"):
        return  # set by hand, or copied from a wrapped function with other parameters
    try:
        inspect.signature(called, follow_wrapped=False).bind(*arguments)
    except ValueError:
        return  # no signature to read
    except TypeError as error:
        raise InvalidProgramError(
            f"{method}() calls {describe(function, method)} with {' and '.join(arguments)}: {error}"
        ) from None


def check_verdict(verdict: Any, function: Any, method: str, *, operator_name: str, record: Any = None) -> None:
    """Reject a result of a yes-or-no function that is always true by mistake: a method, a coroutine, a generator."""
    if isinstance(verdict, (*_CALLABLES, *_RESUMABLE)):
        raise TypeMismatchError(
            f"{describe(function, method)} returned {shorten(verdict)}, which is true for every record: "
            + ("call it" if isinstance(verdict, _CALLABLES) else "return True or False"),
            operator_name=operator_name,
            record=record,
        )


def forgotten_call(value: Any) -> bool:
    """Whether a value is a bound method, as in ``record.name.lower`` without parentheses.

    >>> forgotten_call("A".lower), forgotten_call("A".lower()), forgotten_call(len)
    (True, False, False)
    """
    bound_to = getattr(value, "__self__", None)
    return isinstance(value, (MethodType, BuiltinFunctionType)) and not (bound_to is None or inspect.ismodule(bound_to))


def milliseconds(value: Any, function: Any, method: str, *, positive: bool) -> int:
    """Return a duration in ms that user code returned, if it is valid."""
    if not is_int(value):
        is_whole = not isinstance(value, bool) and hasattr(value, "__index__")  # numpy's integers
        value = int(value) if is_whole or (isinstance(value, float) and value.is_integer()) else value
    if not is_int(value) or value < int(positive):
        least = "longer than 0 ms" if positive else "0 ms or longer"
        raise InvalidProgramError(
            f"{describe(function, method)} returned {shorten(value)}: return a number of milliseconds, {least}"
        )
    milliseconds: int = value
    return milliseconds


def describe(function: Any, method: str) -> str:
    """Return the name of a user's function for messages: ``MyFilter.filter()``, ``is_large()``, ``the lambda``."""
    if isinstance(function, MethodType):
        return f"{function.__qualname__}()"
    if isinstance(function, _CALLABLES):
        return "the lambda" if function.__name__ == "<lambda>" else f"{function.__name__}()"
    return f"{type(function).__name__}.{method}()"
