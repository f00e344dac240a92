"""Asynchronous functions: many concurrent requests to slow external systems."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from penstock.common.errors import InvalidProgramError
from penstock.core.functions.base import Function
from penstock.core.return_values import check_returns
from penstock.core.state_ttl import Length

__all__ = [
    "AsyncFunction",
    "AsyncFunctionDescriptor",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "ExponentialBackoffDelayRetryStrategy",
    "FixedDelayRetryStrategy",
    "NoRetryStrategy",
    "ResultFuture",
    "RetryPredicate",
    "empty_result_predicate",
    "exception_type_predicate",
    "has_exception_predicate",
]

IN = TypeVar("IN")
OUT = TypeVar("OUT")

ResultTest = Callable[[list[Any]], bool]
ExceptionTest = Callable[[Exception], bool]


class ResultFuture(ABC, Generic[OUT]):
    """Receives the result of one asynchronous call, for functions with callbacks.

    Any thread may complete it, for example one of a client library.
    """

    @abstractmethod
    def complete(self, result: list[OUT]) -> None:
        """Complete the call with its results. Later calls are ignored."""

    @abstractmethod
    def complete_exceptionally(self, error: Exception) -> None:
        """Complete the call with an error. Later calls are ignored."""


class AsyncFunction(Function, Generic[IN, OUT]):
    """Makes a request for each record and emits the results when they arrive.

    >>> class Lookup(AsyncFunction):
    ...     async def async_invoke(self, value):
    ...         return [value * 2]

    For a client with callbacks, ``async_invoke`` is a plain method with a second parameter:

    >>> class CallingBack(AsyncFunction):
    ...     def async_invoke(self, value, result_future):
    ...         self.client.get(value, on_success=lambda found: result_future.complete([found]))

    One thread makes all calls, so ``async_invoke`` must not block: run a blocking client in separate threads, for
    example with ``await asyncio.to_thread(...)``.
    """

    @abstractmethod
    async def async_invoke(self, value: IN) -> list[OUT]:
        """Return the results for ``value``."""

    def timeout(self, value: IN) -> list[OUT]:
        """Return the results for a ``value`` whose call timed out. The default fails the job."""
        raise TimeoutError("the asynchronous call timed out; override timeout() to return a result instead")


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """Selects the outcomes to retry."""

    @abstractmethod
    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        """Return a function that is true for results to retry, or ``None`` to retry none."""

    @abstractmethod
    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        """Return a function that is true for errors to retry, or ``None`` to retry none."""


class RetryPredicate(AsyncRetryPredicate[Any]):
    """A predicate built from two plain functions."""

    def __init__(self, result_predicate: ResultTest | None, exception_predicate: ExceptionTest | None) -> None:
        for predicate in (result_predicate, exception_predicate):
            check_returns(predicate, "__call__", "whether to try again")
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def result_predicate(self) -> ResultTest | None:
        return self._result_predicate

    def exception_predicate(self) -> ExceptionTest | None:
        return self._exception_predicate


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """Decides whether and when to retry a call. ``current_attempts`` counts the calls so far, from 1."""

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Whether to allow another attempt."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return the delay before the next attempt, in milliseconds."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Return the predicate that selects the outcomes to retry."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Never retry."""
        return NoRetryStrategy()

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultTest | None = None,
        exception_predicate: ExceptionTest | None = None,
    ) -> AsyncRetryStrategy[Any]:
        """Retry after a fixed delay."""
        return FixedDelayRetryStrategy(max_attempts, backoff_time_millis, result_predicate, exception_predicate)

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultTest | None = None,
        exception_predicate: ExceptionTest | None = None,
    ) -> AsyncRetryStrategy[Any]:
        """Retry after a delay that grows with each attempt, up to a limit.

        >>> strategy = AsyncRetryStrategy.exponential_backoff(6, 100, 1000, 2.0)
        >>> [strategy.get_backoff_time_millis(attempt) for attempt in range(1, 6)]
        [100, 200, 400, 800, 1000]
        """
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


class NoRetryStrategy(AsyncRetryStrategy[Any]):
    """Never retries."""

    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate[Any]:
        return RetryPredicate(None, None)


class FixedDelayRetryStrategy(AsyncRetryStrategy[Any]):
    """Retries after a fixed delay, at most ``max_attempts`` times after the first call."""

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultTest | None = None,
        exception_predicate: ExceptionTest | None = None,
    ) -> None:
        if max_attempts <= 0 or backoff_time_millis <= 0:
            raise InvalidProgramError(
                f"retries need at least one attempt and a delay of at least 1 ms, "
                f"got {max_attempts} attempts and {backoff_time_millis} ms"
            )
        self._max_attempts = max_attempts
        self._backoff_time_millis = backoff_time_millis
        self._predicate = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return self._backoff_time_millis

    def get_retry_predicate(self) -> AsyncRetryPredicate[Any]:
        return self._predicate


class ExponentialBackoffDelayRetryStrategy(FixedDelayRetryStrategy):
    """Retries after growing delays. It has no counter, so one object serves all records."""

    def __init__(
        self,
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultTest | None = None,
        exception_predicate: ExceptionTest | None = None,
    ) -> None:
        super().__init__(max_attempts, initial_delay, result_predicate, exception_predicate)
        if max_retry_delay < initial_delay or multiplier < 1.0:
            raise InvalidProgramError(
                f"the maximum delay ({max_retry_delay} ms) must not be below the initial delay ({initial_delay} ms), "
                f"and the multiplier ({multiplier}) must not be below 1"
            )
        self._max_retry_delay = max_retry_delay
        self._multiplier = multiplier

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        delay = float(self._backoff_time_millis)
        for _ in range(current_attempts - 1):
            delay *= self._multiplier
            if delay >= self._max_retry_delay:
                return self._max_retry_delay
        return int(delay)


def empty_result_predicate(result: list[Any]) -> bool:
    """Retry if there is no result.

    >>> empty_result_predicate([])
    True
    """
    return not result


def has_exception_predicate(exception: Exception) -> bool:
    """Retry all errors."""
    return True


def exception_type_predicate(exception_type: type[Exception]) -> ExceptionTest:
    """Retry errors of one class.

    >>> exception_type_predicate(OSError)(ConnectionError())
    True
    """
    return _ExceptionTypeTest(exception_type)


@dataclass(frozen=True, slots=True)
class _ExceptionTypeTest:
    exception_type: type[Exception]

    def __call__(self, exception: Exception) -> bool:
        return isinstance(exception, self.exception_type)


class _OutputMode(Enum):
    """Whether results leave in the order of their records."""

    ORDERED = 0
    UNORDERED = 1


class AsyncFunctionDescriptor:
    """An asynchronous function with its settings."""

    OutputMode = _OutputMode

    def __init__(
        self,
        async_function: AsyncFunction[Any, Any],
        timeout: Length,
        capacity: int,
        async_retry_strategy: AsyncRetryStrategy[Any],
        output_mode: _OutputMode,
    ) -> None:
        self.async_function = async_function
        self.timeout = timeout
        self.capacity = capacity
        self.async_retry_strategy = async_retry_strategy
        self.output_mode = output_mode
