"""Calls of asynchronous scalar functions: many at a time, with a timeout and retries.

All coroutines of a process run in one event loop in a separate thread, so that connections opened by a function stay
usable from batch to batch.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class AsyncCalls:
    """The options ``table.exec.async-scalar.*``."""

    max_concurrent: int = 10
    timeout: float = 180.0
    max_attempts: int = 3
    retry_delay: float = 0.1


def call_all(function: Callable[..., Any], rows: Sequence[tuple[Any, ...]], options: AsyncCalls) -> list[Any]:
    """Return the results of a coroutine function for every row, in row order."""
    return asyncio.run_coroutine_threadsafe(_call_all(function, rows, options), _loop(os.getpid())).result()


async def _call_all(function: Callable[..., Any], rows: Sequence[tuple[Any, ...]], options: AsyncCalls) -> list[Any]:
    results: list[Any] = [None] * len(rows)
    waiting = iter(range(len(rows)))

    async def calls_in_turn() -> None:
        for position in waiting:
            value = rows[position]
            results[position] = await _call(function, value, options)

    tasks = [asyncio.ensure_future(calls_in_turn()) for _ in range(min(options.max_concurrent, len(rows)))]
    try:
        await asyncio.gather(*tasks)
    finally:  # the first failure ends the others
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return results


async def _call(function: Callable[..., Any], value: tuple[Any, ...], options: AsyncCalls) -> Any:
    for attempt in range(1, options.max_attempts + 1):
        try:
            return await asyncio.wait_for(function(*value), options.timeout)
        except TimeoutError:
            message = f"an asynchronous function did not answer within {options.timeout:g} s for {value!r}"
            raise TimeoutError(f"{message}: see table.exec.async-scalar.timeout") from None
        except Exception:
            if attempt == options.max_attempts:
                raise
            await asyncio.sleep(options.retry_delay)
    return None


@cache
def _loop(process: int) -> asyncio.AbstractEventLoop:
    """Return the event loop of a process. A forked process has its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="penstock-async-functions", daemon=True).start()
    return loop
