"""Drives one window operator: records in, watermarks, processing time, and a new operator from the stored state."""

import copy
from types import SimpleNamespace

from penstock.common.watermark import MIN_WATERMARK
from penstock.metrics import MetricGroup
from penstock.runtime.operators.operator import JobInfo, OperatorContext
from penstock.runtime.operators.runtime_context import StreamingRuntimeContext
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.keyed_store import KeyedStateFactory
from penstock.runtime.state.operator_state import OperatorStateBackend
from penstock.runtime.state.pages import MemoryPageStore


class Recorder:
    """An output that keeps (value, timestamp) pairs."""

    def __init__(self):
        self.records = []
        self.watermarks = []

    def emit(self, values, timestamps):
        stamps = timestamps if timestamps is not None else [None] * len(values)
        self.records.extend(zip(values, stamps, strict=True))

    def emit_watermark(self, watermark):
        self.watermarks.append((len(self.records), watermark))

    def emit_status(self, *, idle):
        pass

    def take(self):
        records, self.records = self.records, []
        return records


class WindowDriver:
    """One operator with state in memory. `restart` throws the operator away and continues from its stored pages."""

    def __init__(self, operator, *, tags=(), page_bytes=32 * 1024, memory_budget=None, store=None):
        self.template = operator
        self.tags = tags
        self.page_bytes = page_bytes
        self.memory_budget = memory_budget
        self.store = MemoryPageStore() if store is None else store
        self.clock = SimpleNamespace(now=0)
        self.output = Recorder()
        self.sides = {tag: Recorder() for tag in tags}
        self.metrics = MetricGroup()
        self.watermark = MIN_WATERMARK
        self._start(None)

    def _start(self, directory):
        operator = copy.copy(self.template)
        self.backend = KeyedStateBackend(
            "op", "windows", self.store, 128, directory, self.page_bytes, memory_budget=self.memory_budget
        )
        job = JobInfo()
        runtime_context = StreamingRuntimeContext(
            operator_name="windows",
            subtask=0,
            parallelism=1,
            max_parallelism=128,
            job=job,
            metrics=self.metrics,
            states=KeyedStateFactory(self.backend, lambda: self.clock.now),
        )
        self.context = OperatorContext(
            operator_id="op",
            operator_name="windows",
            subtask=0,
            parallelism=1,
            max_parallelism=128,
            clock=self.clock,
            runtime_context=runtime_context,
            metrics=self.metrics,
            keyed_backend=self.backend,
            operator_state=OperatorStateBackend("op", self.store),
            side_outputs=dict(self.sides),
            job=job,
        )
        operator.setup(self.context, self.output)
        operator.open()
        for service in self.context.timer_services:
            service.current_watermark = self.watermark
        self.operator = operator

    def send(self, *records):
        """Records of the first input as (value, timestamp)."""
        self.operator.process_batch([value for value, _ in records], [stamp for _, stamp in records])
        return self

    def send2(self, *records):
        """Records of the second input as (value, timestamp)."""
        self.operator.process_batch2([value for value, _ in records], [stamp for _, stamp in records])
        return self

    def send_bare(self, *values):
        """Records without timestamps."""
        self.operator.process_batch(list(values), None)
        return self

    def advance(self, watermark):
        """The watermark moves on."""
        self.watermark = watermark
        self.operator.process_watermark(watermark)
        return self

    def tick(self, now):
        """The batch ends, and another one begins at this processing time."""
        self.operator.end_batch()
        self.clock.now = now
        self.operator.advance_processing_time(now)
        return self

    def end_batch(self):
        self.operator.end_batch()
        return self

    def commit(self):
        """End of a micro-batch: what changed is written."""
        directory = self.backend.snapshot(self.clock.now)
        for service in self.context.timer_services:
            service.compact()
        return directory

    def restart(self, operator=None):
        """Write the state, forget everything else, and begin again from what was written (with another operator)."""
        directory = copy.deepcopy(self.commit())
        if operator is not None:
            self.template = operator
        self._start(directory)
        return self

    def take(self):
        """(value, timestamp) of all results since the last call."""
        return self.output.take()

    def results(self):
        """Values of all results since the last call."""
        return [value for value, _ in self.output.take()]

    def side(self, tag):
        return self.sides[tag].take()

    @property
    def dropped(self):
        return self.metrics.counter("numLateRecordsDropped").get_count()

    @property
    def stored_keys(self):
        """How many keys have anything in state."""
        directory = copy.deepcopy(self.commit())
        stored = KeyedStateBackend("op", "windows", self.store, 128, directory, self.page_bytes)
        return sum(len(stored.page_at(index).entries) for index in range(directory.page_count))
