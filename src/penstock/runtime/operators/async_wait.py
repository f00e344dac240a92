"""Asynchronous functions: up to `capacity` calls of a batch under way at once.

A batch is complete before the next one or a watermark is looked at, so results never move across a watermark.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from penstock.core.functions import AsyncFunction, AsyncFunctionDescriptor, AsyncRetryStrategy
from penstock.runtime.collector import Collector
from penstock.runtime.operator import OperatorContext, Output, Timestamps, Values
from penstock.runtime.operators.emission import collect_results
from penstock.runtime.operators.function_operator import FunctionOperator
from penstock.runtime.user_errors import user_error

Results = Iterable[Any] | None


class AsyncWaitOperator(FunctionOperator):
    """Runs an AsyncFunction on an event loop of its own."""

    function: AsyncFunction[Any, Any]

    def __init__(self, descriptor: AsyncFunctionDescriptor, timeout: int) -> None:
        super().__init__(descriptor.async_function)
        self._capacity = descriptor.capacity
        self._timeout = timeout / 1000 if timeout > 0 else None
        self._retries: AsyncRetryStrategy[Any] = descriptor.async_retry_strategy
        self._ordered = descriptor.output_mode is AsyncFunctionDescriptor.OutputMode.ORDERED

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Results go through a collector."""
        super().setup(context, output)
        self.collector = Collector(context, output)

    def open(self) -> None:
        """Create the event loop, then open the function."""
        self._loop = asyncio.new_event_loop()
        super().open()

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Make all calls of the batch and wait for them."""
        for position, results in self._loop.run_until_complete(self._call_all(values)):
            self._collect(values[position], results, None if timestamps is None else timestamps[position])
        self.collector.flush()

    def _collect(self, value: Any, results: Results, timestamp: int | None) -> None:
        """The results of one record, which is named if they are none."""
        try:
            collect_results(self.collector, results, timestamp)
        except Exception as error:
            raise user_error(self.context, error, "async_invoke") from None

    async def _call_all(self, values: Values) -> list[tuple[int, Results]]:
        """(position, results) of all records, in the order of the records or of completion."""
        slots = asyncio.Semaphore(self._capacity)
        completed: list[tuple[int, Results]] = []

        async def call(position: int, value: Any) -> None:
            async with slots:
                try:
                    results = await self._with_timeout(value)
                except Exception as error:
                    raise user_error(self.context, error, "async_invoke") from None
            completed.append((position, results))

        calls = [asyncio.ensure_future(call(position, value)) for position, value in enumerate(values)]
        try:
            await asyncio.gather(*calls)
        except BaseException:
            for pending in calls:
                pending.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            raise
        return sorted(completed, key=lambda pair: pair[0]) if self._ordered else completed

    async def _with_timeout(self, value: Any) -> Results:
        if self._timeout is None:
            return await self._with_retries(value)
        try:
            async with asyncio.timeout(self._timeout) as limit:
                return await self._with_retries(value)
        except TimeoutError:
            if not limit.expired():
                raise  # the function's own
        return self.function.timeout(value)

    async def _with_retries(self, value: Any) -> Results:
        predicate = self._retries.get_retry_predicate()
        try_again_after, try_again_with = predicate.exception_predicate(), predicate.result_predicate()
        attempts = 1
        while True:
            try:
                results = await self.function.async_invoke(value)
            except Exception as error:
                if not self._retries.can_retry(attempts) or try_again_after is None or not try_again_after(error):
                    raise
            else:
                if not self._retries.can_retry(attempts) or try_again_with is None or not try_again_with(results):
                    return results
            await asyncio.sleep(self._retries.get_backoff_time_millis(attempts) / 1000)
            attempts += 1

    def flush(self) -> None:
        """Emit what was collected."""
        self.collector.flush()

    def close(self) -> None:
        """Close the function, then the loop."""
        try:
            super().close()
        finally:
            self._loop.close()
