"""The functions that are called when a window fires, and their context (rule 6.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.core.functions import (
    AllWindowFunction,
    CoGroupFunction,
    FlatJoinFunction,
    FunctionWrapper,
    JoinFunction,
    KeyedStateStore,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from penstock.core.output_tag import OutputTag
from penstock.runtime.operators.collector import Collector
from penstock.runtime.operators.operator import OperatorContext
from penstock.runtime.timers.internal_timer_service import InternalTimerService
from penstock.runtime.windows.states import NoWindowStore, PerKeyStore, PerWindowStore, WindowStates


class WindowContext(ProcessWindowFunction.Context[Any], ProcessAllWindowFunction.Context[Any]):
    """The `ctx` of process and clear."""

    __slots__ = ("_collector", "_context", "_global", "_per_window", "_timers", "current_window")

    def __init__(
        self,
        context: OperatorContext,
        collector: Collector,
        timers: InternalTimerService,
        states: WindowStates,
        *,
        merging: bool,
    ) -> None:
        self._context = context
        self._collector = collector
        self._timers = timers
        self._global = PerKeyStore(states)
        self._per_window = NoWindowStore(context.operator_name) if merging else PerWindowStore(states)
        self.current_window: Any = None

    def window(self) -> Any:
        """The current window."""
        return self.current_window

    def current_processing_time(self) -> int:
        """Processing time in ms."""
        return self._context.clock.now

    def current_watermark(self) -> int:
        """The operator's event time in ms."""
        return self._timers.current_watermark

    def window_state(self) -> KeyedStateStore:
        """State of this key and window."""
        if isinstance(self._per_window, PerWindowStore):
            self._per_window.window = self.current_window
        return self._per_window

    def global_state(self) -> KeyedStateStore:
        """State of this key."""
        return self._global

    def output(self, tag: OutputTag, value: Any) -> None:
        """Emit to a side output, with the timestamp of the window's results."""
        self._collector.side(tag, value, self.current_window.max_timestamp())


class FiredFunction:
    """A window function of any kind behind one signature: elements in, results out."""

    method = "process"

    def __init__(self, function: Any) -> None:
        self.function = function

    def call(self, key: Any, context: WindowContext, elements: Any) -> Iterable[Any] | None:
        """Return the results for a window."""
        raise NotImplementedError

    @property
    def clears(self) -> bool:
        """Whether the function has its own `clear`."""
        return False

    def clear(self, context: WindowContext) -> None:
        """Notify the function that the window is cleared."""


class ProcessCall(FiredFunction):
    """ProcessWindowFunction."""

    function: ProcessWindowFunction[Any, Any, Any, Any]

    def call(self, key: Any, context: WindowContext, elements: Any) -> Iterable[Any] | None:
        return self.function.process(key, context, elements)

    @property
    def clears(self) -> bool:
        return type(self.function).clear is not ProcessWindowFunction.clear

    def clear(self, context: WindowContext) -> None:
        self.function.clear(context)


class ProcessAllCall(FiredFunction):
    """ProcessAllWindowFunction."""

    function: ProcessAllWindowFunction[Any, Any, Any]

    def call(self, key: Any, context: WindowContext, elements: Any) -> Iterable[Any] | None:
        return self.function.process(context, elements)

    @property
    def clears(self) -> bool:
        return type(self.function).clear is not ProcessAllWindowFunction.clear

    def clear(self, context: WindowContext) -> None:
        self.function.clear(context)


class ApplyCall(FiredFunction):
    """WindowFunction."""

    method = "apply"
    function: WindowFunction[Any, Any, Any, Any]

    def call(self, key: Any, context: WindowContext, elements: Any) -> Iterable[Any] | None:
        return self.function.apply(key, context.current_window, elements)


class ApplyAllCall(FiredFunction):
    """AllWindowFunction."""

    method = "apply"
    function: AllWindowFunction[Any, Any, Any]

    def call(self, key: Any, context: WindowContext, elements: Any) -> Iterable[Any] | None:
        return self.function.apply(context.current_window, elements)


class EmitCall(FiredFunction):
    """No window function: the result of reduce or aggregate is emitted."""

    def __init__(self) -> None:
        super().__init__(None)

    def call(self, key: Any, context: WindowContext, elements: Any) -> Iterable[Any] | None:
        result: Iterable[Any] = elements
        return result


class CoGroupCall(FiredFunction):
    """CoGroupFunction over the elements of two streams."""

    method = "co_group"

    def call(self, key: Any, context: WindowContext, elements: Any) -> Iterable[Any] | None:
        """Call the function. `elements` are the two lists, or one list of TaggedUnion."""
        if type(elements) is not tuple:
            elements = (
                [element.value for element in elements if element.tag == 1],
                [element.value for element in elements if element.tag == 2],
            )
        return self._call(elements[0], elements[1])

    def _call(self, first: list[Any], second: list[Any]) -> Iterable[Any] | None:
        function = self.function
        call = function.co_group if isinstance(function, CoGroupFunction) else function
        results: Iterable[Any] | None = call(first, second)
        return results


class JoinCall(CoGroupCall):
    """Calls a JoinFunction, FlatJoinFunction or plain function once per pair."""

    method = "join"

    @property
    def pair_function(self) -> Callable[[Any, Any], Any] | None:
        """Return the function that returns one result per pair, or None if a pair may have any number of results."""
        function = self.function
        if isinstance(function, FlatJoinFunction):
            return None
        if isinstance(function, FunctionWrapper):
            return function.func
        join: Callable[[Any, Any], Any] = function.join if isinstance(function, JoinFunction) else function
        return join

    def _call(self, first: list[Any], second: list[Any]) -> Iterable[Any] | None:
        join = self.pair_function
        if join is None:
            return _flat_pairs(self.function.join, first, second)
        return [join(left, right) for left in first for right in second]


def _flat_pairs(join: Callable[[Any, Any], Iterable[Any] | None], first: list[Any], second: list[Any]) -> list[Any]:
    results: list[Any] = []
    for left in first:
        for right in second:
            found = join(left, right)
            if found is not None:
                results.extend(found)
    return results
