"""Sinks without an external system: discard, print, collect in the driver."""

from __future__ import annotations

import itertools
import queue
import sys
from collections.abc import Sequence
from typing import Any

from penstock.common.typeinfo import TypeInformation
from penstock.core.sink import Committer, HandOverWriter, Sink, SinkWriter, WriterInitContext

__all__ = ["CollectSink", "DiscardingSink", "PrintSink"]


class DiscardingSink(Sink):
    """Drops every record."""

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        """Create a writer that does nothing."""
        return _DiscardingWriter()


class _DiscardingWriter(SinkWriter):
    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        pass


class PrintSink(Sink):
    """Prints the records of each committed batch on the driver, in Flink's format: ``identifier:3> value``.

    The number is that of the subtask, if there are several. Records of a declared type are printed as in Flink, others
    as in Python.

    >>> sink = PrintSink("out")
    >>> writer = sink.create_writer(WriterInitContext(subtask_id=1, parallelism=2, checkpoint_id=0))
    >>> writer.write_batch(["a", ("b", 1)], None)
    >>> sink.create_committer().commit(writer.prepare_commit(), checkpoint_id=0)
    out:2> a
    out:2> ('b', 1)
    """

    publishes_at_once = True

    def __init__(
        self,
        sink_identifier: str | None = None,
        to_std_err: bool = False,
        type_info: TypeInformation | None = None,
    ) -> None:
        self._identifier = sink_identifier or ""
        self._to_std_err = to_std_err
        self._type_info = type_info

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        """Create a writer that formats lines of text."""
        parts = [self._identifier] if self._identifier else []
        if context.parallelism > 1:
            parts.append(str(context.subtask_id + 1))
        return _PrintWriter(":".join(parts) + "> " if parts else "", self._type_info)

    def create_committer(self) -> Committer:
        """Create a committer that prints in the driver's process."""
        return _PrintCommitter(to_std_err=self._to_std_err)


class _PrintWriter(SinkWriter):
    def __init__(self, prefix: str, type_info: TypeInformation | None) -> None:
        self._prefix = prefix
        self._format = str if type_info is None else type_info.format
        self._lines: list[str] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        prefix, text = self._prefix, self._format
        self._lines += [prefix + text(value) for value in values]

    def prepare_commit(self) -> list[Any]:
        lines, self._lines = self._lines, []
        return lines


class _PrintCommitter(Committer):
    def __init__(self, *, to_std_err: bool) -> None:
        self._to_std_err = to_std_err
        self._printed = -1

    def commit(self, committables: list[Any], checkpoint_id: int) -> None:
        if checkpoint_id <= self._printed or not committables:
            return  # a repeated commit must not print again
        self._printed = checkpoint_id
        stream = sys.stderr if self._to_std_err else sys.stdout  # looked up here: it may be replaced at any time
        stream.write("\n".join(committables) + "\n")
        stream.flush()


END: Any = type("End", (), {})()
"""Follows the last record in a queue of collected records."""

_queues: dict[str, queue.SimpleQueue[Any]] = {}
_numbers = itertools.count(1)


class CollectSink(Sink):
    """Collects records in the driver, in the order of their commits. ``execute_and_collect`` uses it.

    The queue stays in the driver's process. The sink itself only contains its name.
    """

    def __init__(self) -> None:
        self.name = f"collect-{next(_numbers)}"
        _queues[self.name] = queue.SimpleQueue()

    @property
    def records(self) -> queue.SimpleQueue[Any]:
        """A queue of lists of records, one for each committed batch that has records."""
        return _queues[self.name]

    def release(self) -> None:
        """Discard the queue and drop later records."""
        _queues.pop(self.name, None)

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        """Create a writer that collects the records of a batch."""
        return HandOverWriter()

    def create_committer(self) -> Committer:
        """Create a committer that puts the records into the queue."""
        return _CollectCommitter(self.name)


class _CollectCommitter(Committer):
    def __init__(self, name: str) -> None:
        self._name = name
        self._collected = -1

    def commit(self, committables: list[Any], checkpoint_id: int) -> None:
        records = _queues.get(self._name)
        if records is not None and committables and checkpoint_id > self._collected:
            records.put(list(committables))
        self._collected = max(self._collected, checkpoint_id)
