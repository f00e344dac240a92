"""Plain functions with state: ``keyed.process(fn)``, where ``fn(record, state)`` yields results.

Such a function becomes a KeyedProcessFunction with one value state named "state".
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import partial
from types import GeneratorType
from typing import Any

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.time import Duration, Time, to_millis
from penstock.common.types import Row
from penstock.core.declared_state import Ttl
from penstock.core.functions import KeyedProcessFunction, RuntimeContext
from penstock.core.state import ValueState
from penstock.datastream.function_checks import class_hint

__all__ = ["StatefulFunction", "Timers", "stateful_function"]

_IMMUTABLE = (bool, int, float, str, bytes, tuple, frozenset, type(None))
_SINGLE = (str, bytes, tuple, Mapping, Row)


class Timers:
    """The third parameter of a plain function with state: the key, the clocks, and the timers of the key."""

    def __init__(self) -> None:
        self._ctx: Any = None
        self._forgotten = False
        self._has_on_timer = True

    @property
    def key(self) -> Any:
        """The key of the record or timer."""
        return self._ctx.get_current_key()

    @property
    def timestamp(self) -> int | None:
        """The timestamp of the record in ms, or None. In ``on_timer``, the time of the timer."""
        timestamp: int | None = self._ctx.timestamp()
        return timestamp

    @property
    def watermark(self) -> int:
        """The current watermark (event time) in ms."""
        watermark: int = self._ctx.timer_service().current_watermark()
        return watermark

    @property
    def now(self) -> int:
        """The current processing time in ms."""
        now: int = self._ctx.timer_service().current_processing_time()
        return now

    def set(
        self,
        at: int | None = None,
        *,
        after: Time | Duration | timedelta | int | str | None = None,
        processing_time: bool = False,
    ) -> int:
        """Call ``on_timer`` ``at`` a time in ms, or some time ``after`` the record. Return that time.

        Timers use event time unless ``processing_time`` is True; then ``after`` counts from now. Setting the same time
        twice sets one timer.
        """
        if (at is None) is (after is None):
            raise InvalidProgramError("set() needs a time: timers.set(at) or timers.set(after='5 min')")
        if after is not None:
            base = self.now if processing_time else self.timestamp
            if base is None:
                raise InvalidProgramError(
                    "set(after=...) counts from the timestamp of the record, but it has none: assign timestamps to the "
                    "stream before key_by(), or use processing_time=True"
                )
            at = base + to_millis(after)
        assert at is not None
        if not self._has_on_timer:
            raise InvalidProgramError("nothing handles this timer: pass process(..., on_timer=...)")
        service = self._ctx.timer_service()
        if processing_time:
            service.register_processing_time_timer(at)
        else:
            service.register_event_time_timer(at)
        return at

    def cancel(self, at: int | None, *, processing_time: bool = False) -> None:
        """Delete the timer for that time, if there is one. ``at`` may be None."""
        if at is None:
            return
        service = self._ctx.timer_service()
        if processing_time:
            service.delete_processing_time_timer(at)
        else:
            service.delete_event_time_timer(at)

    def forget(self) -> None:
        """Clear the state of the key when the function returns. Its timers remain."""
        self._forgotten = True

    def bind(self, ctx: Any, *, has_on_timer: bool = True) -> None:
        """Set the context of the current record or timer. The runtime calls this."""
        self._ctx = ctx
        self._forgotten = False
        self._has_on_timer = has_on_timer

    @property
    def forgotten(self) -> bool:
        """Whether :meth:`forget` was called for the current record or timer."""
        return self._forgotten


class StatefulFunction(KeyedProcessFunction[Any, Any, Any]):
    """Calls a plain function with the record, the state of its key and optionally timers."""

    def __init__(
        self,
        func: Callable[..., Any],
        new_state: Callable[[], Any],
        on_timer: Callable[..., Any] | None,
        *,
        takes_timers: bool,
        ttl: Ttl,
    ) -> None:
        self._func = func
        self._new_state = new_state
        self._on_timer = on_timer
        self._takes_timers = takes_timers
        self._declaration: Any = ValueState(name="state", ttl=ttl)
        self._timers = Timers()

    def open(self, runtime_context: RuntimeContext) -> None:
        self._state: ValueState[Any] = runtime_context.get_state(self._declaration.descriptor())

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        state = self._state.value()
        if state is None:
            state = self._new_state()
        if self._takes_timers:
            self._timers.bind(ctx, has_on_timer=self._on_timer is not None)
            results = self._func(value, state, self._timers)
        else:
            results = self._func(value, state)
        if results is not None:
            if type(results) is not GeneratorType:
                _check_results(self._func, results)
            yield from results
        self._keep(state)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any]:
        if self._on_timer is None:
            return
        state = self._state.value()
        if state is None:
            state = self._new_state()
        self._timers.bind(ctx)
        results = self._on_timer(state, self._timers)
        if results is not None:
            if type(results) is not GeneratorType:
                _check_results(self._on_timer, results)
            yield from results
        self._keep(state)

    def _keep(self, state: Any) -> None:
        if self._timers.forgotten:
            self._state.clear()
        else:
            self._state.update(state)


def stateful_function(func: Any, *, state: Any, on_timer: Any, ttl: Ttl) -> StatefulFunction:
    """Return the function object for a plain function, whose state class is an argument or an annotation."""
    name = getattr(func, "__name__", repr(func))
    if isinstance(func, type) or not callable(func):
        raise InvalidProgramError(
            "process() on a keyed stream takes a KeyedProcessFunction or a function of a record and its state, got "
            f"{shorten(func)}{class_hint(func)}"
        )
    parameters = _positional(func, name)
    if not 2 <= len(parameters) <= 3:
        raise InvalidProgramError(
            f"process() on a keyed stream takes a KeyedProcessFunction or a function of (record, state) or (record, "
            f"state, timers), but {name}() takes {len(parameters)} parameter{'s' * (len(parameters) != 1)}"
        )
    if on_timer is not None:
        timer_name = getattr(on_timer, "__name__", repr(on_timer))
        if not callable(on_timer) or len(_positional(on_timer, timer_name)) != 2:
            raise InvalidProgramError(f"on_timer must be a function of (state, timers), got {shorten(on_timer)}")
    new_state = state if state is not None else _annotated_class(func, parameters[1], name)
    if not callable(new_state):
        raise InvalidProgramError(
            f"state must be a class, such as a dataclass, or a function without parameters, got {shorten(state)}"
        )
    _check_new(new_state, name)
    return StatefulFunction(func, new_state, on_timer, takes_timers=len(parameters) == 3, ttl=ttl)


def _check_results(func: Any, results: Any) -> None:
    """Reject a single result that is returned instead of yielded, even if Python could iterate over it."""
    if (isinstance(results, _SINGLE) and results != ()) or not isinstance(results, Iterable):
        name = getattr(func, "__name__", repr(func))
        raise InvalidProgramError(f"{name}() returned {shorten(results)}: yield each result, or return a list of them")


def _positional(func: Callable[..., Any], name: str) -> list[str]:
    """Return the names of the parameters without a default."""
    try:
        parameters = inspect.signature(func).parameters.values()
    except (TypeError, ValueError):
        raise InvalidProgramError(f"{name} has no readable signature: wrap it in a function") from None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [each.name for each in parameters if each.kind in kinds and each.default is each.empty]


def _annotated_class(func: Callable[..., Any], parameter: str, name: str) -> Any:
    while isinstance(func, partial):
        func = func.func
    target = func if inspect.isroutine(func) else type(func).__call__
    try:
        annotation = typing.get_type_hints(target).get(parameter)
    except NameError as error:
        raise InvalidProgramError(f"the annotations of {name}() cannot be read ({error}): pass state=...") from None
    annotation = typing.get_origin(annotation) or annotation
    if not isinstance(annotation, type):
        raise InvalidProgramError(
            f"the state of {name}() has no class: annotate its parameter '{parameter}' with a dataclass, "
            "or pass state=..."
        )
    return annotation


def _check_new(new_state: Callable[[], Any], name: str) -> None:
    try:
        created = new_state()
    except Exception as error:
        raise InvalidProgramError(
            f"for every new key, the state of {name}() is created by {getattr(new_state, '__name__', new_state)}(), "
            f"which fails: {error}. Give its fields defaults"
        ) from None
    if isinstance(created, _IMMUTABLE):
        raise InvalidProgramError(
            f"{name}() changes its state in place, but a value of type {type(created).__name__} is immutable: "
            "use a dataclass with a field for it"
        )
