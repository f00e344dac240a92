import asyncio
import pickle

import pytest

from penstock.common import Time
from penstock.common.errors import InvalidProgramError
from penstock.core.functions import AsyncFunction, AsyncFunctionDescriptor, AsyncRetryStrategy
from penstock.core.functions.async_io import (
    NoRetryStrategy,
    empty_result_predicate,
    exception_type_predicate,
    has_exception_predicate,
)


class Double(AsyncFunction):
    async def async_invoke(self, value):
        return [value * 2]


def test_a_call_that_times_out_fails_unless_overridden():
    assert asyncio.run(Double().async_invoke(2)) == [4]
    with pytest.raises(TimeoutError, match=r"timeout\(\)"):
        Double().timeout(2)


def test_no_retry_never_retries():
    strategy = AsyncRetryStrategy.no_restart()
    assert isinstance(strategy, NoRetryStrategy)
    assert not strategy.can_retry(1)
    assert strategy.get_backoff_time_millis(1) == -1
    predicate = strategy.get_retry_predicate()
    assert predicate.result_predicate() is None
    assert predicate.exception_predicate() is None


def test_fixed_delay_retries_a_number_of_times():
    strategy = AsyncRetryStrategy.fixed_delay(2, 50, empty_result_predicate, has_exception_predicate)
    assert [strategy.can_retry(attempt) for attempt in (1, 2, 3)] == [True, True, False]
    assert strategy.get_backoff_time_millis(2) == 50
    assert strategy.get_retry_predicate().result_predicate()([])
    assert strategy.get_retry_predicate().exception_predicate()(ValueError())


def test_exponential_backoff_depends_on_the_attempt_only():
    strategy = AsyncRetryStrategy.exponential_backoff(10, 100, 500, 2.0)
    attempts = [3, 1, 2, 4, 9, 1]
    assert [strategy.get_backoff_time_millis(attempt) for attempt in attempts] == [400, 100, 200, 500, 500, 100]


@pytest.mark.parametrize(
    "make",
    [
        lambda: AsyncRetryStrategy.fixed_delay(0, 1),
        lambda: AsyncRetryStrategy.fixed_delay(1, 0),
        lambda: AsyncRetryStrategy.exponential_backoff(1, 10, 5, 2.0),
        lambda: AsyncRetryStrategy.exponential_backoff(1, 10, 50, 0.5),
    ],
)
def test_nonsense_is_refused(make):
    with pytest.raises(InvalidProgramError):
        make()


def test_predicates():
    assert empty_result_predicate([])
    assert not empty_result_predicate([1])
    by_type = pickle.loads(pickle.dumps(exception_type_predicate(OSError)))
    assert by_type(TimeoutError())
    assert not by_type(ValueError())


def test_descriptor_keeps_its_settings():
    mode = AsyncFunctionDescriptor.OutputMode.ORDERED
    descriptor = AsyncFunctionDescriptor(Double(), Time.seconds(1), 10, AsyncRetryStrategy.no_restart(), mode)
    assert (descriptor.capacity, descriptor.output_mode, descriptor.timeout) == (10, mode, Time.seconds(1))
