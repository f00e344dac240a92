"""(Keyed)BroadcastProcessFunction: a stream connected with a broadcast stream, which every task receives in full.

The first input is the stream, which reads the broadcast state. The second is the broadcast stream, which writes it.
All tasks process the same broadcast elements, so their broadcast states stay equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from penstock.common.errors import InvalidProgramError, StateAccessError
from penstock.core.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from penstock.core.output_tag import OutputTag
from penstock.core.state import BroadcastState, MapStateDescriptor, ReadOnlyBroadcastState, StateDescriptor
from penstock.runtime.operators.collector import Collector
from penstock.runtime.operators.function_operator import FunctionOperator
from penstock.runtime.operators.keyed_timers import KeyedContextBase, KeyedTimerOperator
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.operators.process import process_records
from penstock.runtime.records.batch import KeySelect, Timestamps, Values
from penstock.runtime.state.keyed_store import KeyedStateFactory

States = dict[str, BroadcastState[Any, Any]]


class ReadOnlyView(ReadOnlyBroadcastState[Any, Any]):
    """Broadcast state that rejects changes."""

    __slots__ = ("_name", "_state")

    def __init__(self, name: str, state: BroadcastState[Any, Any]) -> None:
        self._name = name
        self._state = state

    def get(self, key: Any) -> Any:
        """The value under a key, None if absent."""
        return self._state.get(key)

    def contains(self, key: Any) -> bool:
        """Whether a key is present."""
        return self._state.contains(key)

    def items(self) -> Iterable[tuple[Any, Any]]:
        """All entries."""
        return self._state.items()

    def keys(self) -> Iterable[Any]:
        """All keys."""
        return self._state.keys()

    def values(self) -> Iterable[Any]:
        """All values."""
        return self._state.values()

    def is_empty(self) -> bool:
        """Whether the state is empty."""
        return self._state.is_empty()

    def _refuse(self, *_: Any) -> NoReturn:
        raise StateAccessError(
            f"broadcast state '{self._name}' is read-only here: change it in process_broadcast_element, "
            "which every task calls with the same elements"
        )

    clear = _refuse
    put = _refuse
    put_all = _refuse
    remove = _refuse
    __setitem__ = _refuse
    __delitem__ = _refuse


class BroadcastStates:
    """The broadcast states that the operator is connected with, by name."""

    def __init__(self, context: OperatorContext, descriptors: Sequence[MapStateDescriptor]) -> None:
        self._operator_name = context.operator_name
        states = {d.name: context.operator_state.get_broadcast_state(d) for d in descriptors}
        self._writable: States = dict(states)
        self._readable = {name: ReadOnlyView(name, state.reading()) for name, state in states.items()}

    def writable(self, descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """Return the state for processing broadcast elements."""
        return self._writable[self._known(descriptor)]

    def readable(self, descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        """Return the state for processing all other elements."""
        return self._readable[self._known(descriptor)]

    def _known(self, descriptor: MapStateDescriptor) -> str:
        name: str = descriptor.name
        if name not in self._writable:
            raise InvalidProgramError(
                f"operator '{self._operator_name}' requested the broadcast state '{name}', which was not passed to "
                f"broadcast() (known: {', '.join(sorted(self._writable))})"
            )
        return name


class _ElementContext:
    """Clocks and side outputs on a stream without keys."""

    def __init__(self, operator: BroadcastProcessOperator) -> None:
        self._operator = operator
        self.current_timestamp: int | None = None

    def timestamp(self) -> int | None:
        """Timestamp of the current record; None if it has none."""
        return self.current_timestamp

    def current_processing_time(self) -> int:
        """Processing time in ms."""
        return self._operator.context.processing_time()

    def current_watermark(self) -> int:
        """The operator's event time in ms."""
        return self._operator.current_watermark

    def output(self, tag: OutputTag, value: Any) -> None:
        """Emit to a side output."""
        self._operator.collector.side(tag, value, self.current_timestamp)


class _ReadContext(_ElementContext, BroadcastProcessFunction.ReadOnlyContext):
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        """Read-only."""
        return self._operator.states.readable(state_descriptor)


class _WriteContext(_ElementContext, BroadcastProcessFunction.Context):
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """Writable."""
        return self._operator.states.writable(state_descriptor)


class BroadcastProcessOperator(FunctionOperator):
    """Runs a BroadcastProcessFunction."""

    stateful = True

    function: BroadcastProcessFunction[Any, Any, Any]
    collector: Collector
    states: BroadcastStates

    def __init__(
        self, function: BroadcastProcessFunction[Any, Any, Any], descriptors: Sequence[MapStateDescriptor]
    ) -> None:
        super().__init__(function)
        self.descriptors = list(descriptors)

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Create states and contexts."""
        super().setup(context, output)
        self.collector = Collector(context, output)
        self.states = BroadcastStates(context, self.descriptors)
        self._read_context = _ReadContext(self)
        self._write_context = _WriteContext(self)

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Elements of the stream."""
        process = self.function.process_element
        process_records(self.collector, self.context, self._read_context, process, values, timestamps)

    def process_batch2(self, values: Values, timestamps: Timestamps) -> None:
        """Broadcast elements."""
        process, method = self.function.process_broadcast_element, "process_broadcast_element"
        process_records(self.collector, self.context, self._write_context, process, values, timestamps, method)

    def flush(self) -> None:
        """Emit the collected records."""
        self.collector.flush()


class _KeyedClocks(KeyedContextBase):
    """Both clocks, read from the context."""

    _operator: KeyedBroadcastProcessOperator

    def current_processing_time(self) -> int:
        """Processing time in ms."""
        return self._operator.context.processing_time()

    def current_watermark(self) -> int:
        """The operator's event time in ms."""
        return self._operator.timers.current_watermark


class _KeyedReadContext(_KeyedClocks, KeyedBroadcastProcessFunction.OnTimerContext):
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        """Read-only."""
        return self._operator.states.readable(state_descriptor)


class _KeyedWriteContext(_KeyedClocks, KeyedBroadcastProcessFunction.Context):
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """Writable."""
        return self._operator.states.writable(state_descriptor)

    def timer_service(self) -> NoReturn:
        """Reject timers: a broadcast element has no key."""
        raise InvalidProgramError(
            f"operator '{self._operator.context.operator_name}' requested timers in process_broadcast_element, where "
            "there is no current key: set timers in process_element, and read clocks with ctx.current_watermark()"
        )

    def apply_to_keyed_state(self, state_descriptor: StateDescriptor, function: Callable[[Any, Any], None]) -> None:
        """Call `function(key, state)` for every key of this task that has the state."""
        self._operator.apply_to_keyed_state(state_descriptor, function)


class KeyedBroadcastProcessOperator(KeyedTimerOperator):
    """Runs a KeyedBroadcastProcessFunction."""

    function: KeyedBroadcastProcessFunction[Any, Any, Any, Any]
    states: BroadcastStates

    def __init__(
        self,
        function: KeyedBroadcastProcessFunction[Any, Any, Any, Any],
        key_selector: KeySelect,
        descriptors: Sequence[MapStateDescriptor],
    ) -> None:
        super().__init__(function)
        self.key_selector = key_selector
        self.descriptors = list(descriptors)

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Create states and contexts."""
        super().setup(context, output)
        self.states = BroadcastStates(context, self.descriptors)
        self._write_context = _KeyedWriteContext(self)
        self._keyed_states = KeyedStateFactory(self.backend, context.processing_time)

    def create_context(self) -> _KeyedReadContext:
        """Create the `ctx` for elements of the keyed stream and for timers."""
        return _KeyedReadContext(self)

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Elements of the keyed stream."""
        self.run_keyed(self.key_selector, self.function.process_element, "process_element", values, timestamps)

    def process_batch2(self, values: Values, timestamps: Timestamps) -> None:
        """Broadcast elements. They have no current key."""
        process, method = self.function.process_broadcast_element, "process_broadcast_element"
        process_records(self.collector, self.context, self._write_context, process, values, timestamps, method)

    def apply_to_keyed_state(self, descriptor: StateDescriptor, function: Callable[[Any, Any], None]) -> None:
        """Visit every key that has the state. Keys come in page order, so the function must not depend on the order."""
        backend = self.backend
        state = self._keyed_states.create(descriptor)
        slot = next(i for i, (name, _) in enumerate(backend.directory.layout) if name == descriptor.name)
        visit = getattr(function, "process", function)
        try:
            for key in backend.keys(slot):
                backend.set_current_key(key)
                visit(key, state)
        finally:
            backend.clear_current_key()
