"""The queries of the state browser: the states of an operator, and their values for some keys.

Like queries of queryable state, they travel with a batch, so the answers are from a completed checkpoint. The task
converts values to plain JSON: the driver may not have the user's classes, and large values are not sent whole.
"""

from __future__ import annotations

import itertools
import json
import pickle
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.runtime.records.key_groups import key_group_for, subtask_for_key_group
from penstock.runtime.records.unhashable_keys import hashable
from penstock.runtime.state.pages import EVENT_TIMERS, FIRST_SLOT, PROCESSING_TIMERS
from penstock.runtime.state.ttl import without_stamps

if TYPE_CHECKING:
    from penstock.runtime.state.backend import KeyedStateBackend
    from penstock.runtime.task.task import StreamTask

__all__ = ["ScanAnswer", "StateScan", "as_json", "entry_of_key", "key_from_text", "scan_states"]

_SHOWN_ELEMENTS = 100
_SHOWN_TEXT = 10_000
_SCAN_SECONDS = 0.25
"""How long a task may search while the batch waits."""


@dataclass(frozen=True, slots=True)
class StateScan:
    """A query to all tasks of an operator, or of all operators.

    With a (pickled) key, it finds the entry of this key. Otherwise it finds entries whose key contains the text,
    ignoring case.
    """

    query_id: int
    operator_id: str | None = None
    key: bytes | None = None
    contains: str = ""
    limit: int = 0


@dataclass(slots=True)
class ScanAnswer:
    """The states and entries that the tasks found, by operator."""

    query_id: int
    operators: dict[str, dict[str, Any]] = field(default_factory=dict)
    entries: list[dict[str, Any]] = field(default_factory=list)
    complete: bool = True
    """False if a task stopped at its limit of time or entries."""

    def add(self, other: ScanAnswer) -> None:
        """Add the answer of another task."""
        for operator_id, found in other.operators.items():
            known = self.operators.setdefault(operator_id, found)
            if known is not found:
                known["bytes"] += found["bytes"]
        self.entries += other.entries
        self.complete = self.complete and other.complete


def scan_states(task: StreamTask, scan: StateScan) -> ScanAnswer:
    """Return the answer of one task, between batches."""
    answer = ScanAnswer(scan.query_id)
    for operator, chained in zip(task.chain.operators, task.vertex.operators, strict=True):
        backend = operator.context.keyed_backend
        if backend is None or scan.operator_id not in {None, chained.operator_id}:
            continue
        layout = backend.directory.layout
        answer.operators[chained.operator_id] = {
            "states": [{"name": name, "kind": kind} for name, kind in layout],
            "bytes": backend.directory.total_bytes,
        }
        if scan.operator_id is None:
            continue
        now = operator.context.processing_time()
        if scan.key is None:
            _search(answer, scan, layout, backend.scan(now))
            continue
        key = hashable(pickle.loads(scan.key))
        group = key_group_for(key, chained.max_parallelism)
        if subtask_for_key_group(group, task.vertex.parallelism, chained.max_parallelism) == task.subtask:
            entry = entry_of_key(backend, key, now)
            if entry is not None:
                answer.entries.append(entry)
    return answer


def entry_of_key(backend: KeyedStateBackend, key: Any, now: int) -> dict[str, Any] | None:
    """Return the states and timers of a key as JSON, or None if it has none."""
    layout = backend.directory.layout
    slots = (EVENT_TIMERS, PROCESSING_TIMERS, *(FIRST_SLOT + at for at in range(len(layout))))
    values = [backend.peek(key, slot, now) for slot in slots]
    return None if all(value is None for value in values) else _entry(layout, (key, *values))


def key_from_text(text: str) -> Any:
    """Parse a typed key: JSON, or the text itself. Lists become tuples, because lists cannot be keys.

    >>> key_from_text("17"), key_from_text('"17"'), key_from_text("ann"), key_from_text('["ann", 3]')
    (17, '17', 'ann', ('ann', 3))
    """
    try:
        key = json.loads(text)
    except ValueError:
        return text
    return tuple(key) if isinstance(key, list) else key


def _search(
    answer: ScanAnswer, scan: StateScan, layout: list[tuple[str, str]], found: Iterator[tuple[Any, ...]]
) -> None:
    wanted = scan.contains.lower()
    ends = time.monotonic() + _SCAN_SECONDS
    for number, entry in enumerate(found, 1):
        if wanted in _text(entry[0]).lower():
            if len(answer.entries) >= scan.limit:
                answer.complete = False
                return
            answer.entries.append(_entry(layout, entry))
        if number % 1000 == 0 and time.monotonic() > ends:
            answer.complete = False
            return


def _entry(layout: list[tuple[str, str]], entry: tuple[Any, ...]) -> dict[str, Any]:
    key, event_timers, processing_timers, *values = entry
    return {
        "key": _text(key),
        "states": {
            name: {"kind": kind, "value": as_json(_plain(kind, value))}
            for (name, kind), value in zip(layout, values, strict=False)
            if value is not None
        },
        "event-timers": _timers(event_timers),
        "processing-timers": _timers(processing_timers),
    }


def _text(key: Any) -> str:
    return key if isinstance(key, str) else repr(key)


def _plain(kind: str, value: Any) -> Any:
    if not kind.startswith("windowed "):
        return without_stamps(kind, value)
    inner = kind.removeprefix("windowed ")
    return {window: without_stamps(inner, each) for window, each in value.items()}


def _timers(timers: Iterable[Any] | None) -> list[dict[str, Any]]:
    pairs = [(timer, None) if type(timer) is int else timer for timer in timers or ()]
    pairs.sort(key=lambda pair: pair[0])
    return [
        {"time": str(timestamp), **({} if namespace is None else {"window": str(namespace)})}
        for timestamp, namespace in pairs[:_SHOWN_ELEMENTS]
    ]


def as_json(value: Any) -> Any:
    """Convert a value of state to JSON: numbers, strings and collections as such, other values with repr().

    >>> as_json({"ann": (1, 2.5)}), as_json(2**60), as_json({1}), as_json(float("inf"))
    ({'ann': [1, 2.5]}, '1152921504606846976', [1], 'inf')
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if len(value) <= _SHOWN_TEXT else value[:_SHOWN_TEXT] + "…"
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)  # browsers round larger numbers
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, dict):
        return {str(key): as_json(each) for key, each in itertools.islice(value.items(), _SHOWN_ELEMENTS)}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_json(each) for each in itertools.islice(value, _SHOWN_ELEMENTS)]
    return repr(value)[:_SHOWN_TEXT]
