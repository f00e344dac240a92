"""Sources that are pushed, not pulled: a thread on the driver receives, batches read from the receive log.

The records of a batch travel to the reading task with the plan of the batch, so no task ever needs the driver's files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.common.errors import JobExecutionError, PenstockError
from penstock.core.source import SourceReader, SourceSplit, SplitEnumerator
from penstock.runtime.receive_log import ReceiveLog
from penstock.runtime.user_errors import user_traceback

RECORD, WATERMARK, IDLE = 0, 1, 2
Received = tuple[int, Any, int | None]
"""(RECORD, value, timestamp or None), (WATERMARK, None, ms), (IDLE, None, None)"""

Receive = Callable[[int, ReceiveLog, threading.Event], None]
"""Runs in a thread: (receiver index, where to put elements, set when it is time to stop)."""


@dataclass(frozen=True)
class ReceivedSplit(SourceSplit):
    """A receiver's log; for a task, with the elements it is to read."""

    elements: list[Received] = field(default_factory=list, compare=False)

    def part(self, index: int, count: int, start_offset: Any) -> ReceivedSplit:
        """Every n-th element; watermarks and idleness concern all parts."""
        elements = [
            element
            for position, element in enumerate(self.elements, start_offset)
            if position % count == index or element[0] != RECORD
        ]
        return ReceivedSplit(f"{self.split_id}/{index}", elements)


class ReceiverEnumerator(SplitEnumerator):
    """Runs receivers and plans their logs."""

    def __init__(self, name: str, receivers: int, receive: Receive) -> None:
        self._name = name
        self._receive = receive
        self._splits = [ReceivedSplit(str(index)) for index in range(receivers)]
        self._logs: list[ReceiveLog] = []
        self._done: list[bool] = [False] * receivers
        self._stop = threading.Event()
        self._failure: PenstockError | None = None
        self._directory: str | None = None
        self.on_data: Callable[[], None] | None = None

    def use_directory(self, directory: str) -> None:
        """Keep the logs there, so that a restarted job finds them."""
        self._directory = directory

    def start(self) -> None:
        """Start the receivers."""
        for index in range(len(self._splits)):
            directory = None if self._directory is None else str(Path(self._directory) / str(index))
            log = ReceiveLog(directory)
            self._logs.append(log)
            threading.Thread(target=self._run, args=(index, log), name=f"{self._name}-{index}", daemon=True).start()

    def _run(self, index: int, log: ReceiveLog) -> None:
        try:
            self._receive(index, log, self._stop)
        except PenstockError as error:
            self._failure = error
        except Exception as error:
            self._failure = JobExecutionError(f"source '{self._name}' failed\n{user_traceback(error)}")
        finally:
            self._done[index] = True

    def discover_splits(self) -> Sequence[SourceSplit]:
        """One split per receiver."""
        return self._splits

    def latest_offset(self, split: SourceSplit, start_offset: Any, max_records: int) -> Any:
        """Make durable what has arrived."""
        if self._failure is not None and not self._stop.is_set():
            raise self._failure
        return self._logs[int(split.split_id)].seal(start_offset, max_records)

    def is_finished(self, split: SourceSplit, offset: Any) -> bool:
        """Whether the receiver returned and all it received is read."""
        index = int(split.split_id)
        done = self._done[index]  # before looking at the log: a receiver puts its last element before it is done
        log = self._logs[index]
        return done and not log.pending and offset >= log.end and self._failure is None

    def prepare(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> SourceSplit:
        """The split with the elements of a range."""
        assert isinstance(split, ReceivedSplit)
        return replace(split, elements=self._logs[int(split.split_id)].read(start_offset, end_offset))

    def commit(self, offsets: Any) -> None:
        """Forget what is processed."""
        for split_id, offset in offsets.items():
            self._logs[int(split_id)].truncate(offset)

    def close(self) -> None:
        """Stop the receivers."""
        self._stop.set()
        for log in self._logs:
            log.close()


class ReceivedReader(SourceReader):
    """Reads what came with the plan; watermarks and idleness keep their place between the records."""

    def read(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> Iterator[Any]:
        """Runs of records, and what lies between them."""
        assert isinstance(split, ReceivedSplit)
        values: list[Any] = []
        stamps: list[Any] = []
        for kind, value, stamp in split.elements:
            if kind == RECORD:
                values.append(value)
                stamps.append(stamp)
                continue
            yield values, (stamps if stamps.count(None) < len(stamps) else None)
            values, stamps = [], []
            yield stamp if kind == WATERMARK else True
        yield values, (stamps if stamps.count(None) < len(stamps) else None)
