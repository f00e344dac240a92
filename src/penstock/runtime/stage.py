"""A stage hosts all tasks of one level in one channel; frames for later levels pass through untouched."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.common.errors import CheckpointError, SerializationError
from penstock.runtime.chain import OperatorSnapshot, TaskEnvironment
from penstock.runtime.frames import HEADER_EDGE, REPORT_EDGE, BatchHeader, Frame, TaskReport, decode_frame, encode_frame
from penstock.runtime.job import ChainedOperator, JobEdge, JobVertex
from penstock.runtime.log_settings import LogSettings
from penstock.runtime.operator import JobInfo
from penstock.runtime.queries import answer_queries
from penstock.runtime.savepoint.restore import RestorePlan, TaskRestorer
from penstock.runtime.savepoint.task_savepoint import check_claimed, write_task
from penstock.runtime.serialization import dumps
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.changed_classes import united
from penstock.runtime.state.operator_state import UNION, operator_state_page
from penstock.runtime.state.record_types import RecordNotes
from penstock.runtime.task import StreamTask
from penstock.runtime.union_states import Unions
from penstock.runtime.user_errors import exits_are_errors

Row = tuple[int, bytes]
"""(channel, frame)"""


_LAST_HEADER = -1
_LIFE = -2
_CODE = -3
_CHECKPOINT = -4


@dataclass(slots=True)
class JobSpec:
    """The picklable job every worker gets: the job graph without anything only the driver needs."""

    info: JobInfo
    vertices: list[JobVertex]
    edges: dict[int, JobEdge]
    channels: int
    levels: int
    batch_execution: bool = False
    memory_budget: int | None = None
    external_sources: frozenset[int] = frozenset()  # source vertices fed by DataFrames
    restore: RestorePlan | None = None  # a savepoint that tasks without state of their own start from
    unions: Unions = field(default_factory=dict)  # union list states that tasks with state of their own start from
    life: str = ""  # tasks do so once in each life of the job
    code: str = ""  # of the user's functions: if it has changed, the keys of the first records are compared with state
    trusts_keys: bool = False  # not even then
    logging: LogSettings | None = None  # of the driver's process

    def tasks_in(self, level: int, channel: int) -> list[JobVertex]:
        """The vertices of a level that have a subtask in a channel."""
        return [vertex for vertex in self.vertices if vertex.level == level and channel < vertex.parallelism]


class BatchClock:
    """Processing time: constant within a batch."""

    __slots__ = ("now",)

    def __init__(self, now: int = 0) -> None:
        self.now = now


class StageChannel:
    """The tasks of one level in one channel, alive between batches."""

    def __init__(
        self, spec: JobSpec, level: int, channel: int, environment: TaskEnvironment, snapshots: dict[int, Any]
    ) -> None:
        self._spec = spec
        self._level = level
        self._channel = channel
        self._environment = environment
        self._snapshots = snapshots
        self._tasks: dict[int, StreamTask] = {}
        self.closed = False

    def _open_tasks(self) -> None:
        """Tasks open with the first batch, when processing time is known."""
        restored = self._restore() if not self._tasks and self._snapshots.keys() <= {_LAST_HEADER} else None
        if restored is None and self._spec.life and self._snapshots.get(_LIFE) != self._spec.life:
            self._unite()
        opened = not self._tasks
        for vertex in self._spec.tasks_in(self._level, self._channel):
            if vertex.id not in self._tasks:
                self._tasks[vertex.id] = StreamTask(
                    vertex, self._spec.edges, self._channel, self._environment, self._snapshots.get(vertex.id)
                )
        if opened and not self._spec.trusts_keys and self._snapshots.get(_CODE) != self._spec.code:
            for backend in self._backends():
                backend.wary = True
        if restored is not None:
            for task in self._tasks.values():
                check_claimed(task, ignore=restored.ignore_unclaimed)
                for operator in task.chain.operators:
                    operator.context.operator_state.tell_unions()

    def _backends(self) -> Iterator[KeyedStateBackend]:
        for task in self._tasks.values():
            for operator in task.chain.operators:
                if operator.context.keyed_backend is not None:
                    yield operator.context.keyed_backend

    def _restore(self) -> RestorePlan | None:
        """The first batch of a job that continues from a savepoint: load what belongs to the tasks of this channel."""
        plan, spec = self._spec.restore, self._spec
        if plan is not None:
            restorer = TaskRestorer(plan, spec.vertices, spec.edges, self._environment.store)
            for vertex in spec.tasks_in(self._level, self._channel):
                self._snapshots[vertex.id] = restorer.restore(vertex, self._channel)
        return plan

    def _unite(self) -> None:
        """The first batch after a failure: union list state is that of all subtasks together."""
        for vertex in self._spec.tasks_in(self._level, self._channel):
            snapshots: tuple[Any, dict[str, OperatorSnapshot]] = self._snapshots.get(vertex.id) or (None, {})
            for chained in vertex.operators:
                unions = self._spec.unions.get(chained.operator_id)
                snapshot = snapshots[1].get(chained.operator_id)
                if unions and snapshot is not None:
                    self._unite_operator(chained, snapshot.complete(), unions)

    def _unite_operator(self, chained: ChainedOperator, snapshot: OperatorSnapshot, unions: dict[str, Any]) -> None:
        store = self._environment.store
        snapshot.adopt_classes(chained.operator_id, chained.name, store)  # what is written here has them already
        notes = RecordNotes(snapshot.records)
        for name, parts in unions.items():
            blob = dumps(united(parts, chained.name), f"union list state '{name}'")
            store.put(operator_state_page(chained.operator_id, name), blob)
            notes.note(blob)
            snapshot.operator_state[name] = UNION

    def run(self, frames: Iterable[bytes]) -> Iterator[Row]:
        """One batch: yields the rows for the next stage, or for the driver behind the last one."""
        header, inputs, passing = self._sort(frames)
        self._environment.clock.now = header.now
        self._environment.job.checkpoint_id = header.checkpoint_id
        self._check_age(header)
        self._open_tasks()
        if self._spec.life:
            self._snapshots[_LIFE] = self._spec.life
        for task in self._tasks.values():
            task.begin_batch(header)
        for task in self._tasks.values():
            with exits_are_errors(task.vertex.name):
                task.process_frames(sorted(inputs.get(task.vertex.id, ())))
                task.end_batch(header)
        reports: list[TaskReport] = []
        for task in self._tasks.values():
            snapshot, report = task.finish(header)
            self._snapshots[task.vertex.id] = snapshot
            if header.queries:
                report.answers = answer_queries(task, header.queries)
            if header.savepoint is not None:
                report.savepoint = write_task(task, header.savepoint, self._spec.vertices, header.now)
            reports.append(report)
            yield from task.outbox
            task.outbox.clear()
        if not any(backend.wary for backend in self._backends()):
            self._snapshots[_CODE] = self._spec.code
        for frame in passing:
            yield self._channel, frame
        if self._level < self._spec.levels:
            yield self._channel, encode_header(header)
        if reports:
            yield self._channel, encode_reports(reports, f"{self._level}:{self._channel}")
        self._snapshots[_CHECKPOINT] = header.checkpoint_id
        if header.closing:
            self.close()

    def _check_age(self, header: BatchHeader) -> None:
        """State is that of the batch before: files that were mixed up may be whole and hold that of another one."""
        last = self._snapshots.get(_CHECKPOINT, header.checkpoint_id - 1)
        if last != header.checkpoint_id - 1 and not self._spec.external_sources:  # these have batches without a number
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
        """A header from a DataFrame alone knows nothing of the other sources: they are as they were."""
        if header.secondary:
            known = self._snapshots.get(_LAST_HEADER)
            if known is not None:
                splits, finished = known
                header.splits = {**splits, **header.splits}
                header.finished_sources = finished
        elif self._spec.external_sources:
            self._snapshots[_LAST_HEADER] = (header.splits, header.finished_sources)
        return header

    @property
    def snapshots(self) -> dict[int, Any]:
        """The small part of the state of all tasks, to be kept with the batch."""
        return self._snapshots

    def close(self) -> None:
        """Close all tasks."""
        self.closed = True
        for task in self._tasks.values():
            task.close()
        self._tasks.clear()


def encode_header(header: BatchHeader) -> bytes:
    """The header as a frame."""
    return encode_frame(HEADER_EDGE, 0, "", 0, header, "batch header")


def encode_reports(reports: list[TaskReport], origin: str) -> bytes:
    """Task reports as a frame."""
    try:
        return encode_frame(REPORT_EDGE, 0, origin, 0, reports, "task report")
    except SerializationError:
        for report in reports:  # nothing but what sinks send is the user's
            dumps(report.committables, f"what '{report.name}' sends to the driver")
        raise


def decode_reports(data: bytes) -> list[TaskReport]:
    """The reports in a frame that reached the driver."""
    reports: list[TaskReport] = pickle.loads(decode_frame(data).payload)
    return reports
