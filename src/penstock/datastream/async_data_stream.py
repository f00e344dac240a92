"""Asynchronous calls for each record of a stream, so that many slow requests run at once."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.time import to_millis
from penstock.common.typeinfo import TypeInformation
from penstock.core.functions import AsyncFunction, AsyncFunctionDescriptor, AsyncRetryStrategy
from penstock.datastream.data_stream import DataStream
from penstock.datastream.event_time import Length
from penstock.runtime.operators.async_wait import AsyncWaitOperator

__all__ = ["AsyncDataStream"]

_Mode = AsyncFunctionDescriptor.OutputMode


class _PlainAsyncFunction(AsyncFunction[Any, Any]):
    """Calls an async function that returns one result for each record."""

    def __init__(self, func: Callable[[Any], Awaitable[Any]]) -> None:
        self._func = func

    async def async_invoke(self, value: Any) -> list[Any]:
        return [await self._func(value)]


class AsyncDataStream:
    """Applies an AsyncFunction to a stream, or an ``async`` function that returns one result for each record."""

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any] | Callable[[Any], Awaitable[Any]],
        timeout: Length,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call the function for each record and emit results in the order of the records."""
        retries = AsyncRetryStrategy.no_restart()
        return _wait(data_stream, async_function, timeout, retries, capacity, output_type, _Mode.ORDERED)

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any] | Callable[[Any], Awaitable[Any]],
        timeout: Length,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Like :meth:`ordered_wait`, and retry failed calls."""
        return _wait(data_stream, async_function, timeout, async_retry_strategy, capacity, output_type, _Mode.ORDERED)

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any] | Callable[[Any], Awaitable[Any]],
        timeout: Length,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Emit results as soon as they arrive. A result never overtakes a watermark."""
        retries = AsyncRetryStrategy.no_restart()
        return _wait(data_stream, async_function, timeout, retries, capacity, output_type, _Mode.UNORDERED)

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any] | Callable[[Any], Awaitable[Any]],
        timeout: Length,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Like :meth:`unordered_wait`, and retry failed calls."""
        return _wait(data_stream, async_function, timeout, async_retry_strategy, capacity, output_type, _Mode.UNORDERED)


def _wait(
    stream: DataStream,
    function: AsyncFunction[Any, Any] | Callable[[Any], Awaitable[Any]],
    timeout: Length,
    retries: AsyncRetryStrategy[Any],
    capacity: int,
    output_type: TypeInformation | None,
    mode: Any,
) -> DataStream:
    if not isinstance(stream, DataStream):
        raise InvalidProgramError(f"expected a stream, got {shorten(stream)}")
    if inspect.iscoroutinefunction(function):
        function = _PlainAsyncFunction(function)
    if not isinstance(function, AsyncFunction):
        raise InvalidProgramError(f"expected an AsyncFunction or an async function, got {shorten(function)}")
    if not isinstance(retries, AsyncRetryStrategy):
        raise InvalidProgramError(f"expected an AsyncRetryStrategy, got {shorten(retries)}")
    millis = to_millis(timeout)
    retrying = retries.get_retry_predicate()
    has_retries = retrying.result_predicate() is not None or retrying.exception_predicate() is not None
    if millis < 0 or (has_retries and millis == 0):
        raise InvalidProgramError(f"the timeout of asynchronous calls must be positive, got {millis} ms")
    if not is_int(capacity) or capacity < 1:
        raise InvalidProgramError(f"the capacity of asynchronous calls must be at least 1, got {capacity!r}")
    descriptor = AsyncFunctionDescriptor(function, timeout, capacity, retries, mode)
    return stream.apply_operator("async wait operator", AsyncWaitOperator(descriptor, millis), output_type)
