"""Errors of the batch loops: which record was being processed, and whether the key selector failed."""

from __future__ import annotations

from collections.abc import Iterator
from operator import length_hint
from typing import Any

from penstock.common.errors import KeySelectorError, PenstockError, UserFunctionError, shorten
from penstock.runtime.exchange.partitioner import key_error
from penstock.runtime.operators.operator import OperatorContext
from penstock.runtime.operators.user_errors import user_error, user_traceback
from penstock.runtime.records.batch import KeySelect, Values


def batch_error(
    context: OperatorContext, error: Exception, method: str, values: Values, rest: Iterator[Any]
) -> PenstockError:
    """Return the error for a comprehension over `rest`, an iterator of the list `values`.

    A comprehension does not expose its loop variable. The rest of the iterator tells which record was being processed.
    """
    if isinstance(error, PenstockError):
        return error
    return UserFunctionError(
        operator_name=context.operator_name,
        subtask=context.subtask,
        record=shorten(values[len(values) - length_hint(rest) - 1]),
        user_traceback=user_traceback(error),
        method=method,
    )


def keyed_error(
    context: OperatorContext, error: Exception, method: str, select: KeySelect, value: Any
) -> PenstockError:
    """Return the error for a loop that calls a key selector and a user function for each record.

    The loop does not note which of the two is running. The selector is called again, and blamed if it fails again.
    """
    if isinstance(error, KeySelectorError):
        return key_error(error, value, context.operator_name)
    if isinstance(error, PenstockError):
        return error
    try:
        hash(select(value))
    except Exception as again:
        return key_error(again, value, context.operator_name)
    return user_error(context, error, method)
