"""Wraps plain callables, so that the runtime deals with function objects only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.core.functions.base import (
    FilterFunction,
    FlatMapFunction,
    Function,
    KeySelector,
    MapFunction,
    Partitioner,
    ReduceFunction,
)

__all__ = [
    "FilterFunctionWrapper",
    "FlatMapFunctionWrapper",
    "FunctionWrapper",
    "KeySelectorFunctionWrapper",
    "MapFunctionWrapper",
    "PartitionerFunctionWrapper",
    "ReduceFunctionWrapper",
]


class FunctionWrapper(Function):
    """A plain callable that acts as a function object."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self._func = func

    @property
    def func(self) -> Callable[..., Any]:
        """The callable itself: inner loops may call it directly."""
        return self._func

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self._func, '__qualname__', self._func)})"


class MapFunctionWrapper(FunctionWrapper, MapFunction):
    """
    >>> MapFunctionWrapper(lambda value: value + 1).map(1)
    2
    """

    def map(self, value: Any) -> Any:
        return self._func(value)


class FlatMapFunctionWrapper(FunctionWrapper, FlatMapFunction):
    """
    >>> FlatMapFunctionWrapper(str.split).flat_map("a b")
    ['a', 'b']
    """

    def flat_map(self, value: Any) -> Iterable[Any] | None:
        result: Iterable[Any] | None = self._func(value)
        return result


class FilterFunctionWrapper(FunctionWrapper, FilterFunction):
    """
    >>> FilterFunctionWrapper(lambda value: value > 1).filter(1)
    False
    """

    def filter(self, value: Any) -> bool:
        keep: bool = self._func(value)
        return keep


class ReduceFunctionWrapper(FunctionWrapper, ReduceFunction):
    """
    >>> ReduceFunctionWrapper(max).reduce(1, 2)
    2
    """

    def reduce(self, value1: Any, value2: Any) -> Any:
        return self._func(value1, value2)


class KeySelectorFunctionWrapper(FunctionWrapper, KeySelector):
    """
    >>> KeySelectorFunctionWrapper(lambda value: value[0]).get_key(("a", 1))
    'a'
    """

    def get_key(self, value: Any) -> Any:
        return self._func(value)


class PartitionerFunctionWrapper(FunctionWrapper, Partitioner):
    """
    >>> PartitionerFunctionWrapper(lambda key, n: key % n).partition(7, 4)
    3
    """

    def partition(self, key: Any, num_partitions: int) -> int:
        target: int = self._func(key, num_partitions)
        return target
