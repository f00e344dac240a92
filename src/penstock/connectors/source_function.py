"""Sources written as a loop (`SourceFunction.run`). They run in threads on the driver and write to a receive log."""

from __future__ import annotations

import base64
import pickle
import threading
import time
import zlib
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from penstock.common.errors import InvalidProgramError, JobExecutionError, shorten
from penstock.common.watermark import Watermark
from penstock.core.functions import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    KeyedStateStore,
    ListCheckpointed,
    ParallelSourceFunction,
    SourceFunction,
)
from penstock.core.source import Boundedness, Source, SourceReader, SourceSplit, SplitEnumerator
from penstock.core.state import ListState, ListStateDescriptor, OperatorStateStore
from penstock.metrics import MetricGroup
from penstock.runtime.operators.function_operator import SnapshotContext, kept_elements
from penstock.runtime.operators.operator import JobInfo
from penstock.runtime.operators.runtime_context import StreamingRuntimeContext
from penstock.runtime.records.serialization import dumps
from penstock.runtime.records.stored_classes import load_stored
from penstock.runtime.source.receive_log import ReceiveLog
from penstock.runtime.source.received_source import (
    IDLE,
    RECORD,
    WATERMARK,
    ReceivedReader,
    Receiver,
    ReceiverEnumerator,
    ReceiverSnapshot,
)
from penstock.runtime.state.operator_state import OperatorStateBackend
from penstock.runtime.state.pages import MemoryPageStore

_LOCK_SECONDS = 0.05
_HELD_TOO_LONG = 20
_CLOSE_SECONDS = 1.0


class SourceFunctionSource(Source):
    """Runs a SourceFunction. The stream ends when `run` returns."""

    makes_watermarks = True  # ctx.emit_watermark()

    def __init__(self, function: SourceFunction, name: str = "Custom Source") -> None:
        if not isinstance(function, SourceFunction):
            raise InvalidProgramError(f"add_source() needs a SourceFunction, got {shorten(function)}")
        self._function: SourceFunction | None = function
        self._name = name

    def __getstate__(self) -> dict[str, Any]:
        return {"_function": None, "_name": self._name}  # runs on the driver: tasks need no copy

    @property
    def is_parallel(self) -> bool:
        """Whether several instances can run."""
        return isinstance(self._function, ParallelSourceFunction)

    @property
    def spreads(self) -> bool:  # type: ignore[override]
        """Whether several tasks can read the records of one instance."""
        return not self.is_parallel

    def get_boundedness(self) -> Boundedness:
        """Return unbounded, although the stream may end."""
        return Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def may_end(self) -> bool:
        """Return True: `run` can return."""
        return True

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """Create an enumerator with one receiver per instance."""
        instances = parallelism if self.is_parallel else 1
        return ReceiverEnumerator(self._name, instances, lambda index: self._receiver(index, instances))

    def create_reader(self) -> SourceReader:
        """Create a reader of the received records."""
        return ReceivedReader()

    def initial_offset(self, split: SourceSplit) -> Any:
        """Return the position of the first element."""
        return 0

    def _receiver(self, index: int, instances: int) -> Receiver:
        """Create a receiver with its own copy of the function, as if it were sent to a task."""
        function: SourceFunction = pickle.loads(dumps(self._function, f"source function of '{self._name}'"))
        return FunctionReceiver(self._name, function, index, instances)


class FunctionReceiver(Receiver):
    """Runs one instance of the function.

    If the function has its own state, a batch ends at a snapshot of it, which is taken under the checkpoint lock: the
    snapshot represents exactly the records before it (rules L01, L08).
    """

    def __init__(self, name: str, function: SourceFunction, index: int, parallelism: int) -> None:
        self._name = name
        self._function = function
        self._runtime_context = StreamingRuntimeContext(
            operator_name=name,
            subtask=index,
            parallelism=parallelism,
            max_parallelism=128,
            job=JobInfo(),
            metrics=MetricGroup(),
            states=None,
        )
        self.resettable = isinstance(function, (CheckpointedFunction, ListCheckpointed))
        self._numbered = self.resettable or isinstance(function, CheckpointListener)
        self._lock = threading.RLock()
        self._opened = False
        self._closed = False
        self._store = MemoryPageStore()
        self._state = OperatorStateBackend("source", self._store)

    def run(self, log: ReceiveLog, stop: threading.Event, restored: ReceiverSnapshot | None) -> None:
        function = self._function
        with self._lock:
            function.set_runtime_context(self._runtime_context)
            self._initialize(restored)
            function.open(self._runtime_context)
            self._opened = True
        if not stop.is_set():
            context = LockedSourceContext(self._name, log, self._lock) if self.resettable else LogSourceContext(log)
            function.run(context)

    def _initialize(self, restored: ReceiverSnapshot | None) -> None:
        if restored is not None and restored.state is not None:
            layout, blobs = load_stored(zlib.decompress(base64.b64decode(restored.state)))
            self._store = MemoryPageStore(blobs)
            self._state = OperatorStateBackend("source", self._store, layout, restored=True)
        if isinstance(self._function, ListCheckpointed):
            self._function.restore_state(list(self._list_state().get()))
        elif isinstance(self._function, CheckpointedFunction):
            number = None if restored is None else restored.number
            self._function.initialize_state(_InitializationContext(self._name, self._state, number))

    def seal(self, log: ReceiveLog, start: int, limit: int, number: int) -> tuple[int, ReceiverSnapshot | None]:
        if not self.resettable:
            end = log.seal(start, limit)
            return end, (ReceiverSnapshot(number, None) if self._numbered and end > start else None)
        if not self._lock.acquire(timeout=_LOCK_SECONDS):
            return start, None  # the function is in the middle of an update
        try:
            if not self._opened or not log.pending:
                return start, None
            end = log.seal(start, log.pending)
            return end, ReceiverSnapshot(number, self._snapshot(number))
        finally:
            self._lock.release()

    def _snapshot(self, number: int) -> str:
        now = int(time.time() * 1000)
        if isinstance(self._function, ListCheckpointed):
            self._list_state().update(kept_elements(self._function.snapshot_state(number, now), self._name))
        elif isinstance(self._function, CheckpointedFunction):
            self._function.snapshot_state(SnapshotContext(number, now))
        layout = self._state.snapshot()
        content = dumps((layout, self._store.blobs), f"state of source '{self._name}'")
        return base64.b64encode(zlib.compress(content)).decode()

    def _list_state(self) -> ListState[Any]:
        return self._state.get_list_state(ListStateDescriptor("list-checkpointed"))

    def committed(self, number: int) -> None:
        if isinstance(self._function, CheckpointListener):
            with self._lock:
                if self._opened and not self._closed:
                    self._function.notify_checkpoint_complete(number)

    def cancel(self) -> None:
        self._function.cancel()

    def close(self) -> None:
        # A function that does not return from run() may hold the lock forever: close it anyway.
        held = self._lock.acquire(timeout=_CLOSE_SECONDS)
        try:
            if self._opened and not self._closed:
                self._closed = True
                self._function.close()
        finally:
            if held:
                self._lock.release()


class _InitializationContext(FunctionInitializationContext):
    """The context of ``initialize_state`` in a source function."""

    def __init__(self, name: str, state: OperatorStateBackend, number: int | None) -> None:
        self._name = name
        self._state = state
        self._number = number

    def is_restored(self) -> bool:
        """Whether the source is restored."""
        return self._number is not None

    def get_restored_checkpoint_id(self) -> int | None:
        """Return the number of the restored snapshot."""
        return self._number

    def get_operator_state_store(self) -> OperatorStateStore:
        """Return state of this instance. A union list also has only its elements: the number of instances is fixed."""
        return self._state

    def get_keyed_state_store(self) -> KeyedStateStore:
        """Raise an error: a source has no keys."""
        raise InvalidProgramError(f"source '{self._name}' requested keyed state: use the operator state store")


class LogSourceContext(SourceFunction.SourceContext):
    """Writes emitted records to the receive log, in order. It blocks while the job is behind."""

    def __init__(self, log: ReceiveLog) -> None:
        self._log = log
        self._lock: AbstractContextManager[Any] = threading.RLock()

    def collect(self, element: Any) -> None:
        """Emit a record without a timestamp."""
        self._emit((RECORD, element, None))

    def collect_with_timestamp(self, element: Any, timestamp: int) -> None:
        """Emit a record with a timestamp."""
        self._emit((RECORD, element, int(timestamp)))

    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark between records."""
        self._emit((WATERMARK, None, watermark.timestamp))

    def mark_as_temporarily_idle(self) -> None:
        """Mark the source as idle until the next record."""
        self._emit((IDLE, None, None))

    def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
        """Return a lock to emit records and change state in one step."""
        return self._lock

    def _emit(self, element: tuple[int, Any, int | None]) -> None:
        self._log.append(element)


class LockedSourceContext(LogSourceContext):
    """For a function with state: the lock excludes snapshots, and the context blocks only while the lock is free."""

    def __init__(self, name: str, log: ReceiveLog, lock: threading.RLock) -> None:
        super().__init__(log)
        self._name = name
        self._guard = CheckpointLock(log, lock)
        self._lock = self._guard

    def _emit(self, element: tuple[int, Any, int | None]) -> None:
        with self._guard:
            self._log.extend([element], wait=False)
            if self._log.pending > _HELD_TOO_LONG * (self._log.capacity + 1_000):
                raise JobExecutionError(
                    f"source '{self._name}' holds the checkpoint lock for more than {self._log.pending} records, so no "
                    "checkpoint can be taken: release it between records"
                )


class CheckpointLock(AbstractContextManager[Any]):
    """The function takes it to emit and change its state in one step, the driver to take a snapshot."""

    def __init__(self, log: ReceiveLog, lock: threading.RLock) -> None:
        self._log = log
        self._lock = lock
        self._owner: int | None = None
        self._depth = 0

    def __enter__(self) -> Self:
        # Waiting for space while holding the lock would keep the driver from freeing any.
        if self._owner != threading.get_ident():
            self._log.wait_for_room()
        self._lock.acquire()
        self._owner = threading.get_ident()
        self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._owner = None
        self._lock.release()
