"""A stage hosts all tasks of one level in one channel. Frames for later levels pass through unchanged.

It imports the parts that a stage connects: tasks, frames, state and savepoints.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

from penstock.common.errors import CheckpointError, SerializationError
from penstock.runtime.exchange.frames import (
    HEADER_EDGE,
    REPORT_EDGE,
    BatchHeader,
    Frame,
    TaskReport,
    decode_frame,
    encode_frame,
)
from penstock.runtime.operators.operator import StreamOperator
from penstock.runtime.operators.user_errors import exits_are_errors
from penstock.runtime.plan.job_vertex import ChainedOperator
from penstock.runtime.records.serialization import dumps
from penstock.runtime.savepoint.restore import RestorePlan, TaskRestorer
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.changed_classes import united
from penstock.runtime.state.operator_state import UNION, operator_state_page
from penstock.runtime.state.record_types import RecordNotes
from penstock.runtime.state.snapshots import OperatorSnapshot, SourceStatus, StageSnapshot, TaskSnapshot
from penstock.runtime.task.chain import TaskEnvironment
from penstock.runtime.task.job_spec import JobSpec
from penstock.runtime.task.queries import answer_queries
from penstock.runtime.task.task import StreamTask
from penstock.runtime.task.task_savepoint import check_claimed, write_task

Row = tuple[int, bytes]
"""(channel, frame)"""


class StageChannel:
    """The tasks of one level in one channel. They stay alive between batches."""

    def __init__(
        self, spec: JobSpec, level: int, channel: int, environment: TaskEnvironment, snapshot: StageSnapshot
    ) -> None:
        self._spec = spec
        self._level = level
        self._channel = channel
        self._environment = environment
        self.snapshot = snapshot
        """The small part of the state of all tasks. The engine stores it with the batch."""
        self._tasks: dict[int, StreamTask] = {}
        self.closed = False

    def _open_tasks(self) -> None:
        """Open the tasks with the first batch, when processing time is known."""
        incarnation = self._spec.unions.incarnation
        restored = self._restore() if not self._tasks and self.snapshot.is_empty else None
        if restored is None and incarnation and self.snapshot.incarnation != incarnation:
            self._unite()
        opened = not self._tasks
        for vertex in self._spec.tasks_in(self._level, self._channel):
            if vertex.id not in self._tasks:
                self._tasks[vertex.id] = StreamTask(
                    vertex, self._spec.edges, self._channel, self._environment, self.snapshot.tasks.get(vertex.id)
                )
        if opened and not self._spec.skip_key_check and self.snapshot.code_fingerprint != self._spec.code_fingerprint:
            for backend in self._backends():
                backend.verify_key_shape = True
        if restored is not None:
            for task in self._tasks.values():
                check_claimed(task, ignore=restored.ignore_unclaimed)
                for operator in task.chain.operators:
                    operator.context.operator_state.tell_unions()

    @property
    def operators(self) -> Iterator[StreamOperator]:
        """The operators of all tasks."""
        for task in self._tasks.values():
            yield from task.chain.operators

    def _backends(self) -> Iterator[KeyedStateBackend]:
        for operator in self.operators:
            if operator.context.keyed_backend is not None:
                yield operator.context.keyed_backend

    def _restore(self) -> RestorePlan | None:
        """Plan to load the state of this channel, in the first batch of a job that continues from a savepoint."""
        plan, spec = self._spec.restore, self._spec
        if plan is not None:
            restorer = TaskRestorer(plan, spec.vertices, spec.edges, self._environment.store)
            for vertex in spec.tasks_in(self._level, self._channel):
                self.snapshot.tasks[vertex.id] = restorer.restore(vertex, self._channel)
        return plan

    def _unite(self) -> None:
        """Give every task the union list states of all subtasks, in the first batch after a failure."""
        for vertex in self._spec.tasks_in(self._level, self._channel):
            task = self.snapshot.tasks.get(vertex.id) or TaskSnapshot()
            for chained in vertex.operators:
                states = self._spec.unions.states.get(chained.operator_id)
                snapshot = task.operators.get(chained.operator_id)
                if states and snapshot is not None:
                    self._unite_operator(chained, snapshot, states)

    def _unite_operator(self, chained: ChainedOperator, snapshot: OperatorSnapshot, states: dict[str, Any]) -> None:
        store = self._environment.store
        # The state written here already has the current classes.
        snapshot.adopt_classes(chained.operator_id, chained.name, store)
        notes = RecordNotes(snapshot.records)
        for name, parts in states.items():
            blob = dumps(united(parts, chained.name), f"union list state '{name}'")
            store.put(operator_state_page(chained.operator_id, name), blob)
            notes.note(blob)
            snapshot.operator_state[name] = UNION

    def run(self, frames: Iterable[bytes]) -> Iterator[Row]:
        """Run one batch. Yield the rows for the next stage, or for the driver after the last stage."""
        header, inputs, passing = self._sort(frames)
        self._environment.clock.now = header.now
        self._environment.job.checkpoint_id = header.checkpoint_id
        self._check_age(header)
        self._open_tasks()
        if self._spec.unions.incarnation:
            self.snapshot.incarnation = self._spec.unions.incarnation
        for task in self._tasks.values():
            task.begin_batch(header)
        for task in self._tasks.values():
            with exits_are_errors(task.vertex.name):
                task.process_frames(sorted(inputs.get(task.vertex.id, ())))
                task.end_batch(header)
        reports: list[TaskReport] = []
        for task in self._tasks.values():
            reports.append(self._finish(task, header))
            yield from task.outbox
            task.outbox.clear()
        if header.checkpoint and not any(backend.verify_key_shape for backend in self._backends()):
            self.snapshot.code_fingerprint = self._spec.code_fingerprint
        for frame in passing:
            yield self._channel, frame
        if self._level < self._spec.levels:
            yield self._channel, encode_header(header)
        if reports:
            yield self._channel, encode_reports(reports, f"{self._level}:{self._channel}")
        if header.checkpoint:
            self.snapshot.checkpoint_id = header.checkpoint_id
        if header.closing:
            self.close()

    def _finish(self, task: StreamTask, header: BatchHeader) -> TaskReport:
        if not header.checkpoint:
            return task.finish_step()
        self.snapshot.tasks[task.vertex.id], report = task.finish(header)
        if header.queries:
            report.answers = answer_queries(task, header.queries)
        if header.savepoint is not None:
            report.savepoint = write_task(task, header.savepoint, self._spec.vertices, header.now)
        return report

    def _check_age(self, header: BatchHeader) -> None:
        """Check that the state is from the previous batch: a file of another checkpoint would have a valid checksum."""
        if self._spec.external_sources:  # Spark runs batches of DataFrames that the coordinator did not plan
            return
        last = self.snapshot.checkpoint_id
        if last not in (None, header.checkpoint_id - 1):
            raise CheckpointError(
                f"checkpoint {header.checkpoint_id - 1} has state of checkpoint {last} for channel {self._channel} of "
                f"stage {self._level}: its files were mixed up. Start from a savepoint with an empty checkpoint "
                "directory"
            )

    def _sort(self, frames: Iterable[bytes]) -> tuple[BatchHeader, dict[int, list[Frame]], list[bytes]]:
        header: BatchHeader | None = None
        inputs: dict[int, list[Frame]] = {}
        passing: list[bytes] = []
        for data in frames:
            frame = decode_frame(data)
            if frame.edge == HEADER_EDGE:
                candidate: BatchHeader = pickle.loads(frame.payload)
                if header is None or header.secondary:
                    header = candidate
            elif frame.edge == REPORT_EDGE or frame.target_level > self._level:
                passing.append(data)
            else:
                inputs.setdefault(self._spec.edges[frame.edge].target, []).append(frame)
        if header is None:
            raise RuntimeError(f"stage {self._level} channel {self._channel} got a batch without a header")
        return self._complete(header), inputs, passing

    def _complete(self, header: BatchHeader) -> BatchHeader:
        """Complete a header from a DataFrame, which lacks the status of the other sources: theirs is unchanged."""
        if header.secondary:
            known = self.snapshot.sources
            if known is not None:
                header.splits = {**known.splits, **header.splits}
                header.finished_sources = known.finished
        elif self._spec.external_sources:
            self.snapshot.sources = SourceStatus(header.splits, header.finished_sources)
        return header

    def tidy(self) -> bool:
        """Between two batches: do one piece of pending work, and return whether there was any."""
        return any(task.chain.tidy() for task in self._tasks.values())

    def log_early(self) -> bool:
        """Log changes before a checkpoint is due, if there are many. Return whether this happened."""
        return any(task.chain.log_early() for task in self._tasks.values())

    @property
    def is_behind(self) -> bool:
        """Whether there is so much pending work that batches must wait."""
        return any(task.chain.is_behind for task in self._tasks.values())

    @property
    def keys_in_memory(self) -> int:
        """Number of keys with state in memory."""
        return sum(task.chain.keys_in_memory for task in self._tasks.values())

    def close(self) -> None:
        """Close all tasks."""
        self.closed = True
        for task in self._tasks.values():
            task.close()
        self._tasks.clear()


def encode_header(header: BatchHeader) -> bytes:
    """Encode the header as a frame."""
    return encode_frame(HEADER_EDGE, 0, "", 0, header, "batch header")


def encode_reports(reports: list[TaskReport], origin: str) -> bytes:
    """Encode task reports as a frame."""
    try:
        return encode_frame(REPORT_EDGE, 0, origin, 0, reports, "task report")
    except SerializationError:
        for report in reports:  # only the committables of sinks are user objects
            dumps(report.committables, f"what '{report.name}' sends to the driver")
        raise


def decode_all_reports(frames: Iterable[bytes]) -> list[TaskReport]:
    """Decode the reports in all frames that reached the driver."""
    return [report for data in frames if decode_frame(data).edge == REPORT_EDGE for report in decode_reports(data)]


def decode_reports(data: bytes) -> list[TaskReport]:
    """Decode the reports in a frame that reached the driver."""
    reports: list[TaskReport] = pickle.loads(decode_frame(data).payload)
    return reports
