"""Operations that take time: a POST starts one and returns its id, a GET returns its status."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.cluster.rest.jobs import Json, failure_cause
from penstock.cluster.rest.responses import RestError

if TYPE_CHECKING:
    from penstock.common.completable_future import CompletableFuture

__all__ = ["OperationStore"]

_KEPT_SECONDS = 300.0  # rest.async.store-duration in Flink
_MOST_RUNNING = 16


@dataclass(slots=True)
class _Operation:
    future: CompletableFuture[Any]
    result: Callable[[Any], Json]
    completed: float | None = None


class OperationStore:
    """Operations by (target, trigger id). A repeated trigger id denotes the same operation."""

    def __init__(self, kept_seconds: float = _KEPT_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept_seconds = kept_seconds
        self._clock = clock
        self._operations: dict[tuple[str, str], _Operation] = {}
        self._lock = threading.Lock()
        self.on_complete: Callable[[str, str, Json], None] | None = None
        """Called with the scope, the trigger id and the result of each completed operation."""

    def start(
        self,
        scope: str,
        trigger_id: str | None,
        begin: Callable[[], CompletableFuture[Any]],
        result: Callable[[Any], Json],
    ) -> str:
        """Start an operation, unless this trigger id already started it. Return the trigger id."""
        trigger = trigger_id or uuid.uuid4().hex
        key = (scope, trigger)
        with self._lock:
            self._forget_old()
            if key in self._operations:
                return trigger
            if sum(operation.completed is None for operation in self._operations.values()) >= _MOST_RUNNING:
                raise RestError(503, f"{_MOST_RUNNING} operations are in progress: try again when one has completed")
            operation = self._operations[key] = _Operation(begin(), result)
        operation.future.add_done_callback(lambda _: self._complete(key, operation))
        return trigger

    def _complete(self, key: tuple[str, str], operation: _Operation) -> None:
        operation.completed = self._clock()
        if self.on_complete is not None:
            self.on_complete(*key, self.poll(*key))

    def _forget_old(self) -> None:
        limit = self._clock() - self._kept_seconds
        for key, operation in list(self._operations.items()):
            if operation.completed is not None and operation.completed < limit:
                del self._operations[key]

    def poll(self, scope: str, trigger_id: str) -> Json:
        """Return the status of an operation. A failed one is also COMPLETED, with the cause of its failure."""
        with self._lock:
            operation = self._operations.get((scope, trigger_id))
        if operation is None:
            raise RestError(404, f"There is no operation with the trigger id {trigger_id} here.")
        if operation.completed is None:
            return {"status": {"id": "IN_PROGRESS"}, "operation": None}
        error = operation.future.exception()
        if error is not None:
            kind = type(error)
            cause = failure_cause(f"{kind.__module__}.{kind.__qualname__}", str(error))
            return {"status": {"id": "COMPLETED"}, "operation": {"failure-cause": cause}}
        return {"status": {"id": "COMPLETED"}, "operation": operation.result(operation.future.result())}
