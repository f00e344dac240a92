import asyncio
import gc
import sys
import threading

import pytest
from crashing import Crashing
from support import collected

from penstock.common import WatermarkStrategy
from penstock.common.errors import JobExecutionError, TypeMismatchError, UserFunctionError
from penstock.common.time import Time
from penstock.connectors import CollectSink
from penstock.core.functions import AsyncFunction, AsyncFunctionDescriptor, AsyncRetryStrategy
from penstock.core.functions.async_io import empty_result_predicate, exception_type_predicate
from penstock.datastream import AsyncDataStream, KeyedProcessFunction

Mode = AsyncFunctionDescriptor.OutputMode


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


def test_ordered_results_follow_their_records(run_async):
    driver = run_async(Handshake())
    driver.send("first", "last", at=[1, 2])
    assert driver.output.take() == [("first", 1), ("FIRST", 1), ("last", 2), ("LAST", 2)]


def test_unordered_results_leave_as_they_come(run_async):
    driver = run_async(Handshake(), mode=Mode.UNORDERED)
    assert driver.send("first", "last") == ["last", "LAST", "first", "FIRST"]


def test_no_more_calls_than_the_capacity_are_under_way(run_async):
    class Counting(AsyncFunction):
        now = most = 0

        async def async_invoke(self, value):
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0)
            self.now -= 1
            return [value]

    function = Counting()
    assert run_async(function, capacity=3).send(*range(20)) == list(range(20))
    assert function.most == 3


class Hanging(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.Event().wait()


def test_a_call_that_takes_too_long_gives_the_result_of_timeout(run_async):
    class WithDefault(Hanging):
        def timeout(self, value):
            return [("too late", value)]

    assert run_async(WithDefault(), timeout=1).send("a") == [("too late", "a")]


def test_a_timeout_fails_the_job_unless_overridden(run_async):
    with pytest.raises(UserFunctionError, match="timed out") as caught:
        run_async(Hanging(), timeout=1).send("a")
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


def test_failed_calls_are_tried_again_up_to_the_limit(run_async):
    retries = AsyncRetryStrategy.fixed_delay(2, 1, None, lambda error: isinstance(error, ConnectionError))
    assert run_async(Flaky(2), retries=retries).send("a") == ["a"]
    with pytest.raises(UserFunctionError, match="try again"):
        run_async(Flaky(9), retries=retries).send("a")


def test_results_can_be_tried_again_too(run_async):
    class EmptyFirst(AsyncFunction):
        calls = 0

        async def async_invoke(self, value):
            self.calls += 1
            return [value] if self.calls > 1 else []

    retries = AsyncRetryStrategy.fixed_delay(3, 1, lambda result: not result, None)
    assert run_async(EmptyFirst(), retries=retries).send("a") == ["a"]


def test_without_retries_an_error_names_the_record(run_async):
    with pytest.raises(UserFunctionError, match="async_invoke") as caught:
        run_async(Flaky(1)).send("a")
    assert caught.value.record == "'a'"


class CallingBack(AsyncFunction):
    """Answers from threads of its own, the last call first."""

    def __init__(self):
        self.waiting = []

    def async_invoke(self, value, result_future):
        if value == "broken":
            result_future.complete_exceptionally(OSError("no answer"))
            return
        self.waiting.append((value, result_future))
        if value == "last":
            threading.Thread(target=self.answer).start()

    def answer(self):
        for value, result_future in reversed(self.waiting):
            result_future.complete([value, value.upper()])
            result_future.complete(["too late"])


def test_functions_may_answer_by_callbacks_from_any_thread(run_async):
    driver = run_async(CallingBack())
    assert driver.send("first", "last") == ["first", "FIRST", "last", "LAST"]
    with pytest.raises(UserFunctionError, match="no answer"):
        driver.send("broken")


def test_a_callback_that_never_comes_is_a_timeout(run_async):
    driver = run_async(CallingBack(), timeout=20)
    with pytest.raises(UserFunctionError, match="timed out"):
        driver.send("first")


def test_the_time_of_a_call_includes_its_retries(run_async):
    class Failing(AsyncFunction):
        async def async_invoke(self, value):
            raise OSError("again")

        def timeout(self, value):
            return [f"gave up on {value}"]

    retries = AsyncRetryStrategy.fixed_delay(1_000_000, 1, exception_predicate=lambda error: True)
    assert run_async(Failing(), timeout=30, retries=retries).send("x") == ["gave up on x"]


def test_a_large_batch_needs_no_more_tasks_than_the_capacity(run_async):
    class Counting(AsyncFunction):
        most = 0

        async def async_invoke(self, value):
            self.most = max(self.most, len(asyncio.all_tasks()))
            return [value]

    function = Counting()
    assert run_async(function, capacity=5).send(*range(1_000)) == list(range(1_000))
    assert function.most <= 6


def test_results_never_cross_a_watermark_and_no_input_is_lost_in_a_crash(tmp_path):
    TROUBLE.clear()
    TROUBLE.extend([4, 11, 12])

    def build(env):
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Stamps())
        numbers = env.from_collection(list(range(20))).assign_timestamps_and_watermarks(strategy)
        answers = AsyncDataStream.unordered_wait(numbers, Unreliable(), Time.seconds(10), 4)
        answers.key_by(lambda value: 0).process(Lateness()).sink_to(sink)

    sink = CollectSink()
    assert Crashing(tmp_path, build, max_records=3).run() == 3
    found = collected(sink)
    assert sorted(value for value, _ in found) == list(range(20))
    assert not any(late for _, late in found)


TROUBLE = []


class Stamps:
    def extract_timestamp(self, value, record_timestamp):
        return value


class Unreliable(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0 if value % 2 else 0.001)  # odd ones overtake
        if value in TROUBLE:
            TROUBLE.remove(value)
            raise OSError("lost")
        return [value]


class Lateness(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp() <= ctx.timer_service().current_watermark()


def test_a_call_that_is_cancelled_from_within_fails_and_names_its_record(run_async):
    class Cancelled(AsyncFunction):
        async def async_invoke(self, value):
            waited_for = asyncio.ensure_future(asyncio.Event().wait())
            waited_for.cancel()
            await waited_for

    with pytest.raises(UserFunctionError, match="was cancelled") as caught:
        run_async(Cancelled()).send("a")
    assert caught.value.record == "'a'"


@pytest.mark.parametrize("error", ["not an exception", StopIteration()])
def test_whatever_completes_a_call_exceptionally_completes_it(run_async, error):
    class Odd(AsyncFunction):
        def async_invoke(self, value, result_future):
            result_future.complete_exceptionally(error)

    with pytest.raises(UserFunctionError, match="completed exceptionally with"):
        run_async(Odd(), timeout=0).send("a")


def test_timeout_may_be_a_coroutine_and_its_errors_are_its_own(run_async):
    class Asking(Hanging):
        async def timeout(self, value):
            await asyncio.sleep(0)
            if value == "bad":
                raise KeyError("nothing to fall back on")
            return [f"instead of {value}"]

    driver = run_async(Asking(), timeout=1)
    assert driver.send("a") == ["instead of a"]
    with pytest.raises(UserFunctionError, match="method timeout") as caught:
        driver.send("bad")
    assert caught.value.record == "'bad'"


def test_a_method_that_is_not_asynchronous_is_told_so(run_async):
    class Plain(AsyncFunction):
        def async_invoke(self, value):
            return [value]

    with pytest.raises(UserFunctionError, match="declare it with async def"):
        run_async(Plain()).send("a")


def test_sys_exit_in_a_call_fails_the_job_and_leaves_nothing_behind(run_async, capfd):
    class Exiting(AsyncFunction):
        async def async_invoke(self, value):
            if value == 3:
                sys.exit(3)
            await asyncio.sleep(0)
            return []

    with pytest.raises(JobExecutionError, match=r"called sys\.exit\(3\)"):
        run_async(Exiting()).send(1, 2, 3, 4)
    gc.collect()
    assert capfd.readouterr().err == ""


class Forgetful(AsyncFunction):
    """Returns nothing for one of the records."""

    async def async_invoke(self, value):
        await asyncio.sleep(0)
        return [value] if value != "b" else None


class ForgetfulCallback(AsyncFunction):
    def async_invoke(self, value, result_future):
        result_future.complete(None)


class ForgetfulTimeout(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(60)

    def timeout(self, value):
        pass


class OneResult(AsyncFunction):
    async def async_invoke(self, value):
        return 7


class OneText(AsyncFunction):
    async def async_invoke(self, value):
        return "text"


@pytest.mark.parametrize(
    ("function", "timeout", "reason"),
    [
        (Forgetful(), 60_000, r"cannot be none: Forgetful\.async_invoke\(\) returned None.*my operator.*record 'b'"),
        (ForgetfulCallback(), 60_000, r"cannot be none: ForgetfulCallback\.async_invoke\(\) returned None"),
        (ForgetfulTimeout(), 1, r"cannot be none: ForgetfulTimeout\.timeout\(\) returned None"),
        (OneResult(), 60_000, r"should be of list type: OneResult\.async_invoke\(\) returned 7"),
        (OneText(), 60_000, r"should be of list type: OneText\.async_invoke\(\) returned 'text'"),
    ],
)
def test_a_result_other_than_a_list_is_rejected_as_a_forgotten_return(run_async, function, timeout, reason):
    with pytest.raises(TypeMismatchError, match=reason):
        run_async(function, timeout=timeout).send("a", "b")


def test_an_empty_list_is_no_result(run_async):
    class Nothing(AsyncFunction):
        async def async_invoke(self, value):
            return []

    assert run_async(Nothing()).send("a") == []


def test_only_errors_that_the_predicate_names_are_tried_again(run_async):
    class Choosy(AsyncFunction):
        def __init__(self):
            self.calls = []

        async def async_invoke(self, value):
            self.calls.append(value)
            raise ConnectionError(value) if value == "again" else KeyError(value)

    retries = AsyncRetryStrategy.exponential_backoff(2, 1, 4, 2.0, None, exception_type_predicate(OSError))
    function = Choosy()
    for value in ("again", "not again"):
        with pytest.raises(UserFunctionError, match=value):
            run_async(function, retries=retries).send(value)
    assert function.calls == ["again"] * 3 + ["not again"]


def test_results_that_stay_unwanted_are_taken_when_the_retries_are_used_up(run_async):
    class Empty(AsyncFunction):
        calls = 0

        async def async_invoke(self, value):
            self.calls += 1
            return []

    function = Empty()
    assert run_async(function, retries=AsyncRetryStrategy.fixed_delay(2, 1, empty_result_predicate)).send("a") == []
    assert function.calls == 3


def test_async_invoke_is_called_by_one_thread_in_the_order_of_the_records(run_async):
    class Noting(AsyncFunction):
        def __init__(self):
            self.calls = []

        async def async_invoke(self, value):
            self.calls.append((value, threading.get_ident()))
            return await asyncio.to_thread(lambda: [value])

    function = Noting()
    assert run_async(function, capacity=3).send(*range(10)) == list(range(10))
    assert function.calls == [(value, threading.get_ident()) for value in range(10)]
