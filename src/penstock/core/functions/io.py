"""Sources and sinks written as one simple function. For offsets and transactions see the source and sink contracts."""

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

    After a failure records can be written again: make :meth:`invoke` idempotent, or write a ``Sink``.
    """

    class Context(ABC):
        """The context of :meth:`SinkFunction.invoke`."""

        __slots__ = ()

        @abstractmethod
        def current_processing_time(self) -> int:
            """The machine's clock."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The sink's event-time clock."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The timestamp of the record, ``None`` if it has none."""

    @abstractmethod
    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Writes one record."""

    get_java_function = no_java_object


class SourceFunction(Function):
    """Produces records in a loop until it is done or cancelled. Runs as one task.

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
        """Where :meth:`SourceFunction.run` puts its records."""

        @abstractmethod
        def collect(self, element: Any) -> None:
            """Emits a record without a timestamp."""

        @abstractmethod
        def collect_with_timestamp(self, element: Any, timestamp: int) -> None:
            """Emits a record with a timestamp."""

        @abstractmethod
        def emit_watermark(self, watermark: Watermark) -> None:
            """Emits a watermark."""

        @abstractmethod
        def mark_as_temporarily_idle(self) -> None:
            """Says that downstream operators should not wait for watermarks until the next record."""

        @abstractmethod
        def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
            """Hold it (``with ...``) to emit records and change state as one step with regard to checkpoints."""

    @abstractmethod
    def run(self, ctx: SourceFunction.SourceContext) -> None:
        """Emits records until done; must return soon after :meth:`cancel`."""

    @abstractmethod
    def cancel(self) -> None:
        """Asks :meth:`run`, which runs in another thread, to return."""

    get_java_function = no_java_object


class ParallelSourceFunction(SourceFunction):
    """A :class:`SourceFunction` that runs in every parallel task; tell them apart by the subtask's index."""
