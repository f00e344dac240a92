"""The contents of a window: one reduced value, one accumulator, or all elements (rule 6.5)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.core.functions import AggregateFunction, FunctionWrapper, ReduceFunction
from penstock.core.return_values import can_return_something
from penstock.runtime.records.isolation import copied


class Contents(ABC):
    """The contents of a window, and their conversion to elements when the window fires."""

    function: Any = None
    """The user's function, if any."""
    mergeable: bool = True
    """Whether `merge` is implemented."""
    kind: str
    """Describes the content of the state. State of another kind is rejected."""

    @abstractmethod
    def first(self, value: Any) -> Any:
        """Return the contents after the first element."""

    @abstractmethod
    def fold(self, contents: Any, value: Any) -> Any:
        """Return the contents with one more element."""

    @abstractmethod
    def merge(self, contents: Any, other: Any) -> Any:
        """Return the merged contents of two windows. The caller must not use either of them afterwards."""

    @property
    def merger(self) -> Callable[[Any, Any], Any]:
        """Return `merge` without its checks, for contents that are known to be mergeable."""
        return self.merge

    @abstractmethod
    def elements(self, contents: Any, *, kept: bool) -> list[Any]:
        """Return the elements for the window function. If the contents are `kept`, they must be protected against
        changes by the function.
        """


class ReduceContents(Contents):
    """One reduced value. The first element is taken unchanged."""

    kind = "reduced values"

    def __init__(self, function: ReduceFunction | Callable[[Any, Any], Any]) -> None:
        self.function = function

    @property
    def reduce(self) -> Callable[[Any, Any], Any]:
        """Return reduce(current, new) as a plain callable."""
        function = self.function
        if isinstance(function, FunctionWrapper):
            return function.func
        reduce: Callable[[Any, Any], Any] = function.reduce if isinstance(function, ReduceFunction) else function
        return reduce

    def first(self, value: Any) -> Any:
        return value

    def fold(self, contents: Any, value: Any) -> Any:
        return self.reduce(contents, value)

    def merge(self, contents: Any, other: Any) -> Any:
        return self.reduce(contents, other)

    @property
    def merger(self) -> Callable[[Any, Any], Any]:
        return self.reduce

    def elements(self, contents: Any, *, kept: bool) -> list[Any]:
        return [copied(contents) if kept else contents]


class AggregateContents(Contents):
    """One accumulator."""

    kind = "accumulators"

    def __init__(self, function: AggregateFunction) -> None:
        self.function: AggregateFunction = function
        self.mergeable = can_return_something(function.merge)

    def first(self, value: Any) -> Any:
        return self.function.add(value, self.function.create_accumulator())

    def fold(self, contents: Any, value: Any) -> Any:
        return self.function.add(value, contents)

    def merge(self, contents: Any, other: Any) -> Any:
        if not self.mergeable:
            raise InvalidProgramError(
                f"two windows must be merged, but {type(self.function).__name__}.merge() is not implemented: "
                "implement it to return one accumulator for both"
            )
        return self.function.merge(contents, other)

    @property
    def merger(self) -> Callable[[Any, Any], Any]:
        return self.function.merge

    def elements(self, contents: Any, *, kept: bool) -> list[Any]:
        result = self.function.get_result(contents)
        return [copied(result) if kept else result]


class ListContents(Contents):
    """All elements, in the order of arrival."""

    kind = "elements"

    def first(self, value: Any) -> Any:
        return [value]

    def fold(self, contents: Any, value: Any) -> Any:
        contents.append(value)
        return contents

    def merge(self, contents: Any, other: Any) -> Any:
        contents.extend(other)
        return contents

    def elements(self, contents: Any, *, kept: bool) -> list[Any]:
        elements: list[Any] = contents if not kept and type(contents) is list else contents[:]
        return elements


def fold_elements(contents: Contents, values: list[Any]) -> list[Any] | None:
    """Return the elements for the window function, or None if reduce has no elements."""
    if isinstance(contents, AggregateContents):
        accumulator = contents.function.create_accumulator()
        for value in values:
            accumulator = contents.function.add(value, accumulator)
        return [contents.function.get_result(accumulator)]
    if isinstance(contents, ReduceContents):
        if not values:
            return None
        reduced = copied(values[0])
        for value in values[1:]:
            reduced = contents.reduce(reduced, value)
        return [copied(reduced)]
    return values
