import asyncio

import pytest

from penstock.common.errors import UserFunctionError
from penstock.common.time import Time
from penstock.core.functions import AsyncFunction, AsyncFunctionDescriptor, AsyncRetryStrategy
from penstock.runtime.operators.async_wait import AsyncWaitOperator

Mode = AsyncFunctionDescriptor.OutputMode


@pytest.fixture
def run(drive):
    drivers = []

    def start(function, *, mode=Mode.ORDERED, capacity=100, timeout=60_000, retries=None):
        retries = retries or AsyncRetryStrategy.no_restart()
        descriptor = AsyncFunctionDescriptor(function, Time.milliseconds(timeout), capacity, retries, mode)
        drivers.append(drive(AsyncWaitOperator(descriptor, timeout)))
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.operator.close()


class Handshake(AsyncFunction):
    """The first call waits for the last one, so they complete in another order than they began."""

    def open(self, runtime_context):
        self.last_done = asyncio.Event()

    async def async_invoke(self, value):
        if value == "last":
            self.last_done.set()
        else:
            await self.last_done.wait()
        return [value, value.upper()]


def test_ordered_results_follow_their_records(run):
    driver = run(Handshake())
    driver.send("first", "last", at=[1, 2])
    assert driver.output.take() == [("first", 1), ("FIRST", 1), ("last", 2), ("LAST", 2)]


def test_unordered_results_leave_as_they_come(run):
    driver = run(Handshake(), mode=Mode.UNORDERED)
    assert driver.send("first", "last") == ["last", "LAST", "first", "FIRST"]


def test_no_more_calls_than_the_capacity_are_under_way(run):
    class Counting(AsyncFunction):
        now = most = 0

        async def async_invoke(self, value):
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0)
            self.now -= 1
            return [value]

    function = Counting()
    assert run(function, capacity=3).send(*range(20)) == list(range(20))
    assert function.most == 3


class Hanging(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.Event().wait()


def test_a_call_that_takes_too_long_gives_the_result_of_timeout(run):
    class WithDefault(Hanging):
        def timeout(self, value):
            return [("too late", value)]

    assert run(WithDefault(), timeout=1).send("a") == [("too late", "a")]


def test_a_timeout_fails_the_job_unless_overridden(run):
    with pytest.raises(UserFunctionError, match="timed out") as caught:
        run(Hanging(), timeout=1).send("a")
    assert caught.value.record == "'a'"


class Flaky(AsyncFunction):
    def __init__(self, failures):
        self.failures = failures
        self.calls = 0

    async def async_invoke(self, value):
        self.calls += 1
        if self.calls <= self.failures:
            raise ConnectionError("try again")
        return [value]


def test_failed_calls_are_tried_again_up_to_the_limit(run):
    retries = AsyncRetryStrategy.fixed_delay(2, 1, None, lambda error: isinstance(error, ConnectionError))
    assert run(Flaky(2), retries=retries).send("a") == ["a"]
    with pytest.raises(UserFunctionError, match="try again"):
        run(Flaky(9), retries=retries).send("a")


def test_results_can_be_tried_again_too(run):
    class EmptyFirst(AsyncFunction):
        calls = 0

        async def async_invoke(self, value):
            self.calls += 1
            return [value] if self.calls > 1 else []

    retries = AsyncRetryStrategy.fixed_delay(3, 1, lambda result: not result, None)
    assert run(EmptyFirst(), retries=retries).send("a") == ["a"]


def test_without_retries_an_error_names_the_record(run):
    with pytest.raises(UserFunctionError, match="async_invoke") as caught:
        run(Flaky(1)).send("a")
    assert caught.value.record == "'a'"
