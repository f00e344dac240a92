"""Create state from data: feed an operator with the elements of an iterable or a DataFrame, and keep its state.

The operator that fills the state is the operator that will use it, so it writes what the job expects.

It imports the parts of a small job, which it runs to fill the state.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError, SavepointError, shorten
from penstock.core.functions import AggregateFunction, ReduceFunction
from penstock.core.state import BroadcastState, MapStateDescriptor
from penstock.core.window import Evictor, Trigger, WindowAssigner
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.key_selector import key_function
from penstock.runtime.operators.function_operator import FunctionOperator
from penstock.runtime.operators.keyed_process import KeyedProcessOperator
from penstock.runtime.operators.operator import JobInfo, OperatorContext, StreamOperator
from penstock.runtime.operators.udf import open_function
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.plan.job_vertex import ChainedOperator, JobVertex
from penstock.runtime.records.batch import KeySelect, Timestamps, Values
from penstock.runtime.records.key_groups import key_group_for, subtask_for_key_group
from penstock.runtime.records.unhashable_keys import HashableKeys
from penstock.runtime.savepoint.capture import SavepointRequest, write_operator
from penstock.runtime.savepoint.manifest import Json
from penstock.runtime.task.chain import OperatorChain, TaskEnvironment
from penstock.runtime.task.job_spec import BatchClock
from penstock.state_processor.functions import (
    BroadcastStateBootstrapFunction,
    KeyedStateBootstrapFunction,
    StateBootstrapFunction,
)

_BATCH = 5_000
_MEMORY = 64 * 1024 * 1024


class SqlitePageStore:
    """Pages in a temporary file: the created state may be larger than memory."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="penstock-bootstrap-")
        self._database = sqlite3.connect(str(Path(self._directory.name) / "pages"), isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute("CREATE TABLE pages (id TEXT PRIMARY KEY, blob BLOB) WITHOUT ROWID")

    def get(self, page_id: str) -> bytes | None:
        """Read a page."""
        row = self._database.execute("SELECT blob FROM pages WHERE id = ?", (page_id,)).fetchone()
        return None if row is None else bytes(row[0])

    def put(self, page_id: str, blob: bytes) -> None:
        """Write a page."""
        self._database.execute("INSERT OR REPLACE INTO pages VALUES (?, ?)", (page_id, blob))

    def remove(self, page_id: str) -> None:
        """Remove a page."""
        self._database.execute("DELETE FROM pages WHERE id = ?", (page_id,))

    def close(self) -> None:
        """Remove all pages."""
        self._database.close()
        self._directory.cleanup()


class OperatorTransformation:
    """Entry point for creating state from data."""

    @staticmethod
    def bootstrap_with(data: Any) -> OneInputStateTransformation:
        """Start from an iterable (including an iterator, which is read once), or from a Spark DataFrame's rows."""
        if not (isinstance(data, Iterable) or _is_frame(data)):
            raise InvalidProgramError(f"state is created from an iterable or a DataFrame, got {shorten(data)}")
        return OneInputStateTransformation(data)


class OneInputStateTransformation:
    """The elements to put into state."""

    def __init__(self, data: Any, timestamp_of: Callable[[Any], int] | None = None) -> None:
        self._data = data
        self._timestamp_of = timestamp_of

    def assign_timestamps(self, timestamp_of: Callable[[Any], int]) -> OneInputStateTransformation:
        """Give elements timestamps in ms. Windows need them."""
        return OneInputStateTransformation(self._data, timestamp_of)

    def key_by(self, key_selector: Any, *more_keys: Any) -> KeyedStateTransformation:
        """Create keyed state. Define the key as in a job: by a function, a KeySelector, a field position or name."""
        return KeyedStateTransformation(
            self._data, self._timestamp_of, HashableKeys(key_function(key_selector, *more_keys))
        )

    def transform(self, function: StateBootstrapFunction | BroadcastStateBootstrapFunction) -> Bootstrap:
        """Create operator state. One subtask creates all of it, and a job that starts from it redistributes it."""
        if isinstance(function, BroadcastStateBootstrapFunction):
            return Bootstrap(self._data, self._timestamp_of, _BroadcastOperator(function), None)
        if isinstance(function, StateBootstrapFunction):
            return Bootstrap(self._data, self._timestamp_of, _StateOperator(function), None)
        raise InvalidProgramError(
            "transform() without key_by() takes a StateBootstrapFunction or a BroadcastStateBootstrapFunction, got "
            f"{type(function).__name__}"
        )


class KeyedStateTransformation:
    """The elements to put into keyed state."""

    def __init__(self, data: Any, timestamp_of: Callable[[Any], int] | None, key_selector: KeySelect) -> None:
        self._data = data
        self._timestamp_of = timestamp_of
        self._key_selector = key_selector

    def transform(self, function: KeyedStateBootstrapFunction) -> Bootstrap:
        """Fill keyed state and timers."""
        if not isinstance(function, KeyedStateBootstrapFunction):
            raise InvalidProgramError(
                f"transform() after key_by() takes a KeyedStateBootstrapFunction, got {type(function).__name__}"
            )
        operator = KeyedProcessOperator(function, self._key_selector)
        return Bootstrap(self._data, self._timestamp_of, operator, self._key_selector)

    def window(self, assigner: WindowAssigner[Any, Any]) -> WindowedStateTransformation:
        """Fill windows as if a job had processed the elements without firing any window."""
        return WindowedStateTransformation(self._data, self._timestamp_of, self._key_selector, assigner)


class WindowedStateTransformation:
    """The elements to put into windows. Define the windows as in the job."""

    def __init__(
        self,
        data: Any,
        timestamp_of: Callable[[Any], int] | None,
        key_selector: KeySelect,
        assigner: WindowAssigner[Any, Any],
    ) -> None:
        self._data = data
        self._timestamp_of = timestamp_of
        self._key_selector = key_selector
        stream = StreamExecutionEnvironment().from_collection([0]).key_by(key_selector)
        self._windowed = stream.window(assigner)

    def trigger(self, trigger: Trigger[Any, Any]) -> WindowedStateTransformation:
        """Set the job's trigger."""
        self._windowed.trigger(trigger)
        return self

    def evictor(self, evictor: Evictor[Any, Any]) -> WindowedStateTransformation:
        """Set the job's evictor."""
        self._windowed.evictor(evictor)
        return self

    def reduce(self, function: ReduceFunction | Callable[[Any, Any], Any], window_function: Any = None) -> Bootstrap:
        """Create windows that contain a reduced value."""
        return self._bootstrap(self._windowed.reduce(function, window_function))

    def aggregate(self, function: AggregateFunction, window_function: Any = None) -> Bootstrap:
        """Create windows that contain an accumulator."""
        return self._bootstrap(self._windowed.aggregate(function, window_function))

    def process(self, function: Any) -> Bootstrap:
        """Create windows that contain all elements."""
        return self._bootstrap(self._windowed.process(function))

    def _bootstrap(self, stream: Any) -> Bootstrap:
        operator: StreamOperator = stream.get_transformation().operator
        return Bootstrap(self._data, self._timestamp_of, operator, self._key_selector)


class Bootstrap:
    """An operator and the elements that fill its state."""

    def __init__(
        self,
        data: Any,
        timestamp_of: Callable[[Any], int] | None,
        operator: StreamOperator,
        key_selector: KeySelect | None,
    ) -> None:
        self._data = data
        self._timestamp_of = timestamp_of
        self._operator = operator
        self._key_selector = key_selector
        self._read = False

    def write(self, request: SavepointRequest, operator_id: str, uid: str, max_parallelism: int) -> list[Json]:
        """Create and write the state. Return the written parts."""
        filler = _Filler(self._operator, self._timestamp_of, request, operator_id, uid, max_parallelism)
        if not _is_frame(self._data):
            elements = iter(self._data)
            if elements is self._data and self._read:  # the rest of an iterator is not the state
                raise SavepointError(
                    f"the elements for operator '{uid}' come from an iterator that an earlier write() has read: "
                    "pass bootstrap_with() a list, or a new iterator"
                )
            self._read = True
            return [filler.fill(0, 1, elements)]
        from penstock.spark.savepoint_frames import write_frame

        select = self._key_selector
        return write_frame(self._data, None if select is None else _Route(select, max_parallelism), filler.fill)


class _Route:
    """Returns the part of the state to which an element belongs."""

    def __init__(self, select: KeySelect, max_parallelism: int) -> None:
        self._select = select
        self._max_parallelism = max_parallelism

    def __call__(self, value: Any, parts: int) -> int:
        group = key_group_for(self._select(value), self._max_parallelism)
        return subtask_for_key_group(group, parts, self._max_parallelism)


class _Filler:
    """Runs an operator on elements, in an executor if they come from a DataFrame."""

    def __init__(
        self,
        operator: StreamOperator,
        timestamp_of: Callable[[Any], int] | None,
        request: SavepointRequest,
        operator_id: str,
        uid: str,
        max_parallelism: int,
    ) -> None:
        self._timestamp_of = timestamp_of
        self._request = request
        self._chained = ChainedOperator(operator_id, uid, operator, None, uid, max_parallelism)

    def fill(self, subtask: int, parallelism: int, elements: Iterator[Any]) -> Json:
        """Feed the elements, and write the state."""
        chained, store = self._chained, SqlitePageStore()
        vertex = JobVertex(0, chained.name, parallelism, chained.max_parallelism, [chained], source_bounded=True)
        clock = BatchClock(int(time.time() * 1000))  # TTL starts now, and timers are registered from now on
        environment = TaskEnvironment(store, clock, JobInfo(), memory_budget=_MEMORY)
        chain = OperatorChain(vertex, {}, subtask, environment, lambda *_: None, {})
        try:
            chain.open()
            (operator,) = chain.operators
            batch = 0
            while values := list(islice(elements, _BATCH)):
                operator.process_batch(values, self._stamps(values, operator.context))
                batch += 1
                chain.snapshot(batch)
            chain.snapshot(batch + 1)
            context = operator.context
            part = write_operator(
                self._request,
                chained,
                subtask,
                context.keyed_backend,
                context.operator_state,
                operator.current_watermark,
                clock.now,
            )
            chain.close()
            return part
        finally:
            store.close()

    def _stamps(self, values: list[Any], context: OperatorContext) -> list[int] | None:
        stamp_of = self._timestamp_of
        if stamp_of is None:
            return None
        try:
            stamps = [stamp_of(value) for value in values]
        except Exception as error:
            raise user_error(context, error, "assign_timestamps") from None
        for value, stamp in zip(values, stamps, strict=True):
            if not is_int(stamp):
                raise InvalidProgramError(
                    f"the timestamp of element {shorten(value)} for operator '{context.operator_name}' is "
                    f"{shorten(stamp)}: assign_timestamps() needs milliseconds since the epoch as an int"
                )
        return stamps


class _StateOperator(FunctionOperator):
    stateful = True
    method = "process_element"

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        try:
            for value in values:
                self.function.process_element(value)
        except Exception as error:
            raise user_error(self.context, error, self.method) from None


class _BroadcastOperator(FunctionOperator):
    stateful = True
    method = "process_element"

    def open(self) -> None:
        open_function(self.function, self.context)
        self._states = _BroadcastContext(self)

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        try:
            for value in values:
                self.function.process_element(value, self._states)
        except Exception as error:
            raise user_error(self.context, error, self.method) from None


class _BroadcastContext(BroadcastStateBootstrapFunction.Context):
    def __init__(self, operator: _BroadcastOperator) -> None:
        self._operator = operator

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        return self._operator.context.operator_state.get_broadcast_state(state_descriptor)


def _is_frame(data: Any) -> bool:
    return type(data).__module__.startswith("pyspark.")
