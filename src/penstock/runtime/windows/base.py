"""The base of all window operators: life cycle, calling the window function, late records.

It imports what every operator needs: state, timers, collectors and user functions.
"""

from __future__ import annotations

from typing import Any

from penstock.common.errors import KeySelectorError, MissingTimestampError, PenstockError
from penstock.common.watermark import MAX_WATERMARK
from penstock.core.window import TaggedUnion
from penstock.runtime.exchange.partitioner import key_error
from penstock.runtime.operators.collector import Collector
from penstock.runtime.operators.emission import collect_results
from penstock.runtime.operators.function_operator import FunctionOperator
from penstock.runtime.operators.operator import OperatorContext, Output, StreamOperator
from penstock.runtime.operators.user_errors import UNKNOWN_RECORD, record_in_flight, user_error
from penstock.runtime.records.batch import KeySelect, Timestamps, Values
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.page_chunks import Growing, by_namespace
from penstock.runtime.timers.internal_timer_service import InternalTimerService
from penstock.runtime.windows.contents import ListContents
from penstock.runtime.windows.definition import WindowDefinition
from penstock.runtime.windows.emission import collect_list
from penstock.runtime.windows.functions import WindowContext
from penstock.runtime.windows.states import WindowStates

CONTENTS_STATE = "window-contents"
"""Every window operator stores its windows under this name. The kind identifies the representation, so that state of
another representation is rejected rather than misread."""


class WindowedOperator(StreamOperator):
    """Base of the window operators. A subclass stores the windows and decides when they fire."""

    keyed = True
    stateful = True
    unites_inputs = True  # a join is a window over both streams
    registers_lazily = True  # state of triggers and windows

    backend: KeyedStateBackend
    collector: Collector
    timers: InternalTimerService
    states: WindowStates
    window_context: WindowContext

    def __init__(self, definition: WindowDefinition) -> None:
        self.definition = definition
        self.key_selector = definition.key_selector
        if definition.second_key_selector is not None:
            self.key_selector2 = definition.second_key_selector
        self.lateness = definition.lateness
        self.event_time = definition.event_time
        self.clears = definition.function.clears

    # -- life cycle ---------------------------------------------------------------------------------------------

    def user_functions(self) -> list[Any]:
        """The incremental function and the window function, if defined."""
        functions = (self.definition.contents.function, self.definition.function.function)
        return [function for function in functions if function is not None]

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Create timers, state and the function's context."""
        super().setup(context, output)
        assert context.keyed_backend is not None
        self.backend = context.keyed_backend
        self.collector = Collector(context, output)
        self.timers = self._create_timers(context)
        self.states = WindowStates(context)
        self.window_context = WindowContext(
            context, self.collector, self.timers, self.states, merging=self.definition.merging
        )
        self._functions = [FunctionOperator(function) for function in self.user_functions()]
        for part in self._functions:
            part.setup(context, output)
        self._dropped = context.metrics.counter("numLateRecordsDropped")

    def _create_timers(self, context: OperatorContext) -> InternalTimerService:
        return context.create_timer_service(self._on_event_time, self._on_processing_time)

    def _register_windows(self, kind: str, contents_kind: str | None = None, growing: Growing = by_namespace) -> int:
        """Return the slot of the windows. The kind describes their representation, `growing` locates their elements."""
        held = self.definition.contents.kind if contents_kind is None else contents_kind
        keeps_elements = contents_kind is not None or isinstance(self.definition.contents, ListContents)
        held_type = self.definition.held_type  # state with a different type is rejected (rule J05)
        type_description = None if held_type is None else {"type": "WINDOW", "element": held_type}
        return self.backend.register(
            CONTENTS_STATE,
            f"{kind} with {held}",
            type_description=type_description,
            growing=growing if keeps_elements else None,
        )

    def open(self) -> None:
        """Open the functions. Checkpointed functions first restore their state."""
        for part in self._functions:
            part.open()

    def snapshot_state(self, checkpoint_id: int) -> None:
        """Let checkpointed functions write their state."""
        for part in self._functions:
            part.snapshot_state(checkpoint_id)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Notify functions that have this method."""
        for part in self._functions:
            part.notify_checkpoint_complete(checkpoint_id)

    def close(self) -> None:
        """Close the functions."""
        for part in self._functions:
            part.close()

    # -- input --------------------------------------------------------------------------------------------------

    @property
    def joins(self) -> bool:
        """Whether the windows contain the elements of two inputs."""
        return self.definition.second_key_selector is not None

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the only input, or of the first input of a join."""
        self._process(values, timestamps, 1)

    def process_batch2(self, values: Values, timestamps: Timestamps) -> None:
        """Records of the second input of a join."""
        self._process(values, timestamps, 2)

    def _process(self, values: Values, timestamps: Timestamps, side: int) -> None:
        select = self.key_selector
        if self.joins:
            values = [TaggedUnion(side, value) for value in values]
            select = _key_of_tagged(self.key_selector if side == 1 else self.key_selector2)
        try:
            self._add_all(values, timestamps, select)
        except Exception as error:
            raise self._error(error, select) from None
        self.backend.clear_current_key()
        self.collector.flush()

    def _add_all(self, values: Values, timestamps: Timestamps, select: KeySelect) -> None:
        """Add records to their windows."""
        raise NotImplementedError

    def _timestamps(self, values: Values, timestamps: Timestamps) -> list[Any]:
        """Return the timestamps for window assignment: those of the records, or the processing time."""
        if not self.event_time:
            return [self.context.clock.now] * len(values)
        return [None] * len(values) if timestamps is None else timestamps

    # -- time ---------------------------------------------------------------------------------------------------

    def _on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        raise NotImplementedError

    def _on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        raise NotImplementedError

    def advance_processing_time(self, now: int) -> None:
        """Fire windows that ended before this millisecond. Those that end with it wait for the batch's elements."""
        super().advance_processing_time(now - 1)

    def end_batch(self) -> None:
        """Fire windows that end with this batch's millisecond: all elements of the batch have been added."""
        super().advance_processing_time(self.context.clock.now)

    def flush(self) -> None:
        """Emit the results of fired windows."""
        self.collector.flush()

    # -- firing -------------------------------------------------------------------------------------------------

    def _emit(self, key: Any, window: Any, elements: Any) -> None:
        """Call the window function. The current key must be set."""
        context = self.window_context
        context.current_window = window
        results = self.definition.function.call(key, context, elements)
        if type(results) is list:
            collect_list(self.collector, results, window.max_timestamp())
        else:
            collect_results(self.collector, results, min(window.max_timestamp(), MAX_WATERMARK))

    def _clear_function(self, window: Any) -> None:
        """Notify the window function that a window is cleared. The current key must be set."""
        self.window_context.current_window = window
        self.definition.function.clear(self.window_context)

    def _late(self, value: Any, timestamp: int | None) -> None:
        """Handle a record whose windows have all expired: it is never lost silently (rule 6.8)."""
        tag = self.definition.late_tag
        if tag is None:
            self._dropped.inc()
        else:
            self.collector.side(tag, value.value if type(value) is TaggedUnion else value, timestamp)

    # -- errors -------------------------------------------------------------------------------------------------

    def _error(self, error: Exception, select: KeySelect | None = None) -> PenstockError:
        """Return the error to raise for an error in user code. It names the operator, the record and the function."""
        record = record_in_flight(error.__traceback__)
        if isinstance(error, KeySelectorError) and record is not UNKNOWN_RECORD:
            return key_error(error, record, self.context.operator_name)
        if isinstance(error, PenstockError):
            return error
        if select is not None and record is not UNKNOWN_RECORD:
            try:
                hash(select(record))  # the loops do not note what they call: call the selector again
            except Exception as again:
                return key_error(again, record, self.context.operator_name)
        return user_error(self.context, error, self.definition.function.method)

    def _check_timestamps(self, values: Values, timestamps: list[Any]) -> None:
        """Check after failed arithmetic whether a timestamp was missing."""
        if None in timestamps:
            raise MissingTimestampError(
                f"{self.definition.assigner!r} got a record without a timestamp: "
                "call with_event_time(), or assign_timestamps_and_watermarks() with a timestamp assigner, before the "
                "window, or use processing-time windows",
                operator_name=self.context.operator_name,
                record=values[timestamps.index(None)],
            ) from None


def _key_of_tagged(select: KeySelect) -> KeySelect:
    return lambda element: select(element.value)
