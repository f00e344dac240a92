"""Transactional sinks as one class, in Flink's older style: two-phase commit and write-ahead log.

Both commit when a checkpoint completes. After a crash, they retry until the commit succeeds.
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
    """One transaction of the external system per subtask and checkpoint.

    ``begin_transaction``, ``invoke``, ``pre_commit`` and ``abort`` run in the tasks. ``commit`` runs on the driver,
    where the function is opened, too. ``begin_transaction`` returns the transaction, for example a name. It is pickled
    and must be sufficient to commit or abort after all else is lost.

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
        """Begin a transaction: before the first record, and after each checkpoint."""

    @abstractmethod
    def invoke(self, transaction: TXN, value: Any, context: SinkFunction.Context) -> None:  # type: ignore[override]
        """Write one record in the transaction."""

    @abstractmethod
    def pre_commit(self, transaction: TXN) -> None:
        """Flush the transaction. No more records follow, and from now on it must survive a crash."""

    @abstractmethod
    def commit(self, transaction: TXN) -> None:
        """Make the transaction visible. It must be idempotent: after a failure it is called again."""

    @abstractmethod
    def abort(self, transaction: TXN) -> None:
        """Drop the transaction. It may be called twice, and for a transaction without records."""

    def recover_and_commit(self, transaction: TXN) -> None:
        """Commit a transaction that may have been committed before a crash."""
        self.commit(transaction)

    def recover_and_abort(self, transaction: TXN) -> None:
        """Abort a transaction that was open when its task was lost."""
        self.abort(transaction)

    def finish_processing(self, transaction: TXN | None) -> None:
        """Called at the end of a bounded input, before the last :meth:`pre_commit`."""
        return


class CheckpointCommitter(ABC):
    """Records, outside the job, which checkpoints of a write-ahead sink were delivered.

    Do not keep this in the job's state: a recovery resets that state, but not what was delivered.
    """

    job_id: str = ""
    operator_id: str = ""

    def set_job_id(self, job_id: str) -> None:
        """Set the id that identifies commits after a restart. Called before :meth:`open`."""
        self.job_id = job_id

    def set_operator_id(self, operator_id: str) -> None:
        """Set the id that distinguishes the sinks of one job. Called before :meth:`open`."""
        self.operator_id = operator_id

    def create_resource(self) -> None:
        """Create the table, file or other resource that stores the commits, if it is missing."""
        return

    def open(self) -> None:
        """Called once, after :meth:`create_resource`."""
        return

    def close(self) -> None:
        """Called once at the end."""
        return

    @abstractmethod
    def commit_checkpoint(self, subtask_idx: int, checkpoint_id: int) -> None:
        """Record durably that a subtask's part of a checkpoint, and all before it, was delivered."""

    @abstractmethod
    def is_checkpoint_committed(self, subtask_idx: int, checkpoint_id: int) -> bool:
        """Whether a subtask's part of a checkpoint was delivered."""


class FileCheckpointCommitter(CheckpointCommitter):
    """Records commits in a file of a directory.

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
    """For systems without transactions: keeps records in a log until their checkpoint completes, then sends them.

    Records wait on the driver, with the checkpoint, and :meth:`send_values` runs there: use this for results, not for
    large volumes. A crash during :meth:`send_values`, or before the checkpoint committer is called, causes a segment to
    be sent again. The records of that segment arrive at least once, all others exactly once.

    :param committer: records deliveries; without one, every segment that is still in the log is sent again
    :param job_id: the name of the committer's entries; the default is the job's own permanent id

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
        """Write the records that a subtask received in a checkpoint; ``timestamp`` is the checkpoint's.

        Return whether all are written. If not, the segment stays in the log and is sent again later.
        """
