"""Queryable state: queries travel with a batch, tasks answer at its end, and answers are returned when it is committed.

An answer is therefore always a value of a completed checkpoint, and a query costs the job at most an empty batch
(rules K01 to K12).
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.common.completable_future import CompletableFuture
from penstock.common.errors import SerializationError, StateAccessError, shorten
from penstock.runtime.records.key_groups import key_group_for, subtask_for_key_group
from penstock.runtime.records.serialization import dumps
from penstock.runtime.records.unhashable_keys import hashable
from penstock.runtime.state.pages import FIRST_SLOT
from penstock.runtime.task.state_scan import ScanAnswer, StateScan, scan_states

if TYPE_CHECKING:
    from penstock.runtime.exchange.frames import TaskReport
    from penstock.runtime.task.task import StreamTask


_SEVERAL = "several operators"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class StateQuery:
    """Identifies the state of a key: by queryable name, or by the operator's uid and the name of the state.

    The key is pickled, so that an invalid key cannot fail the tasks that read the batch with the query.
    """

    query_id: int
    name: str
    key: bytes
    uid: str | None = None


@dataclass(frozen=True, slots=True)
class StateAnswer:
    """The answer of the task that owns the key. `kind` is None if the key lacks this state or is not a valid key."""

    query_id: int
    kind: str | None
    value: Any
    error: str | None = None


def answer_queries(task: StreamTask, queries: list[StateQuery | StateScan]) -> list[StateAnswer | ScanAnswer]:
    """Return the answers of one task, between batches. An invalid query fails the client's request, not the job."""
    answers: list[StateAnswer | ScanAnswer] = []
    for query in queries:
        try:
            if isinstance(query, StateScan):
                answers.append(scan_states(task, query))
            else:
                answers += _answers(task, query)
        except Exception as error:
            answers.append(StateAnswer(query.query_id, None, None, f"{type(error).__name__}: {error}"))
    return answers


def _answers(task: StreamTask, query: StateQuery) -> Iterator[StateAnswer]:
    for operator, chained in zip(task.chain.operators, task.vertex.operators, strict=True):
        backend = operator.context.keyed_backend
        if backend is None:
            continue
        if query.uid is not None:
            name: str | None = query.name if query.uid in (chained.uid, chained.operator_id) else None
        else:
            name = backend.queryable.get(query.name)
        position = next((i for i, (known, _) in enumerate(backend.directory.layout) if known == name), None)
        if name is None or position is None:
            continue
        key = hashable(pickle.loads(query.key))
        group = key_group_for(key, chained.max_parallelism)
        if subtask_for_key_group(group, task.vertex.parallelism, chained.max_parallelism) != task.subtask:
            continue
        stored = backend.peek(key, FIRST_SLOT + position, operator.context.processing_time())
        yield StateAnswer(query.query_id, None if stored is None else backend.directory.layout[position][1], stored)


class QueryBoard:
    """The queries of a running job, on the driver."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._open: dict[int, tuple[StateQuery | StateScan, CompletableFuture[Any]]] = {}
        self._asked: dict[int, list[StateQuery | StateScan]] = {}  # by checkpoint id
        self._answered: list[tuple[int, StateQuery | StateScan, StateAnswer | ScanAnswer | None]] = []
        self._ended: str | None = None
        self._awaiting_checkpoint: list[CompletableFuture[int]] = []

    def next_checkpoint(self) -> CompletableFuture[int]:
        """Return the id of the next checkpoint to complete. A batch is planned for it even without input."""
        future: CompletableFuture[int] = CompletableFuture()
        with self._lock:
            if self._ended is None:
                self._awaiting_checkpoint.append(future)
                return future
        future.complete_exceptionally(StateAccessError(self._ended))
        return future

    def ask(self, name: str, key: Any, uid: str | None = None) -> CompletableFuture[StateAnswer]:
        """Send a query. The future completes when the batch with the answer is committed."""
        future: CompletableFuture[StateAnswer] = CompletableFuture()
        try:
            query = StateQuery(next(self._numbers), name, dumps(key, "the key"), uid)
        except SerializationError as error:
            future.complete_exceptionally(error)
            return future
        return self._submit(query, future)

    def scan(
        self, operator_id: str | None = None, *, key: bytes | None = None, contains: str = "", limit: int = 0
    ) -> CompletableFuture[ScanAnswer]:
        """Query the states of all operators, or entries of one: of a (pickled) key, or of keys that contain a text."""
        return self._submit(
            StateScan(next(self._numbers), operator_id, key, contains, limit), CompletableFuture[ScanAnswer]()
        )

    def _submit(self, query: StateQuery | StateScan, future: CompletableFuture[_T]) -> CompletableFuture[_T]:
        with self._lock:
            if self._ended is not None:
                future.complete_exceptionally(StateAccessError(self._ended))
            else:
                self._open[query.query_id] = (query, future)
        return future

    @property
    def pending(self) -> bool:
        """Whether a batch is needed even without input."""
        return bool(self._open or self._awaiting_checkpoint)

    def attach(self, checkpoint_id: int) -> list[StateQuery | StateScan]:
        """Return the queries that a batch must answer."""
        if not self._open:
            return []
        with self._lock:
            queries = [query for query, _ in self._open.values()]
            self._asked = {checkpoint_id: queries}
            return queries

    def checkpoint_committed(self, checkpoint_id: int, reports: list[TaskReport]) -> None:
        """Store the answers of the tasks until the checkpoint is complete."""
        queries = self._asked.pop(checkpoint_id, None)
        if queries is None:
            return
        found: dict[int, StateAnswer | ScanAnswer] = {}
        for answer in (answer for report in reports for answer in report.answers):
            known = found.setdefault(answer.query_id, answer)
            if known is answer:
                continue
            if isinstance(known, ScanAnswer):
                if isinstance(answer, ScanAnswer):
                    known.add(answer)
            elif answer.error is None:  # a key lives in only one task of an operator
                found[answer.query_id] = StateAnswer(answer.query_id, None, None, _SEVERAL)
        with self._lock:
            self._answered += [(checkpoint_id, query, found.get(query.query_id)) for query in queries]

    def checkpoint_complete(self, checkpoint_id: int) -> None:
        """Return the answers of all checkpoints up to this one, which are now durable."""
        if self._awaiting_checkpoint:
            with self._lock:
                awaiting, self._awaiting_checkpoint = self._awaiting_checkpoint, []
            for future in awaiting:
                future.complete(checkpoint_id)
        if not self._answered:
            return
        with self._lock:
            ready = [answered for answered in self._answered if answered[0] <= checkpoint_id]
            self._answered = [answered for answered in self._answered if answered[0] > checkpoint_id]
            waiting = [(query, answer, self._open.pop(query.query_id, None)) for _, query, answer in ready]
        for query, answer, entry in waiting:
            if entry is not None:
                _settle(query, answer, entry[1])

    def end(self, reason: str) -> None:
        """Reject all pending queries: the job has ended or restarts (rule K02)."""
        with self._lock:
            self._ended = reason
            entries, self._open = list(self._open.values()), {}
            awaiting, self._awaiting_checkpoint = self._awaiting_checkpoint, []
        for _, future in entries:
            future.complete_exceptionally(StateAccessError(reason))
        for checkpoint in awaiting:
            checkpoint.complete_exceptionally(StateAccessError(reason))


def _settle(
    query: StateQuery | StateScan, answer: StateAnswer | ScanAnswer | None, future: CompletableFuture[Any]
) -> None:
    if isinstance(query, StateScan):
        if isinstance(answer, ScanAnswer):
            future.complete(answer)
        else:
            reason = "no task has answered" if answer is None else answer.error
            future.complete_exceptionally(StateAccessError(f"the state cannot be browsed: {reason}"))
        return
    assert not isinstance(answer, ScanAnswer)
    if answer is None:
        whose = f" of operator '{query.uid}'" if query.uid is not None else ""
        future.complete_exceptionally(
            StateAccessError(
                f"the job has no queryable state '{query.name}'{whose}: call set_queryable('{query.name}') on its "
                "descriptor before you query it, or give the uid of the operator and the name of the state"
            )
        )
    elif answer.error == _SEVERAL:
        future.complete_exceptionally(
            StateAccessError(
                f"several operators of the job have queryable state '{query.name}': give each its own name, or query "
                "it by the uid of the operator and the name of the state"
            )
        )
    elif answer.error is not None:
        future.complete_exceptionally(StateAccessError(f"state '{query.name}' has no such key: {answer.error}"))
    elif answer.kind is None:
        key = shorten(pickle.loads(query.key))
        future.complete_exceptionally(StateAccessError(f"there is no value for key {key} in state '{query.name}'"))
    else:
        future.complete(answer)
