"""Harnesses: test a single operator.

>>> from penstock.runtime.operators.stateless import MapOperator
>>> harness = OneInputOperatorHarness(MapOperator(lambda x: x + 1))
>>> harness.process_element(1, 1000)
>>> harness.process_watermark(1500)
>>> harness.extract_output()
[(2, 1000), 1500]
"""

from __future__ import annotations

import pickle
from typing import Any

from penstock.common.watermark_strategy import MIN_WATERMARK
from penstock.metrics import MetricGroup
from penstock.runtime.exchange.combined_watermark import CombinedWatermark, PartialWatermark
from penstock.runtime.operators.operator import JobInfo, OperatorContext, StreamOperator
from penstock.runtime.operators.runtime_context import StreamingRuntimeContext
from penstock.runtime.records.batch import Timestamps, Values
from penstock.runtime.records.unhashable_keys import make_keys_hashable
from penstock.runtime.state.keyed_store import KeyedStateFactory
from penstock.runtime.state.operator_state import OperatorStateBackend
from penstock.runtime.state.pages import MemoryPageStore
from penstock.runtime.task.job_spec import BatchClock


class RecordingOutput:
    """Stores what an operator emits: (value, timestamp) pairs, watermarks as ints, idle status as bools."""

    def __init__(self) -> None:
        self.elements: list[Any] = []

    def emit(self, values: Values, timestamps: Timestamps) -> None:
        """Store records."""
        stamps = timestamps if timestamps is not None else [None] * len(values)
        self.elements.extend(zip(values, stamps, strict=True))

    def emit_watermark(self, watermark: int) -> None:
        """Store a watermark."""
        self.elements.append(watermark)

    def emit_status(self, *, idle: bool) -> None:
        """Store the idle status."""
        self.elements.append(idle)

    def take(self) -> list[Any]:
        """Return all elements since the last call."""
        elements, self.elements = self.elements, []
        return elements


class _SideOutputs(dict[str, RecordingOutput]):
    """Creates a recording output for every requested tag."""

    def get(self, key: str, default: Any = None) -> Any:
        return self.setdefault(key, RecordingOutput())


class OneInputOperatorHarness:
    """Drives an operator with one input."""

    def __init__(
        self,
        operator: StreamOperator,
        *,
        subtask: int = 0,
        parallelism: int = 1,
        max_parallelism: int = 128,
        snapshot: bytes | None = None,
        batch_execution: bool = False,
        name: str = "test",
    ) -> None:
        fresh: Any = ({}, None, {}, MIN_WATERMARK, 0, (MIN_WATERMARK, MIN_WATERMARK))
        before = fresh if snapshot is None else pickle.loads(snapshot)
        blobs, self._directory, self._layout, watermark, now, watermarks = before
        self.operator = operator
        self.output = RecordingOutput()
        self.side_outputs = _SideOutputs()
        self.clock = BatchClock(now)
        self.store = MemoryPageStore(blobs)
        self.metrics = MetricGroup()
        self.job = JobInfo()
        self._checkpoint = 0
        self._idle = False
        self._inputs: CombinedWatermark[PartialWatermark] = CombinedWatermark(min(watermarks))
        self._inputs.parts.update(enumerate(map(PartialWatermark, watermarks)))
        backend = states = None
        if operator.keyed:
            backend = operator.keyed_backend("op", name, self.store, max_parallelism, self._directory)
            states = KeyedStateFactory(backend, lambda: self.clock.now)
        runtime_context = StreamingRuntimeContext(
            operator_name=name,
            subtask=subtask,
            parallelism=parallelism,
            max_parallelism=max_parallelism,
            job=self.job,
            metrics=self.metrics,
            states=states,
        )
        self.context = OperatorContext(
            operator_id="op",
            operator_name=name,
            subtask=subtask,
            parallelism=parallelism,
            max_parallelism=max_parallelism,
            clock=self.clock,
            runtime_context=runtime_context,
            metrics=self.metrics,
            keyed_backend=backend,
            operator_state=OperatorStateBackend("op", self.store, self._layout),
            side_outputs=self.side_outputs,  # type: ignore[arg-type]
            job=self.job,
            batch_execution=batch_execution,
        )
        operator.setup(self.context, self.output)
        operator.open()
        operator.restore_watermark(watermark)
        for service in self.context.timer_services:
            service.current_watermark = watermark

    def process_element(self, value: Any, timestamp: int | None = None) -> None:
        """Process one record."""
        self.process_elements([value], None if timestamp is None else [timestamp])

    def process_elements(self, values: Values, timestamps: Timestamps = None) -> None:
        """Process several records in one batch."""
        make_keys_hashable(self.operator, 0, values)
        self.operator.process_batch(list(values), timestamps)

    def process_watermark(self, watermark: int) -> None:
        """Advance the operator's event time."""
        self.operator.process_watermark(watermark)

    def process_status(self, *, idle: bool) -> None:
        """Mark the operator's input as idle or active."""
        if idle is not self._idle:
            self._idle = idle
            self.operator.process_status(idle=idle)

    def set_processing_time(self, now: int) -> None:
        """Advance processing time."""
        self.clock.now = now
        self.operator.advance_processing_time(now)

    def end_batch(self) -> None:
        """End the batch, which does periodic work."""
        self.operator.end_batch()

    def end_input(self) -> None:
        """End the input."""
        self.operator.end_input()

    def extract_output(self) -> list[Any]:
        """Return everything emitted since the last call: (value, timestamp), watermarks, idle flags."""
        return self.output.take()

    def extract_values(self) -> list[Any]:
        """Return only the values of the records emitted since the last call."""
        return [element[0] for element in self.extract_output() if isinstance(element, tuple)]

    def extract_side_output(self, tag: Any) -> list[Any]:
        """Return the records of a side output since the last call."""
        elements = self.side_outputs.get(getattr(tag, "tag_id", tag)).take()
        return [element for element in elements if isinstance(element, tuple)]

    def num_event_time_timers(self) -> int:
        """Return the number of timers of all keys in memory."""
        return sum(service.count_timers()[0] for service in self.context.timer_services)

    def num_processing_time_timers(self) -> int:
        """Return the number of timers of all keys in memory."""
        return sum(service.count_timers()[1] for service in self.context.timer_services)

    def num_keyed_state_entries(self) -> int:
        """Return the number of keys with state or timers in memory."""
        backend = self.context.keyed_backend
        return 0 if backend is None else len(backend.entries)

    def snapshot(self) -> bytes:
        """Return all state. Pass it to a new harness to continue."""
        self._checkpoint += 1
        self.operator.snapshot_state(self._checkpoint)
        backend = self.context.keyed_backend
        directory = backend.snapshot(self.clock.now) if backend is not None else None
        layout = self.context.operator_state.snapshot()
        clocks = self.operator.current_watermark, self.clock.now, self._input_watermarks()
        return pickle.dumps((self.store.blobs, directory, layout, *clocks))

    def _input_watermarks(self) -> tuple[int, ...]:
        return tuple(part.watermark for part in self._inputs.parts.values())

    def close(self) -> None:
        """Close the operator."""
        self.operator.close()


class KeyedOneInputOperatorHarness(OneInputOperatorHarness):
    """Drives a keyed operator with one input. The operator contains its key selector."""


class TwoInputOperatorHarness(OneInputOperatorHarness):
    """Drives an operator with two inputs. Watermarks are combined as in a task."""

    def process_element1(self, value: Any, timestamp: int | None = None) -> None:
        """Process one record of the first input."""
        self.process_element(value, timestamp)

    def process_element2(self, value: Any, timestamp: int | None = None) -> None:
        """Process one record of the second input."""
        make_keys_hashable(self.operator, 1, [value])
        self.operator.process_batch2([value], None if timestamp is None else [timestamp])

    def process_watermark1(self, watermark: int) -> None:
        """Advance the watermark of the first input."""
        self._advance(0, watermark)

    def process_watermark2(self, watermark: int) -> None:
        """Advance the watermark of the second input."""
        self._advance(1, watermark)

    def process_status1(self, *, idle: bool) -> None:
        """Mark the first input as idle or active."""
        self._change_status(0, idle=idle)

    def process_status2(self, *, idle: bool) -> None:
        """Mark the second input as idle or active."""
        self._change_status(1, idle=idle)

    def _change_status(self, index: int, *, idle: bool) -> None:
        self._inputs.parts[index].idle = idle
        self._combine()

    def _advance(self, index: int, watermark: int) -> None:
        self._inputs.parts[index].advance(watermark)
        self._combine()

    def _combine(self) -> None:
        if self._inputs.update():
            self.operator.process_watermark(self._inputs.watermark)
        self.process_status(idle=self._inputs.all_idle)


class KeyedTwoInputOperatorHarness(TwoInputOperatorHarness):
    """Drives a keyed operator with two inputs."""
