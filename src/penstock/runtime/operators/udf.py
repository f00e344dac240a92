"""Life cycle of user functions: `open` with a runtime context before the first record, `close` after the last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.core.functions import Function
from penstock.runtime.operators.operator import OperatorContext
from penstock.runtime.operators.user_errors import user_error


def open_function(function: Any, context: OperatorContext) -> None:
    """Open a user function. Plain callables have no life cycle."""
    if isinstance(function, Function):
        try:
            function.set_runtime_context(context.runtime_context)
            function.open(context.runtime_context)
        except Exception as error:
            raise user_error(context, error, "open") from None


def close_function(function: Any, context: OperatorContext) -> None:
    """Close a user function. Plain callables have no life cycle."""
    if isinstance(function, Function):
        try:
            function.close()
        except Exception as error:
            raise user_error(context, error, "close") from None


def method_of(function: Any, name: str) -> Callable[..., Any]:
    """Return the bound method of a function object, or the plain callable itself.

    >>> method_of(len, "map")("abc")
    3
    """
    method: Callable[..., Any] = getattr(function, name) if isinstance(function, Function) else function
    return method
