"""Sources written as a loop (`SourceFunction.run`): they run in threads on the driver, behind the receive log."""

from __future__ import annotations

import pickle
import threading
from contextlib import AbstractContextManager
from typing import Any

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.watermark import Watermark
from penstock.core.functions import ParallelSourceFunction, SourceFunction
from penstock.core.source import Boundedness, Source, SourceReader, SourceSplit, SplitEnumerator
from penstock.metrics import MetricGroup
from penstock.runtime.operator import JobInfo
from penstock.runtime.receive_log import ReceiveLog
from penstock.runtime.received_source import IDLE, RECORD, WATERMARK, ReceivedReader, ReceiverEnumerator
from penstock.runtime.runtime_context import StreamingRuntimeContext
from penstock.runtime.serialization import dumps


class SourceFunctionSource(Source):
    """Runs a SourceFunction; the stream ends when `run` returns."""

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
        """Whether several instances may run."""
        return isinstance(self._function, ParallelSourceFunction)

    @property
    def spreads(self) -> bool:  # type: ignore[override]
        """What one instance receives can be read by several tasks."""
        return not self.is_parallel

    def get_boundedness(self) -> Boundedness:
        """A stream; it may end all the same."""
        return Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def may_end(self) -> bool:
        """`run` can return."""
        return True

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """One receiver per instance."""
        return ReceiverEnumerator(self._name, parallelism if self.is_parallel else 1, _Runner(self, parallelism))

    def create_reader(self) -> SourceReader:
        """Reads what was received."""
        return ReceivedReader()

    def initial_offset(self, split: SourceSplit) -> Any:
        """The first element."""
        return 0

    def new_function(self) -> SourceFunction:
        """An instance of its own for each receiver, as shipping to tasks would make it."""
        function: SourceFunction = pickle.loads(dumps(self._function, f"source function of '{self._name}'"))
        return function


class _Runner:
    """Runs one instance of the function in the receiver's thread."""

    def __init__(self, source: SourceFunctionSource, parallelism: int) -> None:
        self._source = source
        self._parallelism = parallelism if source.is_parallel else 1

    def __call__(self, index: int, log: ReceiveLog, stop: threading.Event) -> None:
        function = self._source.new_function()
        context = StreamingRuntimeContext(
            operator_name=self._source._name,
            subtask=index,
            parallelism=self._parallelism,
            max_parallelism=128,
            job=JobInfo(),
            metrics=MetricGroup(),
            states=None,
        )
        function.set_runtime_context(context)
        function.open(context)
        finished = threading.Event()
        threading.Thread(target=_cancel_on, args=(stop, finished, function), daemon=True).start()
        try:
            function.run(LogSourceContext(log))
        finally:
            finished.set()
            function.close()


def _cancel_on(stop: threading.Event, finished: threading.Event, function: SourceFunction) -> None:
    while not finished.is_set():
        if stop.wait(0.1):
            function.cancel()
            return


class LogSourceContext(SourceFunction.SourceContext):
    """What a SourceFunction emits goes to the receive log, in order."""

    def __init__(self, log: ReceiveLog) -> None:
        self._log = log
        self._lock = threading.RLock()

    def collect(self, element: Any) -> None:
        """A record without timestamp."""
        self._log.append((RECORD, element, None))

    def collect_with_timestamp(self, element: Any, timestamp: int) -> None:
        """A record with a timestamp."""
        self._log.append((RECORD, element, int(timestamp)))

    def emit_watermark(self, watermark: Watermark) -> None:
        """A watermark between the records."""
        self._log.append((WATERMARK, None, watermark.timestamp))

    def mark_as_temporarily_idle(self) -> None:
        """Idle until the next record."""
        self._log.append((IDLE, None, None))

    def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
        """A lock to emit and change state in one step."""
        return self._lock
