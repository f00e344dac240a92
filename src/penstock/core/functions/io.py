"""Sources and sinks as one simple function. For offsets and transactions, see the source and sink contracts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any

from penstock.common.unsupported import no_java_object
from penstock.common.watermark import Watermark
from penstock.core.functions.base import Function

__all__ = ["ParallelSourceFunction", "SinkFunction", "SourceFunction"]


class SinkFunction(Function):
    """Writes records one by one.

    After a failure, records may be written again: make :meth:`invoke` idempotent, or implement a ``Sink``.
    """

    class Context(ABC):
        """The context of :meth:`SinkFunction.invoke`."""

        __slots__ = ()

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the processing time in ms."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the sink's current watermark."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Return the timestamp of the record, or ``None`` if it has none."""

    @abstractmethod
    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Write one record."""

    get_java_function = no_java_object


class SourceFunction(Function):
    """Produces records in a loop until it finishes or is cancelled. It runs as one task.

    >>> class Numbers(SourceFunction):
    ...     def __init__(self):
    ...         self.running = True
    ...
    ...     def run(self, ctx):
    ...         for number in range(10):
    ...             if not self.running:
    ...                 break
    ...             ctx.collect(number)
    ...
    ...     def cancel(self):
    ...         self.running = False
    """

    class SourceContext(ABC):
        """The context to which :meth:`SourceFunction.run` emits its records."""

        @abstractmethod
        def collect(self, element: Any) -> None:
            """Emit a record without a timestamp."""

        @abstractmethod
        def collect_with_timestamp(self, element: Any, timestamp: int) -> None:
            """Emit a record with a timestamp."""

        @abstractmethod
        def emit_watermark(self, watermark: Watermark) -> None:
            """Emit a watermark."""

        @abstractmethod
        def mark_as_temporarily_idle(self) -> None:
            """Mark the source idle: downstream operators do not wait for its watermarks until the next record."""

        @abstractmethod
        def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
            """Return the lock that makes emitting and updating state atomic with respect to checkpoints."""

    @abstractmethod
    def run(self, ctx: SourceFunction.SourceContext) -> None:
        """Emit records until the end. It must return soon after :meth:`cancel`."""

    @abstractmethod
    def cancel(self) -> None:
        """Ask :meth:`run`, which runs in another thread, to return."""

    get_java_function = no_java_object


class ParallelSourceFunction(SourceFunction):
    """A :class:`SourceFunction` that runs in every parallel task; use the subtask's index to divide the work."""
