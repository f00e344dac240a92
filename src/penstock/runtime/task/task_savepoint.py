"""The part of one task in savepoints: write its state, and reject a restore that would lose state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.common.errors import SavepointError
from penstock.runtime.exchange.partitioner import KeyGroupPartitioner
from penstock.runtime.plan.job_vertex import JobVertex
from penstock.runtime.savepoint.capture import SavepointRequest, TaskPart, write_operator
from penstock.runtime.savepoint.manifest import Json
from penstock.runtime.savepoint.restore import edge_name
from penstock.runtime.state.backend import DROPPED
from penstock.runtime.state.operator_state import RAW

if TYPE_CHECKING:
    from penstock.runtime.task.task import StreamTask


def write_task(task: StreamTask, request: SavepointRequest, vertices: Sequence[JobVertex], now: int) -> TaskPart:
    """Write the state of all operators of a task. The batch must be done, and its state must be in the store.

    An error is reported, not raised: a failed savepoint must not disturb the job.
    """
    part = TaskPart(request.request_id, task.vertex.id, task.subtask, event_time=task.clocks.event_time)
    try:
        _write(task, request, part, now)
    except Exception as error:
        part.error = f"subtask {task.subtask} of '{task.vertex.name}' could not write its state: {error}"
    part.inputs = _inputs(task, {vertex.id: vertex for vertex in vertices})
    return part


def _write(task: StreamTask, request: SavepointRequest, part: TaskPart, now: int) -> None:
    for operator, chained in zip(task.chain.operators, task.vertex.operators, strict=True):
        context = operator.context
        part.operators.append(
            write_operator(
                request,
                chained,
                task.subtask,
                context.keyed_backend,
                context.operator_state,
                operator.current_watermark,
                now,
            )
        )


def _inputs(task: StreamTask, vertices: dict[int, JobVertex]) -> list[Json]:
    inputs: list[Json] = []
    for edge in task.edges.values():
        origin, tag, index = edge_name(vertices, edge)
        clocks = {origin: [clock.watermark, clock.idle] for origin, clock in task.clocks.origins(edge.id).items()}
        seen: Json = {"from": origin, "tag": tag, "index": index, "clocks": clocks}
        if isinstance(edge.partitioner, KeyGroupPartitioner) and edge.partitioner.key_type is not None:
            seen["key"] = edge.partitioner.key_type
        inputs.append(seen)
    return inputs


def check_claimed(task: StreamTask, *, ignore: bool) -> None:
    """Check after opening a restored task that every restored state has been requested (rule J06)."""
    for operator in task.chain.operators:
        context = operator.context
        backend = context.keyed_backend
        left: set[str] = set()
        if backend is not None and not operator.registers_lazily:
            kept = {name for name, kind in backend.directory.layout if kind != DROPPED}
            left = kept - backend.registered
            if left and ignore:
                backend.drop_states(left)
        unclaimed = {name for name, mode in context.operator_state.unclaimed().items() if mode != RAW}
        if unclaimed and ignore:
            context.operator_state.drop(unclaimed)
        lost = sorted(left | unclaimed)
        if lost and not ignore:
            raise SavepointError(
                f"the savepoint has state '{lost[0]}' of operator '{context.operator_name}', which the operator does "
                "not request when it opens: request it in open() under its previous name, or allow state that is not "
                "restored (execution.savepoint.ignore-unclaimed-state)"
            )
