"""Windows with an evictor: every element is kept with its timestamp until it is evicted (rule 6.6)."""

from __future__ import annotations

from typing import Any

from penstock.common.errors import TypeMismatchError, shorten
from penstock.core.window import TimestampedValue
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.windows.contents import fold_elements
from penstock.runtime.windows.merging import MergingWindowOperator
from penstock.runtime.windows.trigger_context import WindowEvictorContext
from penstock.runtime.windows.window_operator import WindowOperator


class EvictingWindowOperator(WindowOperator):
    """The contents of a window are (value, timestamp) pairs. reduce and aggregate run when the window fires."""

    contents_kind = "elements and their timestamps"

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Create the evictor's context."""
        super().setup(context, output)
        self.evictor_context = WindowEvictorContext(context, self.timers)

    def _put(self, window: Any, value: Any, timestamp: int | None, *, shared: bool) -> None:
        self._windows().setdefault(window, []).append((value, timestamp))

    def _fire(self, window: Any, contents: Any, *, kept: bool) -> None:
        elements = [TimestampedValue(value, timestamp) for value, timestamp in contents]
        self._evict("evict_before", elements, window)
        folded = fold_elements(self.definition.contents, [element.value for element in elements])
        if folded is not None:
            self._emit(self.backend.key, window, folded)
        self._evict("evict_after", elements, window)
        contents[:] = [(element.value, element.timestamp) for element in elements]  # without the evicted elements
        self.backend.entry[0].dirty = True
        if not contents:
            self._drop(window)

    def _evict(self, method: str, elements: list[TimestampedValue[Any]], window: Any) -> None:
        evictor = self.definition.evictor
        returned = getattr(evictor, method)(elements, len(elements), window, self.evictor_context)
        if returned is not None:
            problem = f"returned {shorten(returned)}"
        elif not set(map(type, elements)) <= {TimestampedValue}:
            problem = "added other objects than elements of the window to the list"
        else:
            return
        raise TypeMismatchError(
            f"{method}() of the evictor {evictor!r} {problem}: delete elements from the list that it receives, "
            "for instance with `del elements[0]`, and return nothing",
            operator_name=self.context.operator_name,
        )


class EvictingMergingWindowOperator(EvictingWindowOperator, MergingWindowOperator):
    """Sessions and other merging windows with an evictor."""

    kind = "merging windows"

    def _merge_contents(self, contents: Any, other: Any) -> Any:
        contents.extend(other)
        return contents
