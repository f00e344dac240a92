"""The source stage: readers and the stateless operators chained to them. It keeps no state between batches.

Every split has its own clock: records travel under the name of their split, and the receiver takes the minimum over the
splits (rule 3.6).
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from penstock.common.errors import shorten
from penstock.core.source import SourceReader, SourceSplit
from penstock.runtime.exchange.frames import BatchHeader, SplitProgress, TaskReport
from penstock.runtime.operators.black_box import BLACK_BOX, NOTHING, note_of
from penstock.runtime.operators.timestamps import aligned_operator
from penstock.runtime.operators.user_errors import exits_are_errors, source_errors
from penstock.runtime.plan.job_vertex import JobVertex
from penstock.runtime.records.serialization import dumps
from penstock.runtime.task.chain import OperatorChain, TaskEnvironment
from penstock.runtime.task.job_spec import JobSpec
from penstock.runtime.task.stage import Row, encode_header, encode_reports
from penstock.runtime.task.task_metrics import MetricDeltas, collect_committables

_ROWS_AHEAD = 8

FRAME_SPLIT = "0"
"""The partitions of a DataFrame have no meaning across batches: all its records belong to one split."""
_FRAMES_PER_PARTITION = 100_000
_LAST_FRAMES = 2_000_000_000


@dataclass(slots=True)
class SplitRange:
    """The range of a split that one source task reads in a batch."""

    split: SourceSplit
    start: Any
    end: Any
    readers: int = 1
    """The number of tasks that share the range. Each reads a part of its records."""


@dataclass(slots=True)
class SourceWork:
    """The work of one subtask of a source vertex in a batch."""

    vertex: int
    subtask: int
    ranges: list[SplitRange]


class SourceTask:
    """One subtask of a source vertex."""

    def __init__(self, spec: JobSpec, vertex: JobVertex, subtask: int, environment: TaskEnvironment) -> None:
        self.vertex = vertex
        self.subtask = subtask
        self.outbox: list[Row] = []
        self.chain = OperatorChain(vertex, spec.edges, subtask, environment, self._send, {})
        self.name = vertex.operators[0].name
        self._note = note_of(self.name, subtask, vertex.parallelism)
        self._deltas = MetricDeltas(self.chain)
        self._environment = environment
        self._reader: SourceReader | None = None
        # A source function that has marked itself idle becomes active with its next record or watermark.
        self._speaks_for_itself = getattr(vertex.operators[0].source, "makes_watermarks", False)
        self._aligned = aligned_operator(self.chain.operators)
        self._splits: dict[tuple[int, str], SplitProgress] = {}
        self.chain.open()

    def _send(self, channel: int, frame: bytes) -> None:
        self.outbox.append((channel, frame))

    def run(self, work: SourceWork, header: BatchHeader) -> Iterator[Row]:
        """Read all ranges. Yield frames as they fill."""
        output = self.chain.source_output
        assert output is not None
        records = 0
        started = time.perf_counter()
        self._begin_batch(header)
        BLACK_BOX.enter(self._note)
        for portion in work.ranges:
            for exchange in self.chain.exchanges:
                exchange.restart(portion.split.split_id)
            for operator in self.chain.operators:
                operator.restart()
            for batch in self._read(portion):
                if type(batch) is int:
                    output.emit_watermark(batch)
                elif type(batch) is bool:
                    output.emit_status(idle=batch)
                elif batch[0]:
                    records += len(batch[0])
                    output.emit(*batch)
                if len(self.outbox) >= _ROWS_AHEAD:
                    yield from self._drain()
            for operator in self.chain.one_by_one():
                operator.end_batch()
            BLACK_BOX.enter(self._note)
            self.chain.flush()
            self._note_progress(portion.split.split_id)
            yield from self._drain()
        if header.end_of_input:
            for operator in self.chain.one_by_one():
                operator.end_input()
            self.chain.flush()
            yield from self._drain()
        BLACK_BOX.enter(NOTHING)
        yield 0, encode_reports([self._report(records, started, header)], f"0:{self.vertex.id}:{self.subtask}")

    def run_frame(self, batches: Iterator[Any], partition: int, header: BatchHeader) -> Iterator[Row]:
        """Read one partition of a DataFrame. Its watermark waits for the records of all partitions of the batch."""
        output = self.chain.source_output
        assert output is not None
        started = time.perf_counter()
        self._begin_batch(header)
        for exchange in self.chain.exchanges:
            exchange.restart(FRAME_SPLIT, partition * _FRAMES_PER_PARTITION)
        for operator in self.chain.operators:
            operator.restart()
        records = 0
        BLACK_BOX.enter(self._note)
        for values in self.vertex.operators[0].source.read(batches):
            if values:
                records += len(values)
                output.emit(values, None)
            if len(self.outbox) >= _ROWS_AHEAD:
                yield from self._drain()
        self.chain.flush()
        for exchange in self.chain.exchanges:
            exchange.restart(FRAME_SPLIT, _LAST_FRAMES + partition)
        for operator in self.chain.one_by_one():
            operator.end_batch()
        self.chain.flush()
        yield from self._drain()
        yield 0, encode_reports([self._report(records, started, header)], f"0:{self.vertex.id}:{partition}")

    def _note_progress(self, split_id: str) -> None:
        """Report the progress of a split if its source is aligned with others."""
        if self._aligned is not None:
            self._splits[self.vertex.id, split_id] = SplitProgress(self._aligned.emitted)

    def _begin_batch(self, header: BatchHeader) -> None:
        for exchange in self.chain.exchanges:
            exchange.begin_batch(header.number)

    def _drain(self) -> Iterator[Row]:
        rows, self.outbox[:] = list(self.outbox), []
        yield from rows

    def _read(self, portion: SplitRange) -> Iterator[Any]:
        if self._reader is None:
            self._reader = self._open_reader()
        where = f"split '{portion.split.split_id}' from {shorten(portion.start)} to {shorten(portion.end)}"
        with source_errors(self.name, f"reading {where}"):
            batches = self._reader.read(portion.split, portion.start, portion.end)
        awake = False  # as far as is known here: the previous range may have ended idle
        while True:
            # Not around the yield: errors of the caller are not reading errors.
            with source_errors(self.name, f"reading {where}"):
                batch = next(batches, None)
            if batch is None:
                return
            speaks = bool(batch[0]) if isinstance(batch, tuple) else batch is not True
            if self._speaks_for_itself and speaks and not awake:
                yield False
            awake = (awake or speaks) and batch is not True
            yield batch

    def _open_reader(self) -> SourceReader:
        with source_errors(self.name, "opening a reader"):
            reader: SourceReader = self.vertex.operators[0].source.create_reader()
            reader.open(self.chain.source_runtime_context())
        return reader

    def _report(self, records: int, started: float, header: BatchHeader) -> TaskReport:
        exchanges = self.chain.exchanges
        sent, sent_bytes = (
            sum(exchange.records for exchange in exchanges),
            sum(exchange.bytes for exchange in exchanges),
        )
        for exchange in exchanges:
            exchange.records = exchange.bytes = 0
        splits, self._splits = self._splits, {}
        return TaskReport(
            vertex=self.vertex.id,
            subtask=self.subtask,
            name=self.vertex.name,
            watermark=-(2**63),
            next_wakeup=None,
            committables=collect_committables(self.chain, at_once=not header.checkpoint),
            metrics=self._deltas.take(),
            records_in=records,
            records_out=sent,
            bytes_out=sent_bytes,
            busy_seconds=time.perf_counter() - started,
            splits=splits,
            output_watermark=self.chain.output_watermark,
        )

    def close(self) -> None:
        """Close the task: the job ends, or the worker drops the task."""
        reader, self._reader = self._reader, None
        try:
            if reader is not None:
                with source_errors(self.name, "closing its reader"):
                    reader.close()
        finally:
            self.chain.close()


class SourceStage:
    """The source tasks of one worker. They stay alive between batches."""

    def __init__(self, spec: JobSpec, environment: TaskEnvironment) -> None:
        self._spec = spec
        self._environment = environment
        self._tasks: dict[tuple[int, int], SourceTask] = {}
        self._operators: dict[int, bytes] = {}

    def run(self, assignments: list[SourceWork], header: BatchHeader, *, first: bool) -> Iterator[Row]:
        """Run one portion of a batch. The first portion also sends the header to every channel."""
        self._environment.clock.now = header.now
        self._environment.job.checkpoint_id = header.checkpoint_id
        if first and self._spec.levels:
            data = encode_header(header)
            for channel in range(self._spec.channels):
                yield channel, data
        for work in assignments:
            task = self._task(work)
            try:
                with exits_are_errors(task.vertex.name):
                    yield from task.run(work, header)
            except BaseException:
                self._abandon(work)
                raise
            if header.closing:
                task.close()
                del self._tasks[(work.vertex, work.subtask)]

    def run_frame(self, vertex_id: int, partition: int, header: BatchHeader, batches: Iterator[Any]) -> Iterator[Row]:
        """Read one partition of a DataFrame. It also sends a header, because the engine may run a batch only for it."""
        self._environment.clock.now = header.now
        self._environment.job.checkpoint_id = header.checkpoint_id
        if self._spec.levels:
            data = encode_header(header)
            for channel in range(self._spec.channels):
                yield channel, data
        work = SourceWork(vertex_id, 0, [])
        try:
            yield from self._task(work).run_frame(batches, partition, header)
        except BaseException:
            self._abandon(work)
            raise

    def _abandon(self, work: SourceWork) -> None:
        """Close a failed task. It receives no further batch, but its functions must be closed."""
        task = self._tasks.pop((work.vertex, work.subtask), None)
        if task is not None:
            with suppress(Exception):  # the first error counts
                task.close()

    def close(self) -> None:
        """Close all open tasks."""
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values():
            task.close()

    def _task(self, work: SourceWork) -> SourceTask:
        key = (work.vertex, work.subtask)
        task = self._tasks.get(key)
        if task is None:
            vertex = self._own_vertex(self._spec.vertices[work.vertex])
            task = self._tasks[key] = SourceTask(self._spec, vertex, work.subtask, self._environment)
        return task

    def _own_vertex(self, vertex: JobVertex) -> JobVertex:
        """Return the vertex with separate function objects for the task: subtasks share a worker, but nothing else."""
        if vertex.parallelism == 1:
            return vertex
        if vertex.id not in self._operators:  # before any of them is opened
            self._operators[vertex.id] = dumps(vertex.operators, f"the operators of '{vertex.name}'")
        return replace(vertex, operators=pickle.loads(self._operators[vertex.id]))
