"""Convert an exception in user code into an error that names the operator, the subtask and the record.

The hot loops do no bookkeeping for this. They call their loop variable `value`, and when an exception is raised, the
record is read from the frame that was running.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from penstock.common.errors import JobExecutionError, PenstockError, UserFunctionError, shorten
from penstock.core.cpython import MISSING, local_variable
from penstock.runtime.operators.operator import OperatorContext

_PACKAGE = str(Path(__file__).resolve().parents[2])
UNKNOWN_RECORD = object()


def user_error(context: OperatorContext, error: Exception, method: str, cause: str | None = None) -> PenstockError:
    """Return the error to raise (``raise user_error(...) from None``) for an exception in a user function.

    :param cause: what the function was called for, if it was not a record
    """
    if isinstance(error, PenstockError):
        return error
    if cause is None:
        record = record_in_flight(error.__traceback__)
        cause = "(no record)" if record is UNKNOWN_RECORD else shorten(record)
    return UserFunctionError(
        operator_name=context.operator_name,
        subtask=context.subtask,
        record=cause,
        user_traceback=user_traceback(error) + _advice(error, method),
        method=method,
    )


def _advice(error: Exception, method: str) -> str:
    """Hint for a missing yield, or for a state used as if it were its value."""
    if isinstance(error, TypeError) and "unsupported operand" in str(error) and "ValueState'" in str(error):
        return "read a ValueState with value() and write it with update()\n"
    frames = traceback.walk_tb(error.__traceback__)
    in_our_loop = all(
        is_runtime_frame(frame.f_code.co_filename) for frame, _ in frames
    )  # not in a function that the user function called
    if in_our_loop and isinstance(error, TypeError) and "object is not iterable" in str(error):
        return f"{method} emits what it yields, or the items of the iterable it returns\n"
    return ""


@contextmanager
def source_errors(name: str, doing: str) -> Iterator[None]:
    """Wrap calls of a source: an error names the source and the requested operation."""
    try:
        yield
    except PenstockError:
        raise
    except Exception as error:
        raise JobExecutionError(f"'{name}' failed {doing}\n{user_traceback(error)}") from None


@contextmanager
def exits_are_errors(task_name: str) -> Iterator[None]:
    """Wrap the work of a task: ``sys.exit()`` in a function fails the job instead of ending the process."""
    try:
        yield
    except SystemExit as error:
        raise JobExecutionError(
            f"a function in '{task_name}' called sys.exit({error.code!r}): raise an exception to fail the job\n"
            + user_traceback(error)
        ) from None


def is_runtime_frame(filename: str) -> bool:
    """Whether a frame belongs to the runtime, which users need not see."""
    return filename.startswith(_PACKAGE)


def record_in_flight(tb: TracebackType | None) -> object:
    found: object = UNKNOWN_RECORD
    while tb is not None:
        frame = tb.tb_frame
        if not is_runtime_frame(frame.f_code.co_filename):
            if found is not UNKNOWN_RECORD:
                break  # user code: a `value` after it is an argument of a function that it called
        else:
            value = local_variable(frame, "value")
            found = found if value is MISSING else value
        tb = tb.tb_next
    return found


def user_traceback(error: BaseException) -> str:
    """The traceback without frames of the runtime."""
    summary = traceback.TracebackException.from_exception(error)
    for part in _chain(summary):
        kept = [frame for frame in part.stack if not is_runtime_frame(frame.filename)]
        part.stack = traceback.StackSummary.from_list(kept)
    return "".join(summary.format())


def _chain(summary: traceback.TracebackException) -> list[traceback.TracebackException]:
    parts: list[traceback.TracebackException] = []
    current: traceback.TracebackException | None = summary
    while current is not None:
        parts.append(current)
        current = current.__cause__ or current.__context__
    return parts
