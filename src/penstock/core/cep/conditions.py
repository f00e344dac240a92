"""Conditions: they accept or reject an event, based on the event alone or on the earlier events of the match."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from penstock.common.errors import InvalidProgramError, shorten
from penstock.core.functions import Function

__all__ = [
    "BooleanConditions",
    "FunctionCondition",
    "IterativeCondition",
    "IterativeFunctionCondition",
    "RichAndCondition",
    "RichIterativeCondition",
    "RichNotCondition",
    "RichOrCondition",
    "SimpleCondition",
    "SubtypeCondition",
    "as_condition",
]

T = TypeVar("T")


class IterativeCondition(Function, Generic[T]):
    """Accepts or rejects an event. It may look at the earlier events of the partial match.

    Implement ``filter(self, value, ctx)``. A condition is called several times for one event, in no particular order.
    Keep it free of side effects.
    """

    class Context(ABC):
        """The context of a condition."""

        __slots__ = ()

        @abstractmethod
        def get_events_for_pattern(self, name: str) -> list[Any]:
            """Return the events that this partial match took for a pattern, in order, without the current event."""

        @abstractmethod
        def timestamp(self) -> int:
            """Return the timestamp of the current event; in processing time, the time of its processing."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the processing time in ms."""

    @abstractmethod
    def filter(self, *args: Any, **kwargs: Any) -> bool:
        """Whether to accept the event: ``filter(self, value, ctx)``; simple conditions have no ``ctx``."""


class RichIterativeCondition(IterativeCondition[T]):
    """Flink's name for a condition with ``open`` and ``close``. Here, every condition has them."""


class SimpleCondition(IterativeCondition[T]):
    """A condition on the event alone. It is cheaper because its result is the same for all partial matches.

    >>> SimpleCondition.of(lambda price: price > 10).filter(11)
    True
    """

    @abstractmethod
    def filter(self, value: T) -> bool:
        """Whether to accept the event."""

    @staticmethod
    def of(function: Callable[[Any], Any]) -> SimpleCondition[Any]:
        """Create a condition from a function of the event."""
        if not callable(function):
            raise InvalidProgramError(f"SimpleCondition.of() takes a function of the event, got {shorten(function)}")
        return FunctionCondition(function)


class FunctionCondition(SimpleCondition[Any]):
    """A function of the event as a condition."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def filter(self, value: Any) -> bool:
        """Return the function's result."""
        return bool(self.function(value))


class IterativeFunctionCondition(IterativeCondition[Any]):
    """A function of event and context as a condition."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function

    def filter(self, value: Any, ctx: IterativeCondition.Context) -> bool:
        """Return the function's result."""
        return bool(self.function(value, ctx))


class SubtypeCondition(SimpleCondition[Any]):
    """Accepts events of a class and its subclasses."""

    def __init__(self, subtype: type) -> None:
        self.subtype = subtype

    def filter(self, value: Any) -> bool:
        """Whether the event is an instance of the class."""
        return isinstance(value, self.subtype)


class _Everything(SimpleCondition[Any]):
    def filter(self, value: Any) -> bool:
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return BooleanConditions.true_function, ()


class BooleanConditions:
    """Conditions that do not depend on the event."""

    _EVERYTHING: SimpleCondition[Any] = _Everything()

    @staticmethod
    def true_function() -> SimpleCondition[Any]:
        """Accepts every event."""
        return BooleanConditions._EVERYTHING


class RichAndCondition(IterativeCondition[Any]):
    """Both conditions. The second one is evaluated only if the first one holds."""

    def __init__(self, left: IterativeCondition[Any], right: IterativeCondition[Any]) -> None:
        self.left = left
        self.right = right

    def filter(self, value: Any, ctx: IterativeCondition.Context) -> bool:
        """Whether both conditions hold."""
        return ask(self.left, value, ctx) and ask(self.right, value, ctx)


class RichOrCondition(IterativeCondition[Any]):
    """Either condition. The second one is evaluated only if the first one does not hold."""

    def __init__(self, left: IterativeCondition[Any], right: IterativeCondition[Any]) -> None:
        self.left = left
        self.right = right

    def filter(self, value: Any, ctx: IterativeCondition.Context) -> bool:
        """Whether either condition holds."""
        return ask(self.left, value, ctx) or ask(self.right, value, ctx)


class RichNotCondition(IterativeCondition[Any]):
    """The negation of a condition."""

    def __init__(self, original: IterativeCondition[Any]) -> None:
        self.original = original

    def filter(self, value: Any, ctx: IterativeCondition.Context) -> bool:
        """Whether the condition does not hold."""
        return not ask(self.original, value, ctx)


def ask(condition: IterativeCondition[Any], value: Any, ctx: IterativeCondition.Context) -> bool:
    """Evaluate a simple or iterative condition."""
    if isinstance(condition, SimpleCondition):
        return bool(condition.filter(value))
    return bool(condition.filter(value, ctx))


def as_condition(condition: Any, where: str) -> IterativeCondition[Any]:
    """Return a condition object for the user's argument.

    A function with a second parameter (without a default value) is iterative: it gets event and context.

    >>> type(as_condition(lambda event: True, "x")).__name__, type(as_condition(lambda event, ctx: True, "x")).__name__
    ('FunctionCondition', 'IterativeFunctionCondition')
    """
    if isinstance(condition, IterativeCondition):
        return condition
    is_condition_class = isinstance(condition, type) and issubclass(condition, IterativeCondition)
    if is_condition_class or not callable(condition):
        hint = " (pass an instance of the class)" if is_condition_class else ""
        raise InvalidProgramError(f"{where} takes a condition or a function, got {shorten(condition)}{hint}")
    if inspect.iscoroutinefunction(condition):
        raise InvalidProgramError(f"{where} takes a function that returns true or false, but this one is asynchronous")
    if _takes_context(condition):
        return IterativeFunctionCondition(condition)
    return FunctionCondition(condition)


def _takes_context(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature
        return False
    positional = [one for one in parameters if one.kind in {one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD}]
    if len(positional) < 2:
        return False
    # A default value usually binds a variable, as in `lambda event, limit=limit: event > limit`.
    return positional[1].default is inspect.Parameter.empty or positional[1].name in {"ctx", "context"}
