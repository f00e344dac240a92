"""Asynchronous calls that do not end when they should."""

import asyncio
import gc
import logging
import threading

import pytest

from penstock.common.errors import UserFunctionError
from penstock.common.time import Time
from penstock.core.functions import AsyncFunction, AsyncFunctionDescriptor, AsyncRetryStrategy
from penstock.core.functions.async_io import empty_result_predicate, exception_type_predicate
from penstock.runtime.operators import async_wait
from penstock.runtime.operators.async_wait import AsyncWaitOperator

Mode = AsyncFunctionDescriptor.OutputMode


class Deaf(AsyncFunction):
    """Does not want to be cancelled."""

    def __init__(self):
        self.released = []
        self.timed_out = []

    async def async_invoke(self, value):
        if value == "bad":
            await asyncio.sleep(0)
            raise ValueError("a bad record")
        if value == "good":
            return [value]
        over = asyncio.Event()
        self.released.append(over)
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue
        return ["a result that comes too late"]

    def timeout(self, value):
        self.timed_out.append(value)
        return [f"too late: {value}"]


@pytest.mark.parametrize("mode", [Mode.ORDERED, Mode.UNORDERED])
def test_a_call_that_swallows_its_cancellation_times_out_and_its_result_is_ignored(run_async, monkeypatch, mode, capfd):
    monkeypatch.setattr(async_wait, "_GRACE_SECONDS", 0.001)
    function = Deaf()
    driver = run_async(function, timeout=1, capacity=1, mode=mode)
    assert driver.send("deaf", "good", "deaf too") == ["too late: deaf", "good", "too late: deaf too"]
    for over in function.released:
        over.set()
    assert driver.send("good")[3:] == ["good"]
    assert function.timed_out == ["deaf", "deaf too"]  # also of the calls that have ended by now, once
    driver.operator.close()
    gc.collect()
    assert capfd.readouterr().err == ""


def test_a_call_that_swallows_its_cancellation_does_not_keep_the_job_from_failing(run_async, monkeypatch, capfd):
    monkeypatch.setattr(async_wait, "_GRACE_SECONDS", 0.001)
    driver = run_async(Deaf(), timeout=0)
    with pytest.raises(UserFunctionError, match="a bad record") as caught:
        driver.send("deaf", "bad")
    assert caught.value.record == "'bad'"
    driver.operator.close()
    gc.collect()
    assert "pending" not in capfd.readouterr().err


@pytest.mark.parametrize("late", ["result", "error"])
def test_what_a_call_gives_when_it_is_cancelled_comes_too_late(run_async, late):
    class Excuses(AsyncFunction):
        calls = 0

        async def async_invoke(self, value):
            self.calls += 1
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if late == "error":
                    raise ConnectionError("cancelled") from None
            return []

        def timeout(self, value):
            return ["timed out"]

    function = Excuses()
    retries = AsyncRetryStrategy.fixed_delay(5, 1, empty_result_predicate, exception_type_predicate(OSError))
    assert run_async(function, timeout=1, retries=retries).send("a") == ["timed out"]
    assert function.calls == 1


def test_a_timeout_that_takes_longer_than_the_grace_of_a_call_is_asked_for_once(run_async, monkeypatch):
    monkeypatch.setattr(async_wait, "_GRACE_SECONDS", 0.001)

    class AsksSomebodyElse(AsyncFunction):
        asked = 0

        async def async_invoke(self, value):
            await asyncio.Event().wait()

        async def timeout(self, value):
            self.asked += 1
            await asyncio.sleep(0.05)
            return [value]

    function = AsksSomebodyElse()
    assert run_async(function, timeout=1).send("a") == ["a"]
    assert function.asked == 1


class Blocks(AsyncFunction):
    """Calls something that does not give the loop back."""

    def __init__(self, freed):
        self.freed = freed

    async def async_invoke(self, value):
        assert self.freed.wait(60)
        return [value]


class FreeingHandler(logging.Handler):
    """What blocks is over when the warning has come."""

    def __init__(self):
        super().__init__()
        self.freed, self.messages = threading.Event(), []

    def emit(self, record):
        self.messages.append(record.getMessage())
        self.freed.set()


def test_a_call_that_blocks_the_event_loop_is_warned_of_since_no_timeout_can_end_it(drive, monkeypatch):
    monkeypatch.setattr(async_wait, "_GRACE_SECONDS", 0.05)
    handler = FreeingHandler()
    logger = logging.getLogger("penstock.runtime.operators.blocked_loop")
    logger.addHandler(handler)
    try:
        descriptor = AsyncFunctionDescriptor(
            Blocks(handler.freed), Time.milliseconds(50), 10, AsyncRetryStrategy.no_restart(), Mode.ORDERED
        )
        driver = drive(AsyncWaitOperator(descriptor, 50))
        driver.send("a")
        driver.operator.close()
    except UserFunctionError:
        pass  # it has taken too long, which shows only now
    finally:
        logger.removeHandler(handler)
    (message,) = handler.messages
    assert "has blocked its event loop" in message
    assert "self.freed.wait(60)" in message
    assert "asyncio.to_thread" in message
