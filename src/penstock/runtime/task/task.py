"""A stream task: one subtask of one vertex after an exchange, run batch by batch."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from penstock.common.watermark_strategy import MAX_WATERMARK
from penstock.runtime.exchange.frames import BatchHeader, Element, Frame, SplitStatus, TaskReport
from penstock.runtime.operators.black_box import BLACK_BOX
from penstock.runtime.plan.job_vertex import JobEdge, JobVertex
from penstock.runtime.records.unhashable_keys import make_keys_hashable
from penstock.runtime.state.snapshots import TaskSnapshot
from penstock.runtime.task.chain import OperatorChain, TaskEnvironment
from penstock.runtime.task.input_clocks import Events, InputClocks
from penstock.runtime.task.sorted_input import SortedKeyedInput
from penstock.runtime.task.task_metrics import MetricDeltas, collect_committables


class StreamTask:
    """The input clocks, the operator chain and the outputs of one subtask."""

    def __init__(
        self,
        vertex: JobVertex,
        edges: dict[int, JobEdge],
        subtask: int,
        environment: TaskEnvironment,
        snapshot: TaskSnapshot | None = None,
    ) -> None:
        self.vertex = vertex
        self.subtask = subtask
        self.outbox: list[tuple[int, bytes]] = []
        self._environment = environment
        self.edges = {edge_id: edges[edge_id] for edge_id in vertex.inputs}
        snapshot = snapshot or TaskSnapshot()
        self.chain = OperatorChain(vertex, edges, subtask, environment, self._send, snapshot.operators)
        self._head = self.chain.operators[0]
        self.clocks = InputClocks(self.edges, subtask, united=self._head.unites_inputs)
        if snapshot.clocks is not None:
            self.clocks.restore(snapshot.clocks)
        sorts = environment.batch_execution and self._head.keyed and not self._head.columnar
        self._sorted = SortedKeyedInput(self._head) if sorts else None
        self._inputs_with_unknown_keys = {0, 1} if self._head.keyed and not self._head.columnar else set()
        self._deltas = MetricDeltas(self.chain)
        self._records_in = 0
        self._bytes_in = 0
        self._started = self._busy_seconds = 0.0
        self.chain.open()

    def _send(self, channel: int, frame: bytes) -> None:
        self.outbox.append((channel, frame))

    # -- one batch ----------------------------------------------------------------------------------------------

    def begin_batch(self, header: BatchHeader) -> None:
        """Advance processing time. After that, input of this batch may come."""
        self._records_in = 0
        self._apply(self.clocks.begin_batch(header))
        self._expect_splits(header)
        for exchange in self.chain.exchanges:
            exchange.begin_batch(header.number)
        for operator in self.chain.one_by_one():
            if header.completed_checkpoint > 0:  # a batch starts after the previous one was committed
                operator.notify_checkpoint_complete(header.completed_checkpoint)
            operator.advance_processing_time(header.now)

    def process_frames(self, frames: Iterable[Frame]) -> None:
        """Process input in processing order. A batch job reads broadcast inputs to their end first."""
        self._started = time.perf_counter()
        BLACK_BOX.enter(self._head.context.note)
        if self._environment.batch_execution:
            frames = sorted(frames, key=lambda frame: not self.edges[frame.edge].partitioner.broadcast)
        for frame in frames:
            edge = self.edges[frame.edge]
            if self._head.per_split:
                self._head.select_split(frame.origin)
            self._bytes_in += len(frame.payload)
            for element in frame.elements():
                self._process_element(element, edge, frame.origin)

    def _process_element(self, element: Element, edge: JobEdge, origin: str) -> None:
        if type(element) is tuple:
            self._records_in += len(element[0])
            self.clocks.record(edge.id, origin)
            if edge.input_index in self._inputs_with_unknown_keys:
                self._inputs_with_unknown_keys.discard(edge.input_index)
                make_keys_hashable(self._head, edge.input_index, element[0])
            if self._sorted is not None:
                self._sorted.add(edge.input_index, *element)
            elif edge.input_index == 0:
                self._head.process_batch(*element)
            else:
                self._head.process_batch2(*element)
        elif type(element) is int:
            if not self._environment.batch_execution or element == MAX_WATERMARK:  # a batch job has one watermark
                self._apply(self.clocks.watermark(edge.id, origin, element))
        else:
            self._apply(self.clocks.status(edge.id, origin, idle=bool(element)))

    def _apply(self, events: Events) -> None:
        """Apply changes of event time and of idleness."""
        for event in events:
            BLACK_BOX.enter(self._head.context.note)
            if type(event) is bool:
                self._head.process_status(idle=event)
            else:
                if self._sorted is not None:
                    self._sorted.run()
                self._head.process_watermark(event)

    def end_batch(self, header: BatchHeader) -> None:
        """Finish the input: update split states, do periodic work, and end the input."""
        self._finish_splits(header)
        self._apply(self.clocks.end_batch(header))
        for operator in self.chain.one_by_one():
            operator.end_batch()
        if header.end_of_input:
            if self._sorted is not None:
                BLACK_BOX.enter(self._head.context.note)
                self._sorted.run()
            for operator in self.chain.one_by_one():
                operator.end_input()
        self.chain.flush()
        self._busy_seconds = time.perf_counter() - self._started

    def finish(self, header: BatchHeader) -> tuple[TaskSnapshot, TaskReport]:
        """Write state. Return the snapshot to keep and the report for the driver."""
        started = time.perf_counter()
        committables = collect_committables(self.chain)
        operators = self.chain.snapshot(header.checkpoint_id)
        if self._records_in:
            self.chain.trust_keys()
        return TaskSnapshot(self.clocks.snapshot(), operators), self._report(committables, started)

    def finish_step(self) -> TaskReport:
        """Finish a batch without a checkpoint, and return the report for the driver. State stays in memory."""
        if self._records_in:
            self.chain.trust_keys()
        return self._report(collect_committables(self.chain, at_once=True), time.perf_counter())

    def _report(self, committables: list[tuple[str, list[Any]]], started: float) -> TaskReport:
        wakeups = [operator.next_wakeup() for operator in self.chain.operators]
        report = TaskReport(
            vertex=self.vertex.id,
            subtask=self.subtask,
            name=self.vertex.name,
            watermark=self.clocks.event_time,
            next_wakeup=min((time for time in wakeups if time is not None), default=None),
            committables=committables,
            metrics=self._deltas.take(),
            records_in=self._records_in,
            records_out=sum(exchange.records for exchange in self.chain.exchanges),
            bytes_in=self._bytes_in,
            bytes_out=sum(exchange.bytes for exchange in self.chain.exchanges),
            output_watermark=self.chain.output_watermark,
            busy_seconds=self._busy_seconds + time.perf_counter() - started,
            state_bytes=self.chain.state_bytes,
            written_bytes=self.chain.take_written_bytes(),
            unions={
                (operator.context.operator_id, name): elements
                for operator in self.chain.operators
                for name, elements in operator.context.operator_state.changed_unions.items()
            },
            splits={
                (edge.source, split): progress
                for edge in self.edges.values()
                for split, progress in self._head.split_progress().items()
            },
        )
        self._bytes_in = 0
        for exchange in self.chain.exchanges:
            exchange.records = exchange.bytes = 0
        return report

    def close(self) -> None:
        """Close the task: the job ends."""
        self.chain.close()

    # -- source splits ------------------------------------------------------------------------------------------

    def _expect_splits(self, header: BatchHeader) -> None:
        """Announce the splits to a head operator that has a generator per split."""
        for split, status in self._splits(header):
            if not status.finished:
                self._head.expect_split(split)
                if status.paused:
                    self._head.pause_split(split)

    def _finish_splits(self, header: BatchHeader) -> None:
        for split, status in self._splits(header):
            if status.finished:
                self._head.finish_split(split)

    def _splits(self, header: BatchHeader) -> Iterator[tuple[str, SplitStatus]]:
        """The splits that send records to this task, from sources that have not finished."""
        if not self._head.per_split:
            return
        for edge in self.edges.values():
            senders = set(edge.senders_to(self.subtask))
            for split, status in header.splits.get(edge.source, {}).items():
                if status.subtask in senders and edge.source not in header.finished_sources:
                    yield split, status
