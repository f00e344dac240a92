"""Transactional sinks written as one class, in Flink's older style: two-phase commit and write-ahead log.

Both deliver when a checkpoint is complete, and again after a crash until they have succeeded.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from penstock.common.errors import InvalidProgramError
from penstock.core.functions.base import Function
from penstock.core.functions.io import SinkFunction

__all__ = ["CheckpointCommitter", "FileCheckpointCommitter", "GenericWriteAheadSink", "TwoPhaseCommitSinkFunction"]

TXN = TypeVar("TXN")


class TwoPhaseCommitSinkFunction(SinkFunction, Generic[TXN]):
    """One transaction of the outer system per subtask and checkpoint.

    ``begin_transaction``, ``invoke``, ``pre_commit`` and ``abort`` run in the tasks, ``commit`` on the driver, where
    the function is opened, too. A transaction is what ``begin_transaction`` returns, such as a name: it is pickled,
    and must be enough to commit or abort after everything else was lost.

    >>> class Lines(TwoPhaseCommitSinkFunction):
    ...     def begin_transaction(self):
    ...         return []
    ...
    ...     def invoke(self, transaction, value, context):
    ...         transaction.append(value)
    ...
    ...     def pre_commit(self, transaction):
    ...         pass
    ...
    ...     def commit(self, transaction):
    ...         print(transaction)
    ...
    ...     def abort(self, transaction):
    ...         transaction.clear()
    """

    @abstractmethod
    def begin_transaction(self) -> TXN:
        """A new transaction: before the first record, and after every checkpoint."""

    @abstractmethod
    def invoke(self, transaction: TXN, value: Any, context: SinkFunction.Context) -> None:  # type: ignore[override]
        """Writes one record in the transaction."""

    @abstractmethod
    def pre_commit(self, transaction: TXN) -> None:
        """Flushes: nothing is written in this transaction any more, and it must survive a crash from now on."""

    @abstractmethod
    def commit(self, transaction: TXN) -> None:
        """Makes the transaction visible. Must be idempotent: after a failure it is called again."""

    @abstractmethod
    def abort(self, transaction: TXN) -> None:
        """Drops the transaction; may be called twice, also for one that wrote nothing."""

    def recover_and_commit(self, transaction: TXN) -> None:
        """:meth:`commit` for a transaction that may have been committed before a crash."""
        self.commit(transaction)

    def recover_and_abort(self, transaction: TXN) -> None:
        """:meth:`abort` for a transaction that was open when its task was lost."""
        self.abort(transaction)

    def finish_processing(self, transaction: TXN | None) -> None:
        """Called at the end of a bounded input, before the last :meth:`pre_commit`."""
        return


class CheckpointCommitter(ABC):
    """Remembers, outside the job, which checkpoints of a write-ahead sink were delivered.

    It must not be kept in the job's own state: a recovery resets that state, but not what was delivered.
    """

    job_id: str = ""
    operator_id: str = ""

    def set_job_id(self, job_id: str) -> None:
        """Called before :meth:`open`: the id under which commits are found after a restart."""
        self.job_id = job_id

    def set_operator_id(self, operator_id: str) -> None:
        """Called before :meth:`open`: tells the sinks of one job apart."""
        self.operator_id = operator_id

    def create_resource(self) -> None:
        """Makes the table, file or the like that the commits are kept in, if it is missing."""
        return

    def open(self) -> None:
        """Called once, after :meth:`create_resource`."""
        return

    def close(self) -> None:
        """Called once at the end."""
        return

    @abstractmethod
    def commit_checkpoint(self, subtask_idx: int, checkpoint_id: int) -> None:
        """Remembers durably that a subtask's part of a checkpoint, and so all before it, was delivered."""

    @abstractmethod
    def is_checkpoint_committed(self, subtask_idx: int, checkpoint_id: int) -> bool:
        """Whether it was."""


class FileCheckpointCommitter(CheckpointCommitter):
    """Remembers commits in a file of a directory.

    >>> import tempfile
    >>> committer = FileCheckpointCommitter(tempfile.mkdtemp())
    >>> committer.set_job_id("job")
    >>> committer.set_operator_id("sink")
    >>> committer.create_resource()
    >>> committer.open()
    >>> committer.commit_checkpoint(0, 7)
    >>> [committer.is_checkpoint_committed(0, checkpoint) for checkpoint in (6, 7, 8)]
    [True, True, False]
    """

    def __init__(self, base_path: str | os.PathLike[str]) -> None:
        self._base = os.fspath(base_path)
        self._last: dict[str, int] = {}

    @property
    def _file(self) -> Path:
        return Path(self._base) / f"{self.job_id}-{self.operator_id}.json"

    def create_resource(self) -> None:
        Path(self._base).mkdir(parents=True, exist_ok=True)

    def open(self) -> None:
        if self._file.exists():
            self._last = json.loads(self._file.read_text(encoding="utf-8"))

    def commit_checkpoint(self, subtask_idx: int, checkpoint_id: int) -> None:
        self._last[str(subtask_idx)] = max(checkpoint_id, self._last.get(str(subtask_idx), 0))
        temporary = self._file.with_suffix(".tmp")
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(self._last, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._file)

    def is_checkpoint_committed(self, subtask_idx: int, checkpoint_id: int) -> bool:
        return checkpoint_id <= self._last.get(str(subtask_idx), 0)


class GenericWriteAheadSink(Function):
    """Keeps records in a log until their checkpoint is complete, then sends them: for systems without transactions.

    Records wait on the driver, beside the checkpoint, and :meth:`send_values` runs there: this is for results, not
    for floods. After a crash within :meth:`send_values`, or between it and the checkpoint committer, a segment is
    sent again: the records of one segment arrive at least once, everything else exactly once.

    :param committer: records deliveries; without one, every segment that is still in the log is sent again
    :param job_id: the name under which the committer finds its entries; the job's own lasting id if left out

    >>> class ToConsole(GenericWriteAheadSink):
    ...     def send_values(self, values, checkpoint_id, timestamp):
    ...         print(checkpoint_id, values)
    ...         return True
    """

    def __init__(self, committer: CheckpointCommitter | None = None, job_id: str | None = None) -> None:
        if committer is not None and not isinstance(committer, CheckpointCommitter):
            raise InvalidProgramError(f"a write-ahead sink takes a CheckpointCommitter, got {committer!r}")
        self.committer = committer
        self.job_id = job_id

    @abstractmethod
    def send_values(self, values: Sequence[Any], checkpoint_id: int, timestamp: int) -> bool:
        """Writes the records one subtask received in a checkpoint; ``timestamp`` is the checkpoint's.

        Returns whether all are written; if not, the segment stays in the log and is sent again later.
        """
