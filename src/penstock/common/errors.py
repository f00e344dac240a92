"""The exceptions of Penstock, all derived from :class:`PenstockError`.

Errors cross process boundaries (a task fails in a worker, the driver reports the error), so each class here survives a
pickle round trip with all its fields.
"""

from __future__ import annotations

import reprlib
from typing import Any

__all__ = [
    "CheckpointError",
    "CheckpointInUseError",
    "EnvironmentStoppedError",
    "FencedError",
    "InvalidProgramError",
    "JobExecutionError",
    "KeySelectorError",
    "MalformedPatternError",
    "MissingTimestampError",
    "PenstockError",
    "RecordFormatError",
    "RetryCommitError",
    "SavepointError",
    "SerializationError",
    "StateAccessError",
    "StorageError",
    "TypeMismatchError",
    "UnsupportedFeatureError",
    "UserFunctionError",
    "shorten",
]


_SHORT = 1 << 63


class _BoundedRepr(reprlib.Repr):
    """A repr whose cost does not grow with the value: a record may be a list of millions of elements."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.maxlevel = 6
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = 50
        self.maxarray = 20
        self.maxstring = self.maxlong = self.maxother = limit

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        # Unlike reprlib's: insertion order, since sorting would compare the user's keys.
        if level <= 0:
            return "{...}" if x else "{}"
        parts: list[str] = []
        for key, value in x.items():
            if len(parts) == self.maxdict:
                parts.append("...")
                break
            parts.append(f"{self.repr1(key, level - 1)}: {self.repr1(value, level - 1)}")
        return "{" + ", ".join(parts) + "}"

    def repr_bytes(self, x: bytes, level: int) -> str:
        return repr(x[: self.maxstring])

    def repr_bytearray(self, x: bytearray, level: int) -> str:
        return repr(x[: self.maxstring])


def shorten(value: object, limit: int = 200) -> str:
    """``repr(value)`` cut to ``limit`` characters; never raises, even if the value's ``__repr__`` does.

    >>> shorten(("sensor_1", 20.5))
    "('sensor_1', 20.5)"
    >>> shorten("x" * 1000, limit=12)
    "'xxx...xxxx'"
    """
    if type(value) is int and -_SHORT < value < _SHORT:  # the fast path for offsets of sources, in every batch
        return str(value)
    try:
        text = _BoundedRepr(limit).repr(value)
    except Exception:
        text = f"<{type(value).__name__} object whose repr fails>"
    return text if len(text) <= limit else text[: max(limit - 3, 0)] + "..."


def _restore(cls: type[PenstockError], args: tuple[Any, ...], fields: dict[str, Any]) -> PenstockError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(fields)
    return error


class PenstockError(Exception):
    """Base class of all errors that Penstock raises."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython and Jupyter show; see :mod:`penstock.common.interactive`."""
        from penstock.common.interactive import one_message

        return one_message(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call ``cls(*args)``, which fails for constructors with other parameters.
        return _restore, (type(self), self.args, self.__dict__.copy())


class UserFunctionError(PenstockError):
    """Raised when a user function fails. The message shows where, without frames of the engine.

    ``record`` is the record's repr, shortened by the caller (:func:`shorten`).

    >>> error = UserFunctionError("map-1", 0, shorten(17), "ZeroDivisionError: division by zero", method="map")
    >>> print(error)
    User function failed in operator 'map-1', subtask 0, method map
      record: 17
    ZeroDivisionError: division by zero
    """

    def __init__(
        self,
        operator_name: str,
        subtask: int | None = None,
        record: str | None = None,
        user_traceback: str = "",
        method: str | None = None,
    ) -> None:
        self.operator_name = operator_name
        self.subtask = subtask
        self.record = record if record is None or len(record) <= 200 else record[:197] + "..."
        self.user_traceback = user_traceback
        self.method = method
        super().__init__(self._message())

    def _message(self) -> str:
        where = f"User function failed in operator {self.operator_name!r}"
        if self.subtask is not None:
            where += f", subtask {self.subtask}"
        if self.method:
            where += f", method {self.method}"
        lines = [where]
        if self.record is not None:
            lines.append(f"  record: {self.record}")
        if self.user_traceback:
            lines.append(self.user_traceback.rstrip())
        return "\n".join(lines)


class InvalidProgramError(PenstockError, ValueError):
    """Raised when the definition of a job is wrong, before the job runs."""


class MalformedPatternError(InvalidProgramError):
    """Raised when a CEP pattern contradicts itself or is incomplete."""


class _OperatorError(PenstockError):
    """Base class of errors in one operator, optionally for one record."""

    def __init__(self, message: str, *, operator_name: str | None = None, record: object = None) -> None:
        self.operator_name = operator_name
        self.record = None if record is None else shorten(record)
        if operator_name is not None:
            message = f"{message} [operator {operator_name!r}]"
        if self.record is not None:
            message = f"{message} [record {self.record}]"
        super().__init__(message)


class StateAccessError(_OperatorError):
    """Raised when keyed state or timers are used without a current key (``open``, ``close``, no ``key_by``)."""


class MissingTimestampError(_OperatorError):
    """Raised when event time needs a timestamp that a record lacks: assign timestamps before the operator."""


class TypeMismatchError(_OperatorError, TypeError):
    """Raised when a value does not fit the declared type of its stream or state."""


class KeySelectorError(_OperatorError):
    """Raised when a key selector fails, or returns an invalid key (``None``, unhashable, unstable)."""


class SerializationError(PenstockError):
    """Raised when a function or value cannot be pickled. The message names the operator and the member at fault."""

    def __init__(self, message: str, *, operator_name: str | None = None, member: str | None = None) -> None:
        self.operator_name = operator_name
        self.member = member
        if operator_name is not None:
            message = f"{message} [operator {operator_name!r}]"
        if member is not None:
            message = f"{message} [member {member!r}: create it in open() instead, or leave it out in __getstate__]"
        super().__init__(message)


class SavepointError(PenstockError):
    """Raised when a savepoint cannot be written, is damaged, or does not fit the job to restore from it."""


class CheckpointError(PenstockError):
    """Raised when a checkpoint file is damaged or missing. A restart does not help, so the job ends at once."""


class CheckpointInUseError(PenstockError):
    """Raised when another driver runs a job in the checkpoint directory. The message says how to take over."""


class FencedError(PenstockError):
    """Raised when another driver takes over the job's checkpoint directory. This driver stops and commits nothing."""


class EnvironmentStoppedError(PenstockError):
    """Raised when the execution environment is closed; create a new one."""


class JobExecutionError(PenstockError):
    """Raised when a job fails for a reason other than a user function."""

    def __init__(self, message: str, *, job_id: str | None = None) -> None:
        self.job_id = job_id
        super().__init__(message)


class StorageError(JobExecutionError):
    """Raised when a directory cannot be written: the disk is full, or the directory is missing or read-only."""


class JobCancelledError(JobExecutionError):
    """Raised when a job is cancelled by its client, by Ctrl-C or by ``penstock cancel``."""


class RetryCommitError(PenstockError):
    """Raised by a committer to request a retry: ``commit`` is called again later with the same arguments."""


class RecordFormatError(PenstockError, ValueError):
    """Raised when a message cannot be decoded to a record, or a record not encoded. Contains the message."""

    def __init__(self, reason: str, *, message: object = None) -> None:
        self.reason = reason
        self.message = None if message is None else shorten(message)
        super().__init__(reason if self.message is None else f"{reason} [message {self.message}]")


class UnsupportedFeatureError(PenstockError, NotImplementedError):
    """Raised when a name of Flink has no meaning or no implementation here."""
