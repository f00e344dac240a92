"""The operator chain of a task: sets up operators and connects them to each other and to the exchanges."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.metrics import MetricGroup
from penstock.runtime.exchange.partitioner import KeyGroupPartitioner
from penstock.runtime.operators.black_box import BLACK_BOX, NOTHING
from penstock.runtime.operators.operator import Clock, JobInfo, OperatorContext, Output, StreamOperator
from penstock.runtime.operators.runtime_context import StreamingRuntimeContext
from penstock.runtime.operators.type_check import checked_output
from penstock.runtime.plan.job_vertex import ChainedOperator, JobEdge, JobVertex, key_types_of
from penstock.runtime.records.key_groups import key_group_range
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.change_log import ChangeLog
from penstock.runtime.state.keyed_store import KeyedStateFactory
from penstock.runtime.state.operator_state import OperatorStateBackend
from penstock.runtime.state.pages import PageStore
from penstock.runtime.state.snapshots import OperatorSnapshot
from penstock.runtime.task.outputs import ChainOutput, ExchangeOutput, Send, combine


@dataclass(slots=True)
class TaskEnvironment:
    """The services that an engine provides to its tasks."""

    store: PageStore
    clock: Clock
    job: JobInfo
    batch_execution: bool = False
    memory_budget: int | None = None
    change_log: ChangeLog | None = None
    """Only in engines that store changes of single keys."""


class OperatorChain:
    """All operators of one subtask of one vertex."""

    def __init__(
        self,
        vertex: JobVertex,
        edges: dict[int, JobEdge],
        subtask: int,
        environment: TaskEnvironment,
        send: Send,
        snapshots: dict[str, OperatorSnapshot],
    ) -> None:
        self.vertex = vertex
        self.subtask = subtask
        self.environment = environment
        self.exchanges: list[ExchangeOutput] = []
        self.metrics: dict[str, MetricGroup] = {}
        self.operators: list[StreamOperator] = []
        self._edges = edges
        self._snapshots = snapshots
        outgoing: dict[int, list[tuple[str | None, Output]]] = {}
        for edge_id in vertex.outputs:
            edge = edges[edge_id]
            exchange = ExchangeOutput(edge, subtask, send)
            self.exchanges.append(exchange)
            outgoing.setdefault(edge.source_position, []).append((edge.tag_id, exchange))
        built: dict[int, StreamOperator] = {}
        self.source_output: Output | None = None
        for position in reversed(range(len(vertex.operators))):  # consumers first
            chained = vertex.operators[position]
            consumers = outgoing.get(position, [])
            consumers += [(link.tag_id, ChainOutput(built[link.position])) for link in chained.links]
            main = combine([output for tag, output in consumers if tag is None])
            if chained.operator is None:
                self.source_output = main
                continue
            sides: dict[str, list[Output]] = {}
            for tag, output in consumers:
                if tag is not None:
                    sides.setdefault(tag, []).append(output)
            operator = copy.copy(chained.operator)
            context = self._context(chained, {tag: combine(outs) for tag, outs in sides.items()})
            operator.setup(context, checked_output(main, operator, context))
            built[position] = operator
            self.operators.insert(0, operator)

    def _context(self, chained: ChainedOperator, sides: dict[str, Output]) -> OperatorContext:
        environment, vertex = self.environment, self.vertex
        assert chained.operator is not None
        known = self._snapshots.get(chained.operator_id)
        snapshot = known or OperatorSnapshot()
        snapshot.adopt_classes(chained.operator_id, chained.name, environment.store)
        metrics = self.metrics[chained.operator_id] = MetricGroup()
        backend: KeyedStateBackend | None = None
        states: KeyedStateFactory | None = None
        clock = environment.clock
        if chained.operator.keyed:
            log = environment.change_log
            loaded = [] if log is None else log.pages_of(chained.operator_id)
            snapshot.adopt_classes_of_keyed_state(chained.operator_id, chained.name, environment.store, loaded)
            backend = chained.operator.keyed_backend(
                chained.operator_id,
                chained.name,
                environment.store,
                chained.max_parallelism,
                snapshot.directory,
                memory_budget=environment.memory_budget,
            )
            if log is not None:
                backend.log_to(log)
            if chained is vertex.operators[0]:
                self._check_keys(backend)
            states = KeyedStateFactory(backend, lambda: clock.now)
        runtime_context = self._runtime_context(chained.name, chained.max_parallelism, metrics, states)
        return OperatorContext(
            operator_id=chained.operator_id,
            operator_name=chained.name,
            subtask=self.subtask,
            parallelism=vertex.parallelism,
            max_parallelism=chained.max_parallelism,
            clock=clock,
            runtime_context=runtime_context,
            metrics=metrics,
            keyed_backend=backend,
            operator_state=OperatorStateBackend(
                chained.operator_id,
                environment.store,
                snapshot.operator_state,
                restored=known is not None,
                operator_name=chained.name,
                types=snapshot.operator_types,
                records=snapshot.records,
            ),
            side_outputs=sides,
            job=environment.job,
            batch_execution=environment.batch_execution,
        )

    def _check_keys(self, backend: KeyedStateBackend) -> None:
        """Check the declared types of keys, and set the key groups of this subtask."""
        inputs = [self._edges[edge_id] for edge_id in self.vertex.inputs]
        backend.check_key_types(key_types_of(inputs))
        if all(edge.partitioner.broadcast or isinstance(edge.partitioner, KeyGroupPartitioner) for edge in inputs):
            backend.key_groups = key_group_range(self.subtask, self.vertex.parallelism, backend.max_parallelism)

    def source_runtime_context(self) -> StreamingRuntimeContext:
        """The context of the source at the head of the chain."""
        name = self.vertex.operators[0].name
        metrics = self.metrics[self.vertex.operators[0].operator_id] = MetricGroup()
        return self._runtime_context(name, self.vertex.max_parallelism, metrics, None)

    def _runtime_context(
        self, name: str, max_parallelism: int, metrics: MetricGroup, states: KeyedStateFactory | None
    ) -> StreamingRuntimeContext:
        return StreamingRuntimeContext(
            operator_name=name,
            subtask=self.subtask,
            parallelism=self.vertex.parallelism,
            max_parallelism=max_parallelism,
            job=self.environment.job,
            metrics=metrics,
            states=states,
        )

    def one_by_one(self) -> Iterator[StreamOperator]:
        """All operators in chain order. The black box notes the current one."""
        for operator in self.operators:
            BLACK_BOX.enter(operator.context.note)
            yield operator
        BLACK_BOX.enter(NOTHING)

    def open(self) -> None:
        """Open all operators, last first, so that an operator that emits in `open` finds an open consumer."""
        for operator in reversed(self.operators):
            snapshot = self._snapshots.get(operator.context.operator_id)
            BLACK_BOX.enter(operator.context.note)
            operator.open()
            if snapshot is not None:
                operator.restore_watermark(snapshot.watermark)
                for service in operator.context.timer_services:
                    service.current_watermark = snapshot.watermark

    def snapshot(self, checkpoint_id: int) -> dict[str, OperatorSnapshot]:
        """Write all changed state to the store, and return the small part for the task to keep."""
        result: dict[str, OperatorSnapshot] = {}
        for operator in self.one_by_one():
            operator.snapshot_state(checkpoint_id)
            context = operator.context
            backend = context.keyed_backend
            directory = backend.snapshot(context.processing_time()) if backend is not None else None
            for service in context.timer_services:
                service.compact()
            result[context.operator_id] = OperatorSnapshot(
                directory,
                context.operator_state.snapshot(),
                operator.current_watermark,
                context.operator_state.types,
                context.operator_state.records.known,
            )
        return result

    def tidy(self) -> bool:
        """Between two batches: do one piece of pending work, and return whether there was any."""
        return any(backend.tidy() for backend in self._backends())

    def log_early(self) -> bool:
        """Log changes before a checkpoint is due, if there are many. Return whether this happened."""
        return any(backend.log_early() for backend in self._backends())

    @property
    def is_behind(self) -> bool:
        """Whether there is so much pending work that batches must wait."""
        return any(backend.is_behind for backend in self._backends())

    def _backends(self) -> Iterator[KeyedStateBackend]:
        for operator in self.operators:
            if operator.context.keyed_backend is not None:
                yield operator.context.keyed_backend

    def trust_keys(self) -> None:
        """Skip the key check: the keys of this program's first records match the stored ones, or may match."""
        for operator in self.operators:
            if operator.context.keyed_backend is not None:
                operator.context.keyed_backend.verify_key_shape = False

    def flush(self) -> None:
        """Send all open frames."""
        for exchange in self.exchanges:
            exchange.flush()

    def close(self) -> None:
        """Close all operators in chain order. If one fails, the others are closed all the same."""
        failure: Exception | None = None
        for operator in self.one_by_one():
            try:
                operator.close()
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure

    @property
    def output_watermark(self) -> int | None:
        """The last watermark sent to other tasks, or None."""
        sent = [exchange.watermark for exchange in self.exchanges if exchange.watermark is not None]
        return min(sent, default=None)

    @property
    def state_bytes(self) -> int:
        """Bytes of keyed state when last written."""
        backends = [operator.context.keyed_backend for operator in self.operators]
        return sum(backend.directory.total_bytes for backend in backends if backend is not None)

    @property
    def keys_in_memory(self) -> int:
        """Number of keys with state in memory."""
        return sum(backend.keys_in_memory for backend in self._backends())

    def take_written_bytes(self) -> int:
        """Return the bytes of keyed state written since the last call."""
        written = 0
        for operator in self.operators:
            backend = operator.context.keyed_backend
            if backend is not None:
                written += backend.written_bytes
                backend.written_bytes = 0
        return written

    def metric_values(self) -> tuple[dict[str, Any], set[str]]:
        """Return the current metrics of all operators as `operator name.metric`, and which of them are totals."""
        names = {chained.operator_id: chained.name for chained in self.vertex.operators}
        values: dict[str, Any] = {}
        totals: set[str] = set()
        for operator_id, group in self.metrics.items():
            name = names[operator_id]
            values.update((f"{name}.{metric}", value) for metric, value in group.snapshot().items())
            totals.update(f"{name}.{metric}" for metric in group.total_names())
        return values, totals
