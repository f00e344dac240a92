"""The driver's side of a step: one message to every task, one answer from each."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace

from penstock.common.errors import JobExecutionError
from penstock.runtime.checkpoint.checkpoint_coordinator import Batch
from penstock.runtime.exchange.frames import BatchHeader, TaskReport
from penstock.runtime.source.source_stage import SourceWork
from penstock.runtime.task.stage import decode_all_reports
from penstock.spark.continuous.checkpoint_files import CheckpointFiles, Manifest
from penstock.spark.continuous.messages import Closed, Done, DriverLinks, Failed, Message, Start, Step, Stop, Written
from penstock.spark.continuous.state_files import StateFile

__all__ = ["ContinuousEngine"]

_LOOK_SECONDS = 0.1
_CLOSING_SECONDS = 10.0


class ContinuousEngine:
    """Runs the steps of one attempt.

    :param look: called from time to time while the driver waits for tasks; raises an error to give up
    :param check: called right before a checkpoint is completed; raises an error if another driver has taken over
    """

    def __init__(
        self,
        links: DriverLinks,
        files: CheckpointFiles,
        look: Callable[[], None] = lambda: None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._check = check
        self._completing: Future[None] | None = None
        self._writer = ThreadPoolExecutor(1, "manifest")
        self._links = links
        self._files = files
        self._look = look
        self._written: dict[int, dict[int, list[StateFile]]] = {}  # by checkpoint and task
        self._active: set[tuple[int, int]] = set()  # source tasks that have read something since the last checkpoint
        self._splits: bytes | None = None  # as the tasks know them
        self._failed = False
        self._ended: set[int] = set()

    def start(self, job: bytes, attempt: str, last: Manifest | None) -> None:
        """Send the job and its state to every task."""
        for task in range(self._links.count):
            files = [] if last is None else last.tasks.get(task, [])
            self._links.send(task, Start(job, self._files.location, attempt, files))

    def run(self, batch: Batch) -> list[TaskReport]:
        """Run a step."""
        works = self._assignments(batch)
        count = self._links.count
        by_task: list[list[SourceWork]] = [[] for _ in range(count)]
        for work in works:
            by_task[work.subtask % count].append(work)
        senders = sum(map(bool, by_task))
        header, splits = self._encoded(batch.header)
        for task, own in enumerate(by_task):
            self._links.send(task, Step(header, splits, own, senders))
        frames: list[bytes] = []
        waiting = set(range(count))
        while waiting:
            message = self._next()
            if isinstance(message, Done) and message.step == batch.header.step:
                waiting.discard(message.task)
                frames += message.reports
        return decode_all_reports(frames)

    def _encoded(self, header: BatchHeader) -> tuple[bytes, bytes | None]:
        """Encode the header and its splits for the tasks. The parts that all tasks share are pickled only once."""
        splits = pickle.dumps(header.splits, 5)
        changed, self._splits = splits != self._splits, splits
        return pickle.dumps(replace(header, splits={}), 5), splits if changed else None

    def _assignments(self, batch: Batch) -> list[SourceWork]:
        """At a checkpoint, source tasks that have worked since the last one report the committables of their sinks."""
        works = list(batch.assignments)
        present = {(work.vertex, work.subtask) for work in works}
        self._active |= present
        if batch.header.checkpoint:
            works += [SourceWork(vertex, subtask, []) for vertex, subtask in sorted(self._active - present)]
            self._active.clear()
        return works

    def is_written(self, batch: Batch) -> bool:
        """Whether the checkpoint is complete. When all tasks have written their state, a thread writes the manifest."""
        while True:
            message = self._links.receive(0)
            if message is None:
                break
            self._note(message)
        self._start_completing(batch)
        return self._completing is not None and self._completing.done()

    def _start_completing(self, batch: Batch) -> bool:
        if self._completing is None and len(self._written.get(batch.end.checkpoint_id, ())) == self._links.count:
            self._completing = self._writer.submit(self._write_manifest, batch)
        return self._completing is not None

    def make_durable(self, batch: Batch) -> None:
        """Wait until all tasks have written their state, then complete the checkpoint."""
        completing = self.wait_until_written(batch)
        self._completing = None
        completing.result()

    def wait_until_written(self, batch: Batch) -> Future[None]:
        """Wait until the checkpoint is complete or has failed."""
        while self._completing is None:
            if not self._start_completing(batch):
                self._next()
        wait([self._completing])
        return self._completing

    def _write_manifest(self, batch: Batch) -> None:
        checkpoint_id = batch.end.checkpoint_id
        self._check()
        self._files.complete(checkpoint_id, batch.end, self._written.pop(checkpoint_id))

    def close(self) -> None:
        """Close the user's functions in all tasks. Raise their first error, unless another error came before."""
        count = self._links.count
        try:
            for task in range(count):
                self._links.send(task, Stop())
            end = time.monotonic() + _CLOSING_SECONDS
            failure: BaseException | None = None
            while len(self._ended) < count and time.monotonic() < end:
                message = self._links.receive(_LOOK_SECONDS)
                if isinstance(message, (Closed, Failed)):
                    self._ended.add(message.task)
                if isinstance(message, Failed):
                    failure = failure or message.error
            if failure is not None and not self._failed:
                raise failure
        except (OSError, JobExecutionError):
            if not self._failed:
                raise
        finally:
            self._writer.shutdown()
            self._links.close()

    def abandon(self) -> None:
        """End all tasks immediately."""
        self._writer.shutdown()
        self._links.close()

    def _next(self) -> Message:
        while True:
            message = self._links.receive(_LOOK_SECONDS)
            if message is not None:
                self._note(message)
                return message
            try:
                self._look()
            except BaseException:
                self._failed = True
                raise

    def _note(self, message: Message) -> None:
        if isinstance(message, Written):
            self._written.setdefault(message.checkpoint_id, {})[message.task] = message.files
        elif isinstance(message, Failed):
            self._failed = True
            self._ended.add(message.task)
            self._check()  # another driver removes files that this driver's tasks need
            raise message.error
