"""Restart strategies on Spark, for each kind of failure: user code, a Python worker, the driver's query, a sink.

Executors that fail are in test_cluster.py, the rules of each strategy in tests/common/test_restart_strategy.py.
"""

import os
import sys
import time

import pytest
from chaos import Run, forked_workers, planners, python_processes, undisturbed
from chaos_job import build, committed, environment, state_in, stop
from processes import kill, wait_until
from test_jobs import Kept

from penstock.common import Configuration, JobStatus
from penstock.common.errors import InvalidProgramError, JobCancelledError, JobExecutionError, UserFunctionError
from penstock.common.restart_strategy import RestartStrategies
from penstock.datastream import (
    CheckpointedFunction,
    MapFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import ListStateDescriptor

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc"),
]

STRATEGIES = {
    "fixed delay": (lambda: RestartStrategies.fixed_delay_restart(2, 10), 2),
    "failure rate": (lambda: RestartStrategies.failure_rate_restart(2, 3_600_000, 10), 2),
    "exponential delay": (
        lambda: RestartStrategies.exponential_delay_restart(10, 40, 2.0, 3_600_000, 0.1, attempts_before_reset=2),
        2,
    ),
    "none": (RestartStrategies.no_restart, 0),
    "Flink's default without checkpointing": (RestartStrategies.fall_back_restart, 0),
}


def poisoned(value):
    if value == 77:
        raise ValueError("poison")
    return value


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_poisoned_record_ends_the_job_when_the_strategy_is_exhausted_and_is_named(name, spark):
    make, restarts = STRATEGIES[name]
    env = StreamExecutionEnvironment(Configuration.from_dict({"penstock.batch.max-records": "50"}), spark=spark)
    env.set_parallelism(2).set_restart_strategy(make())
    commits = {}
    env.from_sequence(1, 200).map(poisoned).name("careful").key_by(lambda n: n % 3).map(lambda n: n).sink_to(
        Kept(commits)
    )
    client = env.execute_async("poisoned")
    with pytest.raises(UserFunctionError, match=r"(?s)'careful'.*record: 77.*ValueError: poison") as failure:
        client.get_job_execution_result().result(200)
    assert client.progress.restarts == restarts
    assert client.get_job_status().result() is JobStatus.FAILED
    notes = "".join(getattr(failure.value, "__notes__", []))
    assert (f"restarted {restarts} times" in notes) == bool(restarts)
    assert 77 not in [record for records in commits.values() for record in records]


def ending(value):
    if value == 77:
        os._exit(0)
    return value


def test_a_function_that_ends_its_process_fails_the_job_and_its_operator_is_named(spark):
    env = StreamExecutionEnvironment(spark=spark)
    env.set_parallelism(1).set_restart_strategy(RestartStrategies.no_restart())
    env.from_sequence(1, 100).map(lambda n: n).name("harmless").key_by(lambda n: 0).map(ending).name("deadly").print()
    with pytest.raises(JobExecutionError, match=r"died while it was running 'deadly'.* os\._exit\(\)"):
        env.execute("deadly")


def test_in_batch_mode_too_the_last_failure_says_how_often_the_job_was_restarted(spark):
    env = StreamExecutionEnvironment(spark=spark).set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.set_parallelism(2).set_restart_strategy(RestartStrategies.fixed_delay_restart(2, 10))
    env.from_sequence(1, 200).map(poisoned).name("careful").sink_to(Kept({}))
    client = env.execute_async("poisoned")
    with pytest.raises(UserFunctionError, match=r"(?s)'careful'.*record: 77") as failure:
        client.get_job_execution_result().result(200)
    assert client.progress.restarts == 2
    assert "restarted 2 times" in "".join(failure.value.__notes__)


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_a_wrong_program_is_not_tried_again(mode, spark):
    env = StreamExecutionEnvironment(spark=spark).set_parallelism(2).set_runtime_mode(mode)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 10))
    env.from_sequence(1, 10).partition_custom(lambda key, subtasks: subtasks, lambda n: n).map(lambda n: n).print()
    client = env.execute_async("wrong")
    with pytest.raises(InvalidProgramError, match="returned 2"):
        client.get_job_execution_result().result(200)
    assert client.progress.restarts == 0


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_a_cancelled_job_has_no_result(mode, spark, tmp_path):
    begun = tmp_path / "begun"

    def slow(number):
        begun.touch()
        time.sleep(0.01)
        return number

    env = StreamExecutionEnvironment(spark=spark).set_parallelism(1).set_runtime_mode(mode)
    env.from_sequence(1, 1_000_000).map(slow).filter(lambda number: False).print()
    client = env.execute_async("cancelled")
    wait_until(begun.exists, 200, "the first record")
    client.cancel().result(200)
    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobCancelledError, match="job 'cancelled' was cancelled"):
        client.get_job_execution_result().result(200)


class FailsOnce(MapFunction):
    """Once for the whole job, as the file knows."""

    def __init__(self, path):
        self.path = path

    def map(self, value):
        if value == 120 and not os.path.exists(self.path):  # noqa: PTH110
            with open(self.path, "x"):  # noqa: PTH123
                pass
            raise ValueError("once")
        return value


def test_with_checkpointing_a_job_is_restarted_by_default_as_in_flink(spark, tmp_path):
    env = StreamExecutionEnvironment(Configuration.from_dict({"penstock.batch.max-records": "50"}), spark=spark)
    env.set_parallelism(2).enable_checkpointing(1_000)
    commits = {}
    numbers = env.from_sequence(1, 200).map(FailsOnce(str(tmp_path / "failed")))
    numbers.key_by(lambda n: n % 3).map(lambda n: n).sink_to(Kept(commits))
    client = env.execute_async("default")
    client.get_job_execution_result().result(200)
    assert client.progress.restarts == 1
    assert sorted(record for records in commits.values() for record in records) == list(range(1, 201))


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return undisturbed(tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.parametrize("victims", [forked_workers, planners], ids=["a Python worker", "the query's planner"])
def test_a_killed_process_is_a_failure_from_which_the_strategy_restarts(victims, spark, expected, tmp_path):
    run = Run(spark, tmp_path, 5, {"victims": victims})
    assert run.live() == expected
    assert run.hits


def daemons_first():
    """All Python processes: those that fork others, then the others, then those whose end is noticed at once."""
    below = python_processes()
    last = {**dict.fromkeys(below, 0), **dict.fromkeys(forked_workers(), 1), **dict.fromkeys(planners(), 2)}
    return sorted(below, key=lambda pid: last[pid])


def test_all_python_processes_killed_at_once_are_one_failure(spark, expected, tmp_path):
    output = tmp_path / "output"
    output.mkdir()
    env = environment(tmp_path / "checkpoint", spark=spark)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 200))
    build(env, output)
    client = env.execute_async("all at once")
    result = client.get_job_execution_result()
    wait_until(lambda: result.done() or client.progress.checkpoint_id >= 3, 200, "three commits")
    kill(daemons_first())
    path = stop(client, output, str(tmp_path / "savepoints"))
    result.result(200)
    assert client.progress.restarts == 1
    assert (committed(output), state_in(path)) == expected


def test_a_job_starts_though_all_python_processes_of_the_last_one_were_killed(spark):
    def run():
        env = StreamExecutionEnvironment(spark=spark).set_parallelism(2)
        numbers = env.from_sequence(1, 10).key_by(lambda n: n % 3).map(lambda n: n)
        return sorted(numbers.execute_and_collect())

    assert run() == list(range(1, 11))
    killed = daemons_first()
    assert killed
    kill(killed)
    wait_until(lambda: not set(killed) & set(python_processes()), 60, "the end of the processes")
    assert run() == list(range(1, 11))


def test_a_killed_worker_ends_a_job_without_restarts_with_a_clear_error(spark, tmp_path):
    (tmp_path / "output").mkdir()
    env = environment(tmp_path / "checkpoint", spark=spark).set_restart_strategy(RestartStrategies.no_restart())
    build(env, tmp_path / "output")
    client = env.execute_async("killed")
    result = client.get_job_execution_result()
    wait_until(lambda: result.done() or client.progress.checkpoint_id >= 2, 200, "two commits")

    def killed():
        kill(forked_workers())
        return result.done()

    wait_until(killed, 200, "the end of the job")
    with pytest.raises(JobExecutionError, match=r"(?i)worker|connection|a Python process died"):
        result.result(200)


class Members(MapFunction, CheckpointedFunction):
    """Each subtask writes what it has seen; when it starts it sees what all have written."""

    def __init__(self, path):
        self.path = path

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_union_list_state(ListStateDescriptor("seen"))
        self.mine = []
        self.found = sorted(self.state.get())

    def snapshot_state(self, context):
        self.state.update(self.mine)

    def map(self, value):
        self.mine.append(value)
        if value == 160 and not os.path.exists(self.path):  # noqa: PTH110
            with open(self.path, "x"):  # noqa: PTH123
                pass
            raise ValueError("once")
        return value, self.found


def test_every_subtask_gets_all_of_union_list_state_after_a_restart(spark, tmp_path):
    env = StreamExecutionEnvironment(Configuration.from_dict({"penstock.batch.max-records": "40"}), spark=spark)
    env.set_parallelism(2).set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 10))
    commits = {}
    numbers = env.from_sequence(1, 200).partition_custom(lambda key, subtasks: key % subtasks, lambda n: n)
    numbers.map(Members(str(tmp_path / "failed"))).uid("members").sink_to(Kept(commits))
    client = env.execute_async("union")
    client.get_job_execution_result().result(200)
    assert client.progress.restarts == 1
    records = [record for checkpoint_id in sorted(commits) for record in commits[checkpoint_id]]
    assert sorted(value for value, _ in records) == list(range(1, 201))
    before = sorted(value for value, found in records if not found)
    after = {tuple(found) for _, found in records if found}
    assert after == {tuple(before)}  # both subtasks, those of both
