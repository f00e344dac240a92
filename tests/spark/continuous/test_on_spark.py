"""The continuous mode on a real Spark: results, failures, savepoints, and what is rejected before it starts."""

import os
import random
import signal
import time

import pytest
from counting_job import KEYS
from processes import alive, wait_until
from test_jobs import Count, Kept, all_counts, expected_counts
from test_kill import Program
from test_savepoints import Commits

from penstock.common import Configuration, JobStatus, RestartStrategies
from penstock.common.errors import InvalidProgramError, JobCancelledError, UserFunctionError
from penstock.datastream import MapFunction, StreamExecutionEnvironment
from penstock.spark.continuous.slots import slots_of
from penstock.spark.features import SparkMode, missing_for

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

RECORDS = 560


def environment(spark, parallelism=2, mode="continuous", **configuration):
    settings = {"penstock.batch.max-records": "20", "execution.checkpointing.interval": "20 ms", **configuration}
    env = StreamExecutionEnvironment(Configuration.from_dict(settings), spark=spark)
    return env.set_spark_execution_mode(mode).set_parallelism(parallelism)


def counting(env, commits, function=None, records=RECORDS):
    numbers = env.from_sequence(1, records).uid("numbers")
    if function is not None:
        numbers = numbers.map(function).uid("map")
    counts = numbers.key_by(lambda n: n % KEYS).process(Count()).uid("count")
    counts.sink_to(Kept(commits, commits.on_commit)).uid("kept").set_parallelism(1)
    return env


def test_a_keyed_job_gives_its_results(spark):
    commits = Commits()
    counting(environment(spark), commits).execute("counts")
    assert all_counts(commits) == expected_counts(RECORDS, KEYS)


def test_an_error_of_a_function_names_its_operator(spark):
    def divide(number):
        return 1 // (number - 5)

    env = environment(spark).set_restart_strategy(RestartStrategies.no_restart())
    env.from_sequence(1, 9).key_by(lambda n: n).map(divide).name("divide").print()
    with pytest.raises(UserFunctionError, match=r"'divide'(?s:.*)return 1 // \(number - 5\)"):
        env.execute("fails")


class KillOnce(MapFunction):
    """Ends its process in the middle of the input, the first time."""

    def __init__(self, marker):
        self.marker = marker

    def map(self, value):
        if value == RECORDS // 2 and not os.path.exists(self.marker):  # noqa: PTH110
            with open(self.marker, "w", encoding="ascii"):  # noqa: PTH123
                os.kill(os.getpid(), signal.SIGKILL)
        return value


def test_a_worker_that_is_killed_costs_and_repeats_nothing(spark, tmp_path):
    commits = Commits()
    env = environment(spark).set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    counting(env, commits, KillOnce(str(tmp_path / "killed")))
    client = env.execute_async("counts")
    client.get_job_execution_result().result(300)
    assert (tmp_path / "killed").exists()
    assert all_counts(commits) == expected_counts(RECORDS, KEYS)


# Where Spark cannot run the query, the job changes its parallelism only.
CROSSINGS = [("continuous", "micro-batch"), ("micro-batch", "continuous")]
if missing_for(SparkMode.MICRO_BATCH):
    CROSSINGS = [("continuous", "continuous")]


@pytest.mark.parametrize(("first", "second"), CROSSINGS)
def test_a_job_that_was_stopped_continues_in_the_other_mode_at_another_parallelism(spark, tmp_path, first, second):
    before = Commits()
    env = counting(environment(spark, 2, first), before, records=10_000_000)
    client = before.of(env.execute_async("counts"))
    before.wait_for(3)
    path = client.stop_with_savepoint(False, str(tmp_path)).result(200)
    stopped = all_counts(before)
    assert stopped
    after = Commits()
    env = environment(spark, 1, second, **{"execution.savepoint.path": path})
    client = after.of(counting(env, after, records=10_000_000).execute_async("counts"))
    after.wait_for(3)
    client.cancel().result(200)
    continued = [record for checkpoint in sorted(after) for record in after[checkpoint]]
    assert continued
    assert_counted([*stopped, *continued])


def test_a_function_in_an_endless_loop_can_be_cancelled(spark, tmp_path):
    looping = tmp_path / "looping"

    def loop(number):
        looping.touch()
        while True:
            pass

    env = environment(spark)
    env.from_sequence(1, 10).key_by(lambda n: n).map(loop).print()
    client = env.execute_async("endless")
    wait_until(looping.exists, 200, "the loop")
    client.cancel().result(200)
    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobCancelledError):
        client.get_job_execution_result().result()
    commits = Commits()
    counting(environment(spark), commits).execute("counts")  # all slots are free again
    assert all_counts(commits) == expected_counts(RECORDS, KEYS)


def test_more_parallelism_than_slots_is_rejected_with_advice(spark):
    slots = slots_of(spark)
    env = environment(spark, slots + 1)
    env.from_sequence(1, 10).key_by(lambda n: n).map(str).print()
    with pytest.raises(InvalidProgramError, match=rf"parallelism {slots + 1}, but Spark has {slots} slots.*local\["):
        env.execute("wide")


def test_a_driver_that_is_killed_continues_from_its_last_checkpoint_and_leaves_no_process(tmp_path):
    moments = random.Random(seed := random.randrange(2**32))
    print(f"seed {seed}")  # noqa: T201 - shown if the test fails
    for _ in range(3):
        with Program(tmp_path, 10_000_000, "continuous") as program:
            program.wait_for(len(program.files) + moments.randint(1, 8))
            time.sleep(moments.uniform(0, 0.02))  # any moment of a step
            program.note_children()
            os.kill(program.process.pid, signal.SIGKILL)
            program.process.wait()
            wait_until(lambda program=program: not alive(program.children), 60, "the end of the JVM and its workers")
    files = program.files
    assert sorted(files) == list(range(1, max(files) + 1))  # no checkpoint is missing
    assert_counted([tuple(record) for records in files.values() for record in records])


def assert_counted(found):
    """Every key was counted from 1, without gaps or repetitions."""
    totals = {key: sum(1 for each, _ in found if each == key) for key in range(KEYS)}
    assert sorted(found) == [(key, n) for key in range(KEYS) for n in range(1, totals[key] + 1)]
