"""Sources that push: a thread on the driver receives elements, and batches read them from the receive log.

The records of a batch travel to the reading task with the plan of the batch, so tasks never need the driver's files.

The offset of a receiver is a position in its log. For a receiver with its own state (a resettable source function), the
offset also has a snapshot taken at exactly this position: `[position, number of the snapshot, state]`. The receiver
then restarts from there, and later elements in the log are dropped.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.common.errors import JobExecutionError, PenstockError
from penstock.core.source import SourceReader, SourceSplit, SplitEnumerator
from penstock.runtime.operators.user_errors import exits_are_errors, user_traceback
from penstock.runtime.source.receive_log import CAPACITY, ReceiveLog

RECORD, WATERMARK, IDLE = 0, 1, 2
Received = tuple[int, Any, int | None]
"""(RECORD, value, timestamp or None), (WATERMARK, None, ms), (IDLE, None, None)"""

_STOP_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class ReceiverSnapshot:
    """A receiver's own state at a position of its log."""

    number: int
    state: str | None


class Receiver(ABC):
    """Receives in its own thread until it is done or cancelled."""

    resettable = False
    """Whether it continues from its own snapshot. Elements in the log after that are received again."""

    @abstractmethod
    def run(self, log: ReceiveLog, stop: threading.Event, restored: ReceiverSnapshot | None) -> None:
        """Put elements into the log. Return soon after `stop` is set."""

    def seal(self, log: ReceiveLog, start: int, limit: int, number: int) -> tuple[int, ReceiverSnapshot | None]:
        """Make received elements durable. Return the new position, and a snapshot if there is one."""
        return log.seal(start, limit), None

    def committed(self, number: int) -> None:
        """Handle that everything up to the snapshot with this number is fully processed."""
        return

    def cancel(self) -> None:
        """Ask `run` to return. Called from another thread."""
        return

    def close(self) -> None:
        """Close the receiver. Called once, after `run` returned and its elements are processed, or the job ended."""
        return


class SimpleReceiver(Receiver):
    """Runs a function with two parameters: the log to put elements into, and an event that is set when it must stop."""

    def __init__(self, receive: Callable[[ReceiveLog, threading.Event], None]) -> None:
        self._receive = receive

    def run(self, log: ReceiveLog, stop: threading.Event, restored: ReceiverSnapshot | None) -> None:
        self._receive(log, stop)


@dataclass(frozen=True)
class ReceivedSplit(SourceSplit):
    """A receiver's log. For a task, it has the elements to read."""

    elements: list[Received] = field(default_factory=list, compare=False)

    def part(self, index: int, count: int, start_offset: Any) -> ReceivedSplit:
        """Return every n-th element. Watermarks and idleness concern all parts."""
        elements = [
            element
            for position, element in enumerate(self.elements, _parts(start_offset)[0])
            if position % count == index or element[0] != RECORD
        ]
        return ReceivedSplit(f"{self.split_id}/{index}", elements)


class ReceiverEnumerator(SplitEnumerator):
    """Runs receivers, and plans the reading of their logs."""

    def __init__(self, name: str, receivers: int, make_receiver: Callable[[int], Receiver]) -> None:
        self._name = name
        self._make_receiver = make_receiver
        self._splits = [ReceivedSplit(str(index)) for index in range(receivers)]
        self._logs: list[ReceiveLog] = []
        self._receivers: dict[int, Receiver] = {}
        self._threads: list[threading.Thread] = []
        self._done: list[bool] = [False] * receivers
        self._committed: dict[int, int] = {}
        self._stop = threading.Event()
        self._failure: PenstockError | None = None
        self._directory: str | None = None
        self._wake: Callable[[], None] | None = None

    def use_steps(self, wake: Callable[[], None]) -> None:
        """Append to the logs instead of writing a file per batch."""
        self._wake = wake

    def use_directory(self, directory: str) -> None:
        """Keep the logs in this directory, so that a restarted job finds them."""
        self._directory = directory

    def start(self) -> None:
        """Open the logs. Receivers start with the first planned batch, when their position is known."""
        for index in range(len(self._splits)):
            directory = None if self._directory is None else str(Path(self._directory) / str(index))
            self._logs.append(ReceiveLog(directory, arrived=self._wake))

    def _start_receiver(self, index: int, offset: Any) -> Receiver:
        receiver = self._receivers[index] = self._make_receiver(index)
        position, restored = _parts(offset)
        if receiver.resettable:
            self._logs[index].discard_after(position)
        thread = threading.Thread(
            target=self._run, args=(index, receiver, restored), name=f"{self._name}-{index}", daemon=True
        )
        self._threads.append(thread)
        thread.start()
        return receiver

    def _run(self, index: int, receiver: Receiver, restored: ReceiverSnapshot | None) -> None:
        try:
            with exits_are_errors(self._name):  # in a thread, an exit would look like the end of the stream
                receiver.run(self._logs[index], self._stop, restored)
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
        """Make the received elements durable."""
        index = int(split.split_id)
        log = self._logs[index]
        log.capacity = max(1, min(CAPACITY, max_records))
        receiver = self._receivers.get(index) or self._start_receiver(index, start_offset)
        if self._failure is not None and not self._stop.is_set():
            raise self._failure
        position, before = _parts(start_offset)
        end, snapshot = receiver.seal(log, position, max_records, 1 if before is None else before.number + 1)
        if snapshot is None:
            return start_offset if end == position else end
        return [end, snapshot.number, snapshot.state]

    def is_finished(self, split: SourceSplit, offset: Any) -> bool:
        """Whether the receiver has returned and all its elements have been read."""
        index = int(split.split_id)
        done = self._done[index]  # before reading the log: a receiver adds its last element before it is done
        log = self._logs[index]
        return done and not log.pending and _parts(offset)[0] >= log.end and self._failure is None

    def prepare(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> SourceSplit:
        """Return the split with the elements of a range."""
        assert isinstance(split, ReceivedSplit)
        start, end = _parts(start_offset)[0], _parts(end_offset)[0]
        return replace(split, elements=self._logs[int(split.split_id)].read(start, end))

    def commit(self, offsets: Any) -> None:
        """Remove processed elements, and notify the receivers."""
        for split_id, offset in offsets.items():
            index, (position, snapshot) = int(split_id), _parts(offset)
            self._logs[index].truncate(position)
            receiver = self._receivers.get(index)
            if snapshot is not None and receiver is not None and snapshot.number > self._committed.get(index, 0):
                self._committed[index] = snapshot.number
                receiver.committed(snapshot.number)

    def close(self) -> None:
        """Stop the receivers."""
        self._stop.set()
        for log in self._logs:
            log.release()
        with ExitStack() as stack:  # all of the following runs, last line first, even if some of it fails
            for log in self._logs:
                stack.callback(log.close)
            for receiver in self._receivers.values():
                stack.callback(receiver.close)
            for thread in self._threads:
                stack.callback(thread.join, _STOP_SECONDS)
            for index, receiver in self._receivers.items():
                if not self._done[index]:
                    stack.callback(receiver.cancel)


def _parts(offset: Any) -> tuple[int, ReceiverSnapshot | None]:
    if isinstance(offset, int):
        return offset, None
    position, number, state = offset
    return position, ReceiverSnapshot(number, state)


class ReceivedReader(SourceReader):
    """Reads the elements that came with the plan. Watermarks and idleness keep their place between the records."""

    def read(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> Iterator[Any]:
        """Yield runs of records, and the watermarks and idle marks between them."""
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
