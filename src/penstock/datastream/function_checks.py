"""Checks of the functions and numbers that a program passes to a stream."""

from __future__ import annotations

import inspect
from typing import Any

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError, shorten
from penstock.core.functions import Function, ProcessFunction
from penstock.core.return_values import check_arity, check_returns

__all__ = ["check_limit", "checked_function", "class_hint"]

_ARGUMENTS = {
    "filter": ["the record"],
    "flat_map": ["the record"],
    "map": ["the record"],
    "reduce": ["the value so far", "the record"],
}
_RESULTS = {"filter": "whether to keep the record", "reduce": "the value of both records"}


def checked_function(func: Any, kind: type, method: str) -> Any:
    """Return the user's function if the method accepts it: an object of the right class or a plain callable."""
    if inspect.iscoroutinefunction(getattr(func, method, func)):
        raise InvalidProgramError(
            f"{method}() uses the return value of its function, but {shorten(func)} is asynchronous: use "
            "AsyncDataStream with an AsyncFunction"
        )
    if method in _ARGUMENTS and (isinstance(func, Function) or inspect.isroutine(func)):
        check_arity(func, method, *_ARGUMENTS[method])
    if method in _RESULTS:
        check_returns(func, method, _RESULTS[method])
    if isinstance(func, kind):
        return func
    takes_callables = kind is not ProcessFunction
    is_function_class = isinstance(func, type) and issubclass(func, Function)
    if takes_callables and callable(func) and not isinstance(func, Function) and not is_function_class:
        return func
    wanted = f"a {kind.__name__}" + (" or a function" if takes_callables else "")
    hint = ""
    if is_function_class:
        hint = class_hint(func)
    elif kind is ProcessFunction and inspect.isroutine(func):
        hint = "; call key_by() first for a function of (record, state), or use map() or flat_map()"
    raise InvalidProgramError(f"{method}() takes {wanted}, got {shorten(func)}{hint}")


def class_hint(value: Any) -> str:
    """The end of a message about a class that was passed instead of an object: ``Count`` without parentheses."""
    return " (pass an instance of the class)" if isinstance(value, type) else ""


def check_limit(limit: int | None) -> None:
    """Reject a limit that is not a number of records."""
    if limit is not None and (not is_int(limit) or limit < 0):
        raise InvalidProgramError(f"the limit must be an int of at least 0, got {limit!r}")
