import pickle
from concurrent.futures import CancelledError, Future

import pytest

from penstock.common import CompletableFuture, JobClient, JobExecutionResult, JobID, JobStatus
from penstock.common.errors import InvalidProgramError


def test_job_ids_are_32_random_hexadecimal_digits():
    one, two = JobID(), JobID()
    assert one != two
    assert len(str(one)) == 32
    assert int(str(one), 16) >= 0


def test_job_ids_are_values():
    text = "0123456789abcdef" * 2
    assert JobID(text) == JobID(text.upper())
    assert JobID(text).to_hex_string() == str(JobID(text)) == text
    assert pickle.loads(pickle.dumps(JobID(text))) == JobID(text)
    assert len({JobID(text), JobID(text)}) == 1


@pytest.mark.parametrize("text", ["", "xyz", "0" * 31, "g" * 32])
def test_other_text_is_no_job_id(text):
    with pytest.raises(InvalidProgramError, match="32 hexadecimal"):
        JobID(text)


def test_terminal_states():
    terminal = {status for status in JobStatus if status.is_globally_terminal_state()}
    assert terminal == {JobStatus.FINISHED, JobStatus.FAILED, JobStatus.CANCELED}
    assert {status for status in JobStatus if status.is_terminal_state()} == terminal | {JobStatus.SUSPENDED}


def test_result_gives_runtime_and_accumulators():
    job_id = JobID()
    result = JobExecutionResult(job_id, 5, {"lines": 3})
    assert result.get_job_id() == job_id
    assert result.get_net_runtime() == 5
    assert result.get_all_accumulator_results() == {"lines": 3}
    assert result.get_accumulator_result("lines") == 3
    assert result.get_accumulator_result("rows") is None


def test_job_client_is_a_contract():
    with pytest.raises(TypeError, match="abstract"):
        JobClient()


def test_future_completes_once():
    future = CompletableFuture()
    seen = []
    future.add_done_callback(seen.append)
    assert not future.done()
    assert future.complete(1)
    assert not future.complete(2)
    assert not future.complete_exceptionally(ValueError())
    assert future.result() == 1
    assert future.exception() is None
    assert seen == [future]


def test_future_raises_its_error():
    future = CompletableFuture()
    assert future.complete_exceptionally(ValueError("no"))
    assert isinstance(future.exception(), ValueError)
    with pytest.raises(ValueError, match="no"):
        future.result()


def test_future_can_be_cancelled_while_pending():
    future = CompletableFuture()
    assert future.cancel()
    assert future.cancelled()
    with pytest.raises(CancelledError):
        future.result()
    assert not CompletableFuture.completed(1).cancel()


def test_future_wraps_an_existing_one_and_shortcuts_are_done():
    inner = Future()
    future = CompletableFuture(inner)
    inner.set_result(5)
    assert future.result() == 5
    assert CompletableFuture.completed(3).result() == 3
    assert isinstance(CompletableFuture.failed(KeyError("x")).exception(), KeyError)
    assert [repr(CompletableFuture()), repr(CompletableFuture.completed(1))] == [
        "<CompletableFuture pending>",
        "<CompletableFuture done>",
    ]


def test_waiting_for_a_future_can_time_out():
    with pytest.raises(TimeoutError):
        CompletableFuture().result(timeout=0)
