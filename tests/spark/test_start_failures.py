"""Spark gives a Python process ten seconds to connect: on a busy machine that is too little, and no failure of the job.

Here the processes connect at once and end, which Spark reports in the same words and without waiting.
"""

import sys
import textwrap

import pytest
from test_jobs import Kept

from penstock.common.errors import JobExecutionError
from penstock.common.restart_strategy import RestartStrategies
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.spark.failures import decode_failure
from penstock.spark.start_failures import StartPatience, WorkerStartError

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="workers connect through Unix sockets")
PLANNER = "python_streaming_source_runner"
SCHEMA_WORKER = "transform_with_state_driver_worker"


@pytest.fixture
def broken_starts(spark, tmp_path, monkeypatch):
    """Make the first processes of a kind fail to start; tells how many have tried."""
    tried = tmp_path / "tried"
    tried.mkdir()

    def prepare(module, failures):
        code = f"""
            import os, socket, sys
            if any({module!r} in word for word in sys.orig_argv):
                open(os.path.join({str(tried)!r}, str(os.getpid())), "x").close()
                if len(os.listdir({str(tried)!r})) <= {failures}:
                    with socket.socket(socket.AF_UNIX) as link:
                        link.connect(os.environ["PYTHON_WORKER_FACTORY_SOCK_PATH"])
                    os._exit(0)
            """
        (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(code))
        monkeypatch.setitem(spark.sparkContext.environment, "PYTHONPATH", str(tmp_path))
        return lambda: len(list(tried.iterdir()))

    return prepare


def counting(spark, commits):
    env = StreamExecutionEnvironment(spark=spark).set_parallelism(1)
    env.set_restart_strategy(RestartStrategies.no_restart())
    env.from_sequence(1, 50).key_by(lambda n: n % 3).map(lambda n: n).sink_to(Kept(commits))
    return env.execute_async("counting")


@on_linux
@pytest.mark.spark
@pytest.mark.parametrize("module", [PLANNER, SCHEMA_WORKER])
def test_a_process_that_does_not_start_in_time_does_not_end_a_job_without_restarts(module, spark, broken_starts):
    tried = broken_starts(module, failures=2)
    commits = {}
    client = counting(spark, commits)
    client.get_job_execution_result().result(100)
    assert sorted(record for records in commits.values() for record in records) == list(range(1, 51))
    assert tried() >= 3
    assert client.progress.restarts == 2


@on_linux
@pytest.mark.spark
def test_where_python_never_starts_the_job_ends_and_says_what_to_do(spark, broken_starts):
    tried = broken_starts(PLANNER, failures=1_000)
    with pytest.raises(WorkerStartError, match="Python process in time") as failure:
        counting(spark, {}).get_job_execution_result().result(100)
    assert "too busy" in failure.value.__notes__[0]
    assert "PENSTOCK_DEBUG" in failure.value.__notes__[0]
    assert tried() == 5


@pytest.mark.spark
def test_a_batch_job_is_begun_again_when_a_worker_does_not_start(spark, monkeypatch):
    from penstock.spark import batch_job

    compiled = []
    compile_batch = batch_job.compile_batch

    def compile_late(*arguments):
        compiled.append(1)
        if len(compiled) < 3:
            raise decode_failure("java.lang.IllegalStateException: Python daemon failed to launch worker with code -11")
        return compile_batch(*arguments)

    monkeypatch.setattr(batch_job, "compile_batch", compile_late)
    env = StreamExecutionEnvironment(spark=spark).set_parallelism(1).set_runtime_mode(RuntimeExecutionMode.BATCH)
    commits = {}
    env.from_sequence(1, 5).map(lambda n: n).sink_to(Kept(commits))
    env.execute("late")
    assert len(compiled) == 3
    assert sorted(record for records in commits.values() for record in records) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "text",
    [
        "org.apache.spark.SparkException: Python worker failed to connect back.\n\tat org.apache.spark.api(X.scala:1)",
        "java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back after 60000 ms",
        "java.lang.IllegalStateException: Python daemon failed to launch worker with code -11",
    ],
)
def test_what_spark_says_of_a_late_process_is_understood_without_java_frames(text):
    error = decode_failure(text)
    assert isinstance(error, WorkerStartError)
    assert "\tat " not in str(error)


def test_a_worker_that_crashed_is_the_restart_strategys_affair():
    error = decode_failure("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)")
    assert not isinstance(error, WorkerStartError)
    assert not StartPatience().lasts(error, committed=1)


def test_patience_begins_anew_with_every_commit_and_ends_where_nothing_moves():
    patience = StartPatience(attempts=3)
    late = WorkerStartError("late")
    assert [patience.lasts(late, committed=1) for _ in range(2)] == [True, True]
    assert [patience.lasts(late, committed=2) for _ in range(3)] == [True, True, False]
    assert "Tried 3 times" in late.__notes__[0]
    assert not patience.lasts(JobExecutionError("other"), committed=3)
