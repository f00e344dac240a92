"""Outputs: the connections of an operator to chained operators and to exchanges."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from penstock.runtime.exchange.frames import Element, encode_frame
from penstock.runtime.operators.black_box import BLACK_BOX
from penstock.runtime.operators.operator import DISCARD, Output, StreamOperator
from penstock.runtime.plan.job_vertex import JobEdge
from penstock.runtime.records.batch import Timestamps, Values
from penstock.runtime.records.isolation import copy_batch
from penstock.runtime.records.row_batches import pack_rows

FRAME_RECORDS = 16_384


class ChainOutput:
    """Calls the next operator of the chain."""

    __slots__ = ("_note", "_operator", "_process")

    def __init__(self, operator: StreamOperator) -> None:
        self._operator = operator
        self._process = operator.process_batch
        self._note = operator.context.note

    def emit(self, values: Values, timestamps: Timestamps) -> None:
        """Pass the batch on."""
        before = BLACK_BOX.enter(self._note)
        self._process(values, timestamps)
        BLACK_BOX.enter(before)

    def emit_watermark(self, watermark: int) -> None:
        """Pass the watermark on."""
        before = BLACK_BOX.enter(self._note)
        self._operator.process_watermark(watermark)
        BLACK_BOX.enter(before)

    def emit_status(self, *, idle: bool) -> None:
        """Pass the status on."""
        self._operator.process_status(idle=idle)


class FanOutOutput:
    """Several consumers. Each receives its own copy of mutable records."""

    __slots__ = ("_outputs",)

    def __init__(self, outputs: list[Output]) -> None:
        self._outputs = outputs

    def emit(self, values: Values, timestamps: Timestamps) -> None:
        """Pass the batch to every consumer."""
        copies = [copy_batch(values) for _ in self._outputs[1:]]
        self._outputs[0].emit(values, timestamps)
        for output, copied in zip(self._outputs[1:], copies, strict=True):
            output.emit(copied, None if timestamps is None else list(timestamps))

    def emit_watermark(self, watermark: int) -> None:
        """Pass the watermark to every consumer."""
        for output in self._outputs:
            output.emit_watermark(watermark)

    def emit_status(self, *, idle: bool) -> None:
        """Pass the status to every consumer."""
        for output in self._outputs:
            output.emit_status(idle=idle)


def combine(outputs: list[Output]) -> Output:
    """Return one output for any number of consumers."""
    if not outputs:
        return DISCARD
    return outputs[0] if len(outputs) == 1 else FanOutOutput(outputs)


Send = Callable[[int, bytes], None]
"""(channel, frame)"""


class ExchangeOutput:
    """Partitions records and packs them into frames, one open frame per receiving channel."""

    __slots__ = (
        "_channels",
        "_columns",
        "_counts",
        "_edge",
        "_elements",
        "_label",
        "_partitioner",
        "_send",
        "_sequence",
        "bytes",
        "origin",
        "records",
        "watermark",
    )

    def __init__(self, edge: JobEdge, sender: int, send: Send) -> None:
        self.watermark: int | None = None
        self._edge = edge
        self._send = send
        self._partitioner = copy.copy(edge.partitioner)
        self._partitioner.setup(sender, edge.senders, edge.receivers, edge.max_parallelism, edge.target_name)
        self._channels = edge.reachable(sender)
        self._elements: list[list[Element]] = [[] for _ in range(edge.receivers)]
        self._counts = [0] * edge.receivers
        self._columns: Any = None  # the type of column batches, if records are in columns
        self._sequence = 0
        self.origin = str(sender)
        self._label = f"a record on its way to '{edge.target_name}'"
        self.records = 0
        self.bytes = 0

    def emit(self, values: Values, timestamps: Timestamps) -> None:
        """Partition a batch, and add the records to the open frames."""
        self.records += len(values)
        if type(values) is not list:
            self._columns = type(values)
        for channel, part, stamps in self._partitioner.route(values, timestamps):
            self._elements[channel].append((pack_rows(part), stamps))
            self._counts[channel] += len(part)
            if self._counts[channel] >= FRAME_RECORDS:
                self._ship(channel)

    def emit_watermark(self, watermark: int) -> None:
        """Send a watermark to every receiver, after its records."""
        self.watermark = watermark
        for channel in self._channels:
            self._elements[channel].append(watermark)

    def emit_status(self, *, idle: bool) -> None:
        """Send the status to every receiver."""
        for channel in self._channels:
            self._elements[channel].append(idle)

    def flush(self) -> None:
        """Send all open frames."""
        for channel in self._channels:
            if self._elements[channel]:
                self._ship(channel)

    def begin_batch(self, batch: int) -> None:
        """Begin a new batch, which restarts the numbering of frames."""
        self._partitioner.begin_batch(batch)
        self._sequence = 0

    def restart(self, origin: str, first_sequence: int = 0) -> None:
        """Begin a new split in the source stage. Its frames have its name and a new numbering."""
        self._sequence = first_sequence
        self.origin = origin

    def _ship(self, channel: int) -> None:
        elements, self._elements[channel] = self._elements[channel], []
        self._counts[channel] = 0
        if self._columns is not None and len(elements) > 1:
            elements = self._columns.merge_elements(elements)
        edge = self._edge
        frame = encode_frame(edge.id, edge.target_level, self.origin, self._sequence, elements, self._label)
        self._send(channel, frame)
        self.bytes += len(frame)
        self._sequence += 1
