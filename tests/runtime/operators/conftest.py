"""A tiny driver: one operator, an output that notes everything, a clock set by hand."""

from types import SimpleNamespace

import pytest

from penstock.common.time import Time
from penstock.core.functions import AsyncFunctionDescriptor, AsyncRetryStrategy
from penstock.metrics import MetricGroup
from penstock.runtime.operators.async_wait import AsyncWaitOperator
from penstock.runtime.operators.operator import JobInfo, OperatorContext
from penstock.runtime.operators.runtime_context import StreamingRuntimeContext
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.keyed_store import KeyedStateFactory
from penstock.runtime.state.operator_state import OperatorStateBackend
from penstock.runtime.state.pages import MemoryPageStore


class RecordingOutput:
    """Notes records as (value, timestamp), watermarks as ints and statuses as strings, in order."""

    def __init__(self):
        self.events = []

    def emit(self, values, timestamps):
        stamps = timestamps if timestamps is not None else [None] * len(values)
        assert len(stamps) == len(values)
        self.events.extend(zip(values, stamps, strict=True))

    def emit_watermark(self, watermark):
        self.events.append(watermark)

    def emit_status(self, *, idle):
        self.events.append("idle" if idle else "active")

    @property
    def values(self):
        return [event[0] for event in self.events if isinstance(event, tuple)]

    def take(self):
        events, self.events = self.events, []
        return events


class Driver:
    """Sets an operator up, drives it, and can snapshot and restore it."""

    def __init__(self, operator, *, sides=(), batch=False, store=None, snapshot=None, now=0):
        self.operator = operator
        self.output = RecordingOutput()
        self.sides = {tag: RecordingOutput() for tag in sides}
        self.clock = SimpleNamespace(now=now)
        self.store = store or MemoryPageStore()
        directory, layout = snapshot or (None, None)
        job, metrics = JobInfo(), MetricGroup()
        backend = states = None
        if operator.keyed:
            backend = KeyedStateBackend("op", "my operator", self.store, 128, directory)
            states = KeyedStateFactory(backend, lambda: self.clock.now)
        runtime_context = StreamingRuntimeContext(
            operator_name="my operator",
            subtask=0,
            parallelism=1,
            max_parallelism=128,
            job=job,
            metrics=metrics,
            states=states,
        )
        self.context = OperatorContext(
            operator_id="op",
            operator_name="my operator",
            subtask=0,
            parallelism=1,
            max_parallelism=128,
            clock=self.clock,
            runtime_context=runtime_context,
            metrics=metrics,
            keyed_backend=backend,
            operator_state=OperatorStateBackend("op", self.store, layout),
            side_outputs=dict(self.sides),
            job=job,
            batch_execution=batch,
        )
        operator.setup(self.context, self.output)
        operator.open()

    def send(self, *values, at=None):
        """Records of the first input; `at` is one timestamp for all, or a list."""
        self.operator.process_batch(list(values), self._stamps(values, at))
        return self.output.values

    def send2(self, *values, at=None):
        """Records of the second input."""
        self.operator.process_batch2(list(values), self._stamps(values, at))
        return self.output.values

    def _stamps(self, values, at):
        if at is None or isinstance(at, list):
            return at
        return [at] * len(values)

    def watermark(self, watermark):
        self.operator.process_watermark(watermark)

    def advance(self, now):
        self.clock.now = now
        self.operator.advance_processing_time(now)

    def end_batch(self, now=None):
        if now is not None:
            self.clock.now = now
        self.operator.end_batch()

    def restored(self, operator):
        """A new driver that continues from a snapshot of this one."""
        self.operator.snapshot_state(1)
        backend = self.context.keyed_backend
        directory = backend.snapshot(self.clock.now) if backend is not None else None
        layout = self.context.operator_state.snapshot()
        return Driver(operator, sides=self.sides, store=self.store, snapshot=(directory, layout), now=self.clock.now)


@pytest.fixture
def drive():
    return Driver


@pytest.fixture
def run_async(drive):
    """Drive an AsyncWaitOperator; its event loop is closed after the test."""
    drivers = []

    def start(function, *, mode=AsyncFunctionDescriptor.OutputMode.ORDERED, capacity=100, timeout=60_000, retries=None):
        retries = retries or AsyncRetryStrategy.no_restart()
        descriptor = AsyncFunctionDescriptor(function, Time.milliseconds(timeout), capacity, retries, mode)
        drivers.append(drive(AsyncWaitOperator(descriptor, timeout)))
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.operator.close()
