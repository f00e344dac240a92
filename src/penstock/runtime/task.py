"""A stream task: one subtask of one vertex behind an exchange, run batch by batch."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from penstock.common.watermark_strategy import MAX_WATERMARK
from penstock.runtime.chain import OperatorChain, OperatorSnapshot, TaskEnvironment
from penstock.runtime.frames import BatchHeader, Element, Frame, TaskReport
from penstock.runtime.job import JobEdge, JobVertex
from penstock.runtime.sorted_input import SortedKeyedInput
from penstock.runtime.task_metrics import MetricDeltas, collect_committables
from penstock.runtime.unhashable_keys import make_keys_hashable
from penstock.runtime.valve import WatermarkValve

TaskSnapshot = tuple[Any, dict[str, OperatorSnapshot]]


class StreamTask:
    """Input valve, operator chain and outputs of one subtask."""

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
        self.valve = WatermarkValve()
        self._environment = environment
        self.edges = {edge_id: edges[edge_id] for edge_id in vertex.inputs}
        valve_state, operator_states = snapshot if snapshot is not None else (None, {})
        if valve_state is not None:
            self.valve.restore(valve_state)
        self.chain = OperatorChain(vertex, edges, subtask, environment, self._send, operator_states)
        self._head = self.chain.operators[0]
        self._inputs_with_unknown_keys = {0, 1} if self._head.keyed else set()
        self._sorted = SortedKeyedInput(self._head) if environment.batch_execution and self._head.keyed else None
        self._deltas = MetricDeltas(self.chain)
        self._records_in = 0
        self._bytes_in = 0
        self._started = self._busy_seconds = 0.0
        self.chain.open()

    def _send(self, channel: int, frame: bytes) -> None:
        self.outbox.append((channel, frame))

    # -- one batch ----------------------------------------------------------------------------------------------

    def begin_batch(self, header: BatchHeader) -> None:
        """Processing time moves on; then input of this batch may come."""
        self._records_in = 0
        was_idle = self.valve.idle
        self._expect_channels(header)
        if not self.valve.channels:
            self.valve.idle = True  # no split comes this way (yet): nobody must wait for this task
        if self.valve.idle != was_idle:
            self._head.process_status(idle=self.valve.idle)
        for exchange in self.chain.exchanges:
            exchange.begin_batch(header.checkpoint_id)
        for operator in self.chain.operators:
            if header.checkpoint_id > 1:  # that this batch runs means that the one before was committed
                operator.notify_checkpoint_complete(header.checkpoint_id - 1)
            operator.advance_processing_time(header.now)

    def process_frames(self, frames: Iterable[Frame]) -> None:
        """Input in processing order; a batch job reads broadcast inputs to their end first."""
        self._started = time.perf_counter()
        if self._environment.batch_execution:
            frames = sorted(frames, key=lambda frame: not self.edges[frame.edge].partitioner.broadcast)
        for frame in frames:
            edge = self.edges[frame.edge]
            channel = (frame.edge, frame.origin)
            if self._head.per_split:
                self._head.select_split(frame.origin)
            self._bytes_in += len(frame.payload)
            for element in frame.elements():
                self._process_element(element, edge.input_index, channel)

    def _process_element(self, element: Element, input_index: int, channel: tuple[int, str]) -> None:
        if type(element) is tuple:
            self._records_in += len(element[0])
            clock = self.valve.channels.get(channel)
            if clock is not None and clock.idle:
                self._status(channel, idle=False)  # records wake a channel up
            if input_index in self._inputs_with_unknown_keys:
                self._inputs_with_unknown_keys.discard(input_index)
                make_keys_hashable(self._head, input_index, element[0])
            if self._sorted is not None:
                self._sorted.add(input_index, *element)
            elif input_index == 0:
                self._head.process_batch(*element)
            else:
                self._head.process_batch2(*element)
        elif type(element) is int:
            self._watermark(channel, element)
        else:
            self._status(channel, idle=bool(element))

    def _watermark(self, channel: Any, watermark: int) -> None:
        if self._environment.batch_execution and watermark != MAX_WATERMARK:
            return  # a batch job has one watermark, at the end
        advanced = self.valve.input_watermark(channel, watermark)
        if advanced is not None:
            self._advance(advanced)

    def _advance(self, watermark: int) -> None:
        if self._sorted is not None:
            self._sorted.run()
        self._head.process_watermark(watermark)

    def _status(self, channel: Any, *, idle: bool) -> None:
        was_idle = self.valve.idle
        advanced = self.valve.input_status(channel, idle=idle)
        if advanced is not None:
            self._advance(advanced)
        if self.valve.idle != was_idle:
            self._head.process_status(idle=self.valve.idle)

    def _forget(self, channel: Any) -> None:
        was_idle = self.valve.idle
        advanced = self.valve.forget(channel)
        if advanced is not None:
            self._advance(advanced)
        if self.valve.idle != was_idle:
            self._head.process_status(idle=self.valve.idle)

    def end_batch(self, header: BatchHeader) -> None:
        """All frames were processed: split states, periodic work, end of input."""
        self._apply_split_states(header)
        for operator in self.chain.operators:
            operator.end_batch()
        if header.end_of_input:
            if self._sorted is not None:
                self._sorted.run()
            for operator in self.chain.operators:
                operator.end_input()
        self.chain.flush()
        self._busy_seconds = time.perf_counter() - self._started

    def finish(self, header: BatchHeader) -> tuple[TaskSnapshot, TaskReport]:
        """Write state; what to keep and what to tell the driver."""
        started = time.perf_counter()
        committables = collect_committables(self.chain)
        operators = self.chain.snapshot(header.checkpoint_id)
        if self._records_in:
            self.chain.trust_keys()
        wakeups = [operator.next_wakeup() for operator in self.chain.operators]
        report = TaskReport(
            vertex=self.vertex.id,
            subtask=self.subtask,
            name=self.vertex.name,
            watermark=self.valve.last,
            next_wakeup=min((time for time in wakeups if time is not None), default=None),
            committables=committables,
            metrics=self._deltas.take(),
            records_in=self._records_in,
            records_out=sum(exchange.records for exchange in self.chain.exchanges),
            bytes_in=self._bytes_in,
            bytes_out=sum(exchange.bytes for exchange in self.chain.exchanges),
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
        return (self.valve.snapshot(), operators), report

    def close(self) -> None:
        """The job ends."""
        self.chain.close()

    # -- input channels -----------------------------------------------------------------------------------------

    def _expect_channels(self, header: BatchHeader) -> None:
        for edge in self.edges.values():
            splits = header.splits.get(edge.source)
            if splits is None:
                for sender in edge.senders_to(self.subtask):
                    self.valve.expect((edge.id, str(sender)))
                continue
            senders = set(edge.senders_to(self.subtask))
            for split, status in splits.items():
                if status.subtask in senders:
                    self.valve.expect((edge.id, split))
                    if self._head.per_split and not status.finished:
                        self._head.expect_split(split)
                        if status.paused:
                            self._head.pause_split(split)

    def _apply_split_states(self, header: BatchHeader) -> None:
        """Sources have no task that could speak for a silent split; the driver does, behind the batch's records."""
        for edge in self.edges.values():
            splits = header.splits.get(edge.source)
            if splits is None:
                continue
            senders = set(edge.senders_to(self.subtask))
            for split, status in splits.items():
                if status.subtask not in senders:
                    continue
                channel = (edge.id, split)
                if status.finished and edge.source in header.finished_sources:
                    self._status(channel, idle=False)
                    self._watermark(channel, MAX_WATERMARK)
                elif status.finished:  # only the end of the whole source ends event time: other splits may come
                    self._head.finish_split(split)
                    self._forget(channel)
                elif status.idle is not None:
                    self._status(channel, idle=status.idle)
            if edge.source in header.finished_sources and not self._hears_from(splits, senders):
                self._silent_edge_finished(edge)

    def _hears_from(self, splits: dict[str, Any], senders: set[int]) -> bool:
        return any(status.subtask in senders for status in splits.values())

    def _silent_edge_finished(self, edge: JobEdge) -> None:
        """A finished source none of whose splits comes this way (any more) still ends event time."""
        was_idle = self.valve.idle
        self.valve.expect((edge.id, "-"))
        if self.valve.idle != was_idle:
            self._head.process_status(idle=self.valve.idle)  # nobody listens to what an idle task says of time
        self._watermark((edge.id, "-"), MAX_WATERMARK)
