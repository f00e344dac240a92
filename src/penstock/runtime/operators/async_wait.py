"""Asynchronous functions: up to `capacity` calls of a batch run at once.

All calls of a batch finish before the next batch or watermark is processed, so results never cross a watermark.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.common.errors import TypeMismatchError, shorten
from penstock.core.functions import AsyncFunction, AsyncFunctionDescriptor, AsyncRetryStrategy, ResultFuture
from penstock.core.return_values import check_verdict, describe, milliseconds
from penstock.runtime.operators.blocked_loop import BlockedLoopWatch
from penstock.runtime.operators.collector import Collector
from penstock.runtime.operators.emission import collect_results
from penstock.runtime.operators.function_operator import FunctionOperator
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.operators.user_errors import exits_are_errors, user_error
from penstock.runtime.records.batch import Timestamps, Values

Results = Iterable[Any]

_GRACE_SECONDS = 1.0  # how long a cancelled call may take to clean up
_TOO_LATE: list[Any] = []  # a sentinel, compared by identity


class _ResultFuture(ResultFuture[Any]):
    """Completes a future of the event loop from any thread. Only the first call has an effect."""

    def __init__(self, future: asyncio.Future[Any]) -> None:
        self._future = future

    def complete(self, result: list[Any]) -> None:
        self._settle(self._future.set_result, result)

    def complete_exceptionally(self, error: Exception) -> None:
        self._settle(self._future.set_exception, _raisable(error))

    def _settle(self, settle: Any, outcome: Any) -> None:
        loop = self._future.get_loop()
        if not loop.is_closed():  # the answer may arrive after the operator was closed
            loop.call_soon_threadsafe(lambda: None if self._future.done() else settle(outcome))


def _raisable(error: Any) -> Exception:
    """Return an exception that a future accepts. Any other value would leave the call pending until its timeout."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"the call was completed exceptionally with {error!r}")


def _takes_a_future(method: Any) -> bool:
    """Whether the function is written with callbacks: `async_invoke(value, result_future)`."""
    return not inspect.iscoroutinefunction(method) and len(inspect.signature(method).parameters) == 2


def _raise_first_error(done: Iterable[asyncio.Future[None]]) -> None:
    # Retrieve all exceptions: asyncio logs those that nothing retrieves.
    errors = [finished.exception() for finished in done]
    for error in errors:
        if error is not None:
            raise error


class AsyncWaitOperator(FunctionOperator):
    """Runs an AsyncFunction on its own event loop."""

    function: AsyncFunction[Any, Any]

    def __init__(self, descriptor: AsyncFunctionDescriptor, timeout: int) -> None:
        super().__init__(descriptor.async_function)
        self._capacity = descriptor.capacity
        self._timeout = timeout / 1000 if timeout > 0 else None
        self._retries: AsyncRetryStrategy[Any] = descriptor.async_retry_strategy
        self._ordered = descriptor.output_mode is AsyncFunctionDescriptor.OutputMode.ORDERED

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Send results through a collector."""
        super().setup(context, output)
        self.collector = Collector(context, output)

    def open(self) -> None:
        """Create the event loop, then open the function."""
        self._loop = asyncio.new_event_loop()
        self._abandoned: set[asyncio.Future[None]] = set()
        self._by_callback = _takes_a_future(self.function.async_invoke)
        if self._timeout is not None:
            BlockedLoopWatch(self._loop, self._timeout + _GRACE_SECONDS, self.context.operator_name)
        super().open()

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Make all calls of the batch and wait for them."""
        for position, results in self._loop.run_until_complete(self._call_all(values)):
            self._collect(values[position], results, None if timestamps is None else timestamps[position])
        self.collector.flush()

    def _collect(self, value: Any, results: Results, timestamp: int | None) -> None:
        """Collect the results of one record. An error names the record."""
        try:
            collect_results(self.collector, results, timestamp)
        except Exception as error:
            raise user_error(self.context, error, "async_invoke") from None

    async def _call_all(self, values: Values) -> list[tuple[int, Results]]:
        """Return (position, results) of all records, in the order of the records or of completion.

        At most `capacity` loops take the records in order, so a batch of any size needs no more tasks than that.
        """
        completed: list[tuple[int, Results]] = []
        waiting = iter(enumerate(values))
        under_way: dict[Any, tuple[int, Any, float]] = {}
        now = self._loop.time

        async def calls_in_turn(late: tuple[int, Any] | None = None) -> None:
            if late is not None:
                completed.append((late[0], await self._timed_out(late[1])))
            this = asyncio.current_task()
            for position, value in waiting:
                under_way[this] = (position, value, now())
                results = await self._one_call(value)
                if under_way.pop(this, None) is None:
                    return  # abandoned: another loop has taken over
                if results is _TOO_LATE:  # from here on the loop answers, however long the timeout handler takes
                    results = await self._timed_out(value)
                completed.append((position, results))

        loops = {asyncio.ensure_future(calls_in_turn()) for _ in range(min(self._capacity, len(values)))}
        patience = None if self._timeout is None else self._timeout + _GRACE_SECONDS
        try:
            while loops:
                done, loops = await asyncio.wait(loops, timeout=patience, return_when=asyncio.FIRST_EXCEPTION)
                _raise_first_error(done)
                if patience is None:
                    continue
                for unresponsive in [
                    task for task in loops if task in under_way and now() - under_way[task][2] >= patience
                ]:
                    position, value, _ = under_way.pop(unresponsive)
                    self._abandon(unresponsive)
                    loops.remove(unresponsive)
                    loops.add(asyncio.ensure_future(calls_in_turn((position, value))))
        except BaseException:
            await self._cancel(loops)
            raise
        return sorted(completed, key=lambda pair: pair[0]) if self._ordered else completed

    async def _cancel(self, loops: set[asyncio.Task[None]]) -> None:
        """Cancel all loops. A call that ignores its cancellation must not keep the job from failing."""
        for pending in loops:
            pending.cancel()
        if loops:
            done, unresponsive = await asyncio.wait(loops, timeout=_GRACE_SECONDS)
            for task in (*done, *unresponsive):
                self._abandon(task)

    def _abandon(self, task: asyncio.Future[None]) -> None:
        """Stop waiting for a call, whatever its outcome."""
        self._abandoned.add(task)  # the event loop holds only weak references to tasks

        def forget(done: asyncio.Future[None]) -> None:
            self._abandoned.discard(done)
            if not done.cancelled():
                done.exception()

        task.add_done_callback(forget)

    async def _one_call(self, value: Any) -> Results:
        """Return the results of a record after all retries, or `_TOO_LATE`. An error names the record."""
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                with exits_are_errors(self.context.operator_name):  # an exit would stop the event loop halfway
                    results = await self._with_retries(value, limit)
        except Exception as error:
            if not limit.expired():  # this includes a TimeoutError that the function raises itself
                raise user_error(self.context, error, "async_invoke") from None
        else:
            if not limit.expired():
                return self._checked(results, "async_invoke", value)
        return _TOO_LATE  # whatever the cancelled call returned or raised

    async def _timed_out(self, value: Any) -> Results:
        """Return the result of the timeout handler, which may be asynchronous."""
        try:
            with exits_are_errors(self.context.operator_name):
                results: Any = self.function.timeout(value)
                if inspect.isawaitable(results):
                    results = await results
        except Exception as error:
            raise user_error(self.context, error, "timeout") from None
        return self._checked(results, "timeout", value)

    def _checked(self, results: Any, method: str, value: Any) -> Iterable[Any]:
        """Reject a single result and a forgotten `return`, which would lose or split the record silently."""
        if isinstance(results, Iterable) and not isinstance(results, (str, bytes, Mapping)):
            return results
        problem = "cannot be none" if results is None else "should be of list type"
        raise TypeMismatchError(
            f"The result of AsyncFunction {problem}: {describe(self.function, method)} returned {shorten(results)}. "
            "Return a list of results, [] if there is none",
            operator_name=self.context.operator_name,
            record=value,
        )

    async def _with_retries(self, value: Any, limit: asyncio.Timeout) -> Any:
        predicate = self._retries.get_retry_predicate()
        try_again_after, try_again_with = predicate.exception_predicate(), predicate.result_predicate()
        attempts = 1
        results: Any

        def may_retry(attempts: int) -> bool:
            return not limit.expired() and self._answer(self._retries, "can_retry", attempts)

        while True:
            try:
                results = await self._invoke(value)
            except Exception as error:
                if (
                    try_again_after is None
                    or not may_retry(attempts)
                    or not self._answer(try_again_after, "__call__", error)
                ):
                    raise
            else:
                if (
                    try_again_with is None
                    or not may_retry(attempts)
                    or not self._answer(try_again_with, "__call__", results)
                ):
                    return results
            pause = self._retries.get_backoff_time_millis(attempts)
            await asyncio.sleep(milliseconds(pause, self._retries, "get_backoff_time_millis", positive=False) / 1000)
            attempts += 1

    def _answer(self, function: Any, method: str, argument: Any) -> bool:
        """Call a retry strategy or predicate and check its answer."""
        verdict = getattr(function, method)(argument)
        check_verdict(verdict, function, method, operator_name=self.context.operator_name)
        return bool(verdict)

    async def _invoke(self, value: Any) -> Any:
        invoke: Any = self.function.async_invoke
        try:
            if not self._by_callback:
                call = invoke(value)
                if not inspect.isawaitable(call):
                    raise TypeError(
                        f"async_invoke() returned {type(call).__name__}, which cannot be awaited: declare it with "
                        "async def, or add a second parameter, the ResultFuture"
                    )
                return await call
            future: asyncio.Future[Any] = self._loop.create_future()
            invoke(value, _ResultFuture(future))
            return await future
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise  # cancelled by the timeout, or because another call failed
            raise RuntimeError("the call was cancelled by the operation it awaited") from error

    def flush(self) -> None:
        """Emit the collected records."""
        self.collector.flush()

    def close(self) -> None:
        """Close the function, then the loop."""
        try:
            super().close()
        finally:
            self._close_loop()

    def _close_loop(self) -> None:
        self._loop.set_exception_handler(lambda loop, context: None)  # ignore errors of abandoned calls
        self._loop.close()

    def __del__(self) -> None:
        """Close the loop: a worker drops tasks that move elsewhere without closing them."""
        loop = getattr(self, "_loop", None)
        if loop is not None and not loop.is_closed() and not loop.is_running():
            self._close_loop()
