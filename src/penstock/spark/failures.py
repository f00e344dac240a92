"""Errors on their way from a worker through the JVM to the driver, and back into Python exceptions."""

from __future__ import annotations

import base64
import pickle
import re
from typing import NoReturn

from penstock.common.errors import JobExecutionError, PenstockError
from penstock.runtime.user_errors import user_traceback

_MARK = "PENSTOCK-ERROR:"
_PATTERN = re.compile(_MARK + r"([A-Za-z0-9+/=]+):")


class TaskFailureError(Exception):
    """Carries an encoded error; its text survives the JVM."""


def raise_encoded(error: BaseException) -> NoReturn:
    """Leave a worker with an error that the driver can decode."""
    if not isinstance(error, PenstockError):
        error = JobExecutionError(f"a task failed: {type(error).__name__}: {error}\n{user_traceback(error)}")
    try:
        data = pickle.dumps(error)
    except Exception:
        data = pickle.dumps(JobExecutionError(str(error)))
    raise TaskFailureError(f"{_MARK}{base64.b64encode(data).decode()}: {error}") from None


def decode_failure(text: str) -> PenstockError:
    """The error in the text of a Spark exception."""
    found = _PATTERN.search(text)
    if found:
        error = pickle.loads(base64.b64decode(found.group(1)))
        if isinstance(error, PenstockError):
            return error
    return JobExecutionError(_essence(text))


def _essence(text: str) -> str:
    """What a reader needs of a JVM error: messages and Python frames, no Java frames."""
    lines = [line for line in text.splitlines() if line.strip() and not re.match(r"\s*(at |\.\.\. \d+ more)", line)]
    return "\n".join(lines[:60]) or "the Spark query failed"
