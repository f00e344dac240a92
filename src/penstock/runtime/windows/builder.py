"""Build an operator from a window definition: check it, and select the fastest operator with exactly its semantics.

A wrong definition is rejected here, when the program is defined, not when the first record arrives.

This module imports every window operator, to choose one of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.typeinfo import TypeInformation
from penstock.core.functions import (
    AggregateFunction,
    AllWindowFunction,
    CoGroupFunction,
    FlatJoinFunction,
    Function,
    FunctionWrapper,
    JoinFunction,
    KeySelector,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from penstock.core.output_tag import OutputTag
from penstock.core.return_values import check_arity, check_returns
from penstock.core.window import (
    CountEvictor,
    CountTrigger,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    Evictor,
    GlobalWindows,
    MergingWindowAssigner,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    Trigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from penstock.core.window.session import SessionWindows
from penstock.runtime.records.batch import KeySelect
from penstock.runtime.state.state_types import describe
from penstock.runtime.windows.base import WindowedOperator
from penstock.runtime.windows.contents import AggregateContents, Contents, ListContents, ReduceContents
from penstock.runtime.windows.counted import CountWindowOperator
from penstock.runtime.windows.definition import WindowDefinition
from penstock.runtime.windows.evicting import EvictingMergingWindowOperator, EvictingWindowOperator
from penstock.runtime.windows.functions import (
    ApplyAllCall,
    ApplyCall,
    CoGroupCall,
    EmitCall,
    FiredFunction,
    JoinCall,
    ProcessAllCall,
    ProcessCall,
)
from penstock.runtime.windows.merging import MergingWindowOperator
from penstock.runtime.windows.session import SessionWindowOperator
from penstock.runtime.windows.sliding import SlidingWindowOperator
from penstock.runtime.windows.sliding_count import sliding_count_operator
from penstock.runtime.windows.tumbling import TumblingWindowOperator
from penstock.runtime.windows.tumbling_join import TumblingJoinOperator
from penstock.runtime.windows.window_operator import WindowOperator

_FIXED = (
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
)
_SESSIONS = (
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
)


def build_window_operator(
    assigner: WindowAssigner[Any, Any],
    *,
    key_selector: KeySelector | KeySelect | None = None,
    reduce_function: ReduceFunction | Callable[[Any, Any], Any] | None = None,
    aggregate_function: AggregateFunction | None = None,
    window_function: Any = None,
    trigger: Trigger[Any, Any] | None = None,
    evictor: Evictor[Any, Any] | None = None,
    allowed_lateness_ms: int = 0,
    late_tag: OutputTag | None = None,
    all_window: bool = False,
    held_type: TypeInformation | None = None,
) -> WindowedOperator:
    """Build the operator of `window(...)` or, with `all_window`, of `window_all(...)`.

    Pass a reduce or an aggregate function, or a window function (process or apply), or both. With both, the window
    function receives one element: the result. `held_type` is the declared type of the window contents: elements or
    accumulators.
    """
    if all_window == (key_selector is not None):
        raise InvalidProgramError("a window needs a key selector, and window_all has none")
    definition = WindowDefinition(
        assigner=assigner,
        trigger=_check_trigger(assigner, trigger),
        contents=_contents(reduce_function, aggregate_function, window_function),
        function=_fired_function(window_function, all_window=all_window),
        key_selector=_same_key if key_selector is None else to_key_select(key_selector),
        evictor=_check_evictor(evictor),
        allowed_lateness=_check_lateness(allowed_lateness_ms),
        late_tag=_check_tag(late_tag),
        held_type=describe(held_type),
    )
    return _operator_for(definition)


def build_window_join_operator(
    assigner: WindowAssigner[Any, Any],
    *,
    first_key_selector: KeySelector | KeySelect,
    second_key_selector: KeySelector | KeySelect,
    function: Any,
    co_group: bool = False,
    trigger: Trigger[Any, Any] | None = None,
    evictor: Evictor[Any, Any] | None = None,
    allowed_lateness_ms: int = 0,
    late_tag: OutputTag | None = None,
) -> WindowedOperator:
    """Build the operator of `a.join(b)` or, with `co_group`, of `a.co_group(b)`. It has two inputs.

    A join takes a JoinFunction, a FlatJoinFunction or a plain function of a pair. A co-group takes a CoGroupFunction or
    a plain function of two lists. Triggers and evictors receive the elements of both inputs as TaggedUnion.
    """
    wanted = CoGroupFunction if co_group else (JoinFunction, FlatJoinFunction)
    if not isinstance(function, wanted) and (isinstance(function, Function) or not callable(function)):
        names = "a CoGroupFunction" if co_group else "a JoinFunction, a FlatJoinFunction"
        raise InvalidProgramError(f"apply() needs {names} or a function of two arguments, got {shorten(function)}")
    definition = WindowDefinition(
        assigner=assigner,
        trigger=_check_trigger(assigner, trigger),
        contents=ListContents(),
        function=CoGroupCall(function) if co_group else JoinCall(function),
        key_selector=to_key_select(first_key_selector),
        second_key_selector=to_key_select(second_key_selector),
        evictor=_check_evictor(evictor),
        allowed_lateness=_check_lateness(allowed_lateness_ms),
        late_tag=_check_tag(late_tag),
    )
    return _operator_for(definition)


def count_window_parts(
    size: int, slide: int = 0
) -> tuple[WindowAssigner[Any, Any], Trigger[Any, Any], Evictor[Any, Any] | None]:
    """Return assigner, trigger and evictor of `count_window(size[, slide])` (rule 6.4).

    Without a slide, a window consists of the next `size` elements. With a slide, a window fires every `slide` elements
    and contains the last `size` elements, so the first windows contain fewer.

    >>> count_window_parts(4, 2)
    (GlobalWindows(), CountTrigger(2), CountEvictor(4))
    """
    for value, what in ((size, "size"), (slide or 1, "slide")):
        if not is_int(value) or value <= 0:
            raise InvalidProgramError(f"the {what} of a count window must be a positive integer, got {value!r}")
    if slide:
        return GlobalWindows.create(), CountTrigger.of(slide), CountEvictor.of(size)
    return GlobalWindows.create(), PurgingTrigger.of(CountTrigger.of(size)), None


# -- choosing the operator --------------------------------------------------------------------------------------------


def _operator_for(definition: WindowDefinition) -> WindowedOperator:
    assigner = definition.assigner
    if _slides_by_count(definition):
        size, slide = definition.evictor.max_count, definition.trigger.window_size  # type: ignore[attr-defined, union-attr]
        return sliding_count_operator(definition, size, slide)
    if definition.evictor is not None:
        return (EvictingMergingWindowOperator if definition.merging else EvictingWindowOperator)(definition)
    if _fires_when_full(definition):
        return CountWindowOperator(definition, definition.trigger.nested_trigger.window_size)  # type: ignore[attr-defined]
    if _fires_at_end(definition):
        if type(assigner) in _FIXED:
            size, slide, offset = assigner.size, assigner.slide, assigner.offset  # type: ignore[attr-defined]
            if slide == size:
                kind = TumblingWindowOperator if definition.second_key_selector is None else TumblingJoinOperator
                return kind(definition, size, offset)
            if slide < size and definition.contents.mergeable:
                return SlidingWindowOperator(definition, size, slide, offset)
        elif type(assigner) in _SESSIONS:
            assert isinstance(assigner, SessionWindows)
            return SessionWindowOperator(definition, assigner)
    return (MergingWindowOperator if definition.merging else WindowOperator)(definition)


def _fires_when_full(definition: WindowDefinition) -> bool:
    """Whether windows fire by count, as with `count_window(size)`."""
    trigger = definition.trigger
    return (
        type(definition.assigner) is GlobalWindows
        and type(trigger) is PurgingTrigger
        and type(trigger.nested_trigger) is CountTrigger
    )


def _slides_by_count(definition: WindowDefinition) -> bool:
    """Whether windows slide by count, as with `count_window(size, slide)`."""
    evictor = definition.evictor
    return (
        type(definition.assigner) is GlobalWindows
        and type(definition.trigger) is CountTrigger
        and type(evictor) is CountEvictor
        and evictor.max_count > 0
        and not evictor.do_evict_after
        and definition.second_key_selector is None
    )


def _fires_at_end(definition: WindowDefinition) -> bool:
    """Whether windows fire at their end and for every late element, as with the default triggers."""
    trigger = definition.trigger
    if type(trigger) is PurgingTrigger and definition.lateness == 0:
        trigger = trigger.nested_trigger  # purging makes no difference: the window is removed when it fires
    return type(trigger) is (EventTimeTrigger if definition.event_time else ProcessingTimeTrigger)


# -- checks -------------------------------------------------------------------------------------------------------


def _check_trigger(assigner: WindowAssigner[Any, Any], trigger: Trigger[Any, Any] | None) -> Trigger[Any, Any]:
    if not isinstance(assigner, WindowAssigner):
        raise InvalidProgramError(f"window() needs a WindowAssigner, got {shorten(assigner)}")
    if trigger is not None and not isinstance(trigger, Trigger):
        raise InvalidProgramError(f"trigger() needs a Trigger, got {shorten(trigger)}")
    chosen = assigner.get_default_trigger(None) if trigger is None else trigger
    if isinstance(assigner, MergingWindowAssigner) and not chosen.can_merge():
        raise InvalidProgramError(
            f"{assigner!r} merges windows, but {chosen!r} does not support merging: "
            "can_merge() must return True, and on_merge() must be implemented"
        )
    return chosen


def _check_evictor(evictor: Evictor[Any, Any] | None) -> Evictor[Any, Any] | None:
    if evictor is not None and not isinstance(evictor, Evictor):
        raise InvalidProgramError(f"evictor() needs an Evictor, got {shorten(evictor)}")
    return evictor


def _check_lateness(lateness: int) -> int:
    if not is_int(lateness) or lateness < 0:
        raise InvalidProgramError(f"the allowed lateness must not be negative, got {lateness!r}")
    return lateness


def _check_tag(tag: OutputTag | None) -> OutputTag | None:
    if tag is not None and not isinstance(tag, OutputTag):
        raise InvalidProgramError(f"side_output_late_data() needs an OutputTag, got {shorten(tag)}")
    return tag


def _contents(reduce_function: Any, aggregate_function: Any, window_function: Any) -> Contents:
    if reduce_function is not None and aggregate_function is not None:
        raise InvalidProgramError("a window takes a reduce function or an aggregate function, not both")
    if aggregate_function is not None:
        if not isinstance(aggregate_function, AggregateFunction):
            raise InvalidProgramError(f"aggregate() needs an AggregateFunction, got {shorten(aggregate_function)}")
        return AggregateContents(aggregate_function)
    if reduce_function is not None:
        if not isinstance(reduce_function, ReduceFunction) and (
            isinstance(reduce_function, Function) or not callable(reduce_function)
        ):
            raise InvalidProgramError(
                f"reduce() needs a ReduceFunction or a function of two values, got {shorten(reduce_function)}"
            )
        if isinstance(reduce_function, Function) or inspect.isroutine(reduce_function):
            check_arity(reduce_function, "reduce", "the value so far", "the element")
        check_returns(reduce_function, "reduce", "the value of both elements")
        return ReduceContents(reduce_function)
    if window_function is None:
        raise InvalidProgramError("a window needs a function: call reduce(), aggregate(), process() or apply()")
    return ListContents()


def _fired_function(function: Any, *, all_window: bool) -> FiredFunction:
    if function is None:
        return EmitCall()
    kinds: dict[type, type[FiredFunction]] = (
        {ProcessAllWindowFunction: ProcessAllCall, AllWindowFunction: ApplyAllCall}
        if all_window
        else {ProcessWindowFunction: ProcessCall, WindowFunction: ApplyCall}
    )
    for kind, call in kinds.items():
        if isinstance(function, kind):
            return call(function)
    names = " or ".join(kind.__name__ for kind in kinds)
    where = "window_all()" if all_window else "window() on a keyed stream"
    raise InvalidProgramError(f"{where} needs a {names}, got {shorten(function)}")


def to_key_select(selector: Any) -> KeySelect:
    """Return a key selector as a plain callable."""
    if isinstance(selector, FunctionWrapper):
        return selector.func
    select = selector.get_key if isinstance(selector, KeySelector) else selector
    if not callable(select):
        raise InvalidProgramError(f"a key selector must be a KeySelector or a function, got {shorten(selector)}")
    result: KeySelect = select
    return result


def _same_key(value: Any) -> int:
    """Return the same key for every element: window_all has one window for all."""
    return 0
