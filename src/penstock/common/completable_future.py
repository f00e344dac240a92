"""The futures that a job client returns."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any, Generic, TypeVar

__all__ = ["CompletableFuture"]

T = TypeVar("T")


class CompletableFuture(Generic[T]):
    """A result that may arrive later; a thin layer over :class:`concurrent.futures.Future`.

    >>> future = CompletableFuture()
    >>> future.done()
    False
    >>> future.complete(42)
    True
    >>> future.result()
    42
    """

    __slots__ = ("_future",)

    def __init__(self, future: Future[T] | None = None) -> None:
        self._future: Future[T] = Future() if future is None else future

    @staticmethod
    def computing() -> CompletableFuture[Any]:
        """Return a future with several waiters. No waiter can cancel it for the others."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        return CompletableFuture(future)

    @staticmethod
    def completed(value: Any) -> CompletableFuture[Any]:
        """Return a future that already has its result."""
        future: CompletableFuture[Any] = CompletableFuture()
        future.complete(value)
        return future

    @staticmethod
    def failed(error: BaseException) -> CompletableFuture[Any]:
        """Return a future that has already failed."""
        future: CompletableFuture[Any] = CompletableFuture()
        future.complete_exceptionally(error)
        return future

    def cancel(self) -> bool:
        """Cancel the future. Return False if the result exists or is being computed."""
        return self._future.cancel()

    def cancelled(self) -> bool:
        return self._future.cancelled()

    def done(self) -> bool:
        """Whether the future has a result or an error, or is cancelled."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result (at most ``timeout`` seconds) and return it, or raise the error."""
        return self._future.result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the outcome and return the error, or ``None`` if there is a result."""
        return self._future.exception(timeout)

    def complete(self, value: T) -> bool:
        """Set the result. Return False if the future is already done."""
        return self._set(self._future.set_result, value)

    def complete_exceptionally(self, error: BaseException) -> bool:
        """Set the error. Return False if the future is already done."""
        return self._set(self._future.set_exception, error)

    def _set(self, how: Callable[[Any], None], outcome: Any) -> bool:
        try:
            how(outcome)
        except InvalidStateError:  # already completed or cancelled elsewhere
            return False
        return True

    def add_done_callback(self, callback: Callable[[CompletableFuture[T]], object]) -> None:
        """Call ``callback(self)`` when the future is done, or immediately if it already is."""
        self._future.add_done_callback(lambda _: callback(self))

    def __repr__(self) -> str:
        state = "cancelled" if self.cancelled() else "done" if self.done() else "pending"
        return f"<CompletableFuture {state}>"
