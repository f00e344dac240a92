"""Jobs on a Spark cluster: a standalone master and two workers of this machine, with executors of their own.

One cluster and one session serve all tests of this module. What is killed here comes back, or is replaced.
"""

import contextlib
import importlib
import json
import os
import random
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from chaos import TOGETHER, Run, assert_everything_was_hit, group_name, groups, live_together, undisturbed, written_down
from chaos_job import build, committed, environment, state_in, stop
from chaos_log import LOG
from chaos_phases import AIMS, Blow
from counting_job import FilesSink
from processes import SOURCES, kill, wait_until
from pyspark import SparkContext

from penstock.common import Configuration
from penstock.common.errors import UserFunctionError
from penstock.common.restart_strategy import RestartStrategies
from penstock.datastream import MapFunction, StreamExecutionEnvironment
from penstock.spark import executor
from penstock.spark.report_sink import _sink_class
from penstock.spark.session import build_session, stop_session
from penstock.testing.spark_cluster import SparkCluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc"),
]

WAIT_SECONDS = 240


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """A Python that has all packages but Penstock, as on a machine with only pyarrow installed."""
    packages = sysconfig.get_paths()["purelib"]
    path = tmp_path_factory.mktemp("python") / "python"
    # Without `site` nothing that leads to our sources is looked at.
    path.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {sys.executable} -S "$@"\n')
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="module")
def cluster():
    with SparkCluster(workers=2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def session(cluster, bare_python):
    """The one Spark of this process is the cluster's, for as long as this module lasts."""
    executor.stop_embedded_session()
    if SparkContext._active_spark_context is not None:
        stop_session(build_session())
    session = build_session(cluster.master, conf={**cluster.conf, "spark.pyspark.python": bare_python})
    yield session
    stop_session(session)


@pytest.fixture
def spark(session, cluster):
    """All executors are there: the test before may have killed one."""
    wait_until(lambda: len(cluster.executors()) == 2, WAIT_SECONDS, "the start of both executors")
    return session


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return undisturbed(tmp_path_factory.mktemp("undisturbed"))


class Places(MapFunction):
    """Where this worker has something from."""

    def open(self, runtime_context):
        self.folder = runtime_context.get_distributed_cache().get_file("words")

    def map(self, value):
        module = importlib.import_module("penstock_test_of_executors")
        return str(Path(module.__file__).resolve()), Path(self.folder, "words.txt").read_text()


def targets_on(cluster):
    """Python workers, or whole executors."""
    return {"executors": cluster.executors, "Python workers of executors": cluster.python_workers}


def one_blow(commits):
    return [Blow(0, commits, None, None, 1, 0.1)]


SQUARES = """
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
squares = env.from_collection(list(range(8))).key_by(lambda n: n % 2).map(lambda n: n * n)
for n in sorted(squares.execute_and_collect("squares")):
    print(n)
"""


def test_the_command_runs_a_program_on_a_cluster(cluster, tmp_path):
    """Runs first, while no other test holds the executors."""
    (tmp_path / "squares.py").write_text(SQUARES)
    settings = [part for key, value in cluster.conf.items() for part in ("-D", f"{key}={value}")]
    command = [sys.executable, "-m", "penstock", "run", "--master", cluster.master, "-p", "2", *settings, "squares.py"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    seen = set()
    try:
        wait_until(
            lambda: seen.update(cluster.executors()) or process.poll() is not None, WAIT_SECONDS, "the job's end"
        )
    finally:
        process.kill()
        output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert errors == ""
    assert [int(line) for line in output.splitlines()] == [n * n for n in range(8)]
    assert len(seen) == 2
    wait_until(lambda: not cluster.executors(), WAIT_SECONDS, "the end of the executors")


def test_executors_get_everything_from_the_driver(spark, cluster, tmp_path, expected):
    """Penstock itself, the classes of the report sink, the job: nothing is installed there."""

    def place(_):
        import importlib.util

        found = importlib.util.find_spec("penstock")
        return None if found is None else found.origin

    def places():
        return set(spark.sparkContext.parallelize(range(4), 4).map(place).collect())

    assert places() == {None}
    assert _sink_class(spark) is not None
    assert Run(spark, tmp_path, 0, {"Python workers": cluster.python_workers}, one_blow(2)).live() == expected
    assert all("penstock.zip" in place for place in places())


def test_packages_of_a_job_are_unpacked_where_the_executors_are(spark, tmp_path):
    package = tmp_path / "penstock_test_of_executors"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "words.txt").write_text("words")
    env = environment(tmp_path / "checkpoint", spark=spark)
    env.add_python_file(str(package))
    env.register_cached_file(str(tmp_path / "folder"), "words")
    found = list(env.from_collection([1]).map(Places()).execute_and_collect())
    driver = str(spark.sparkContext._jvm.org.apache.spark.SparkFiles.getRootDirectory())
    ((origin, words),) = found
    assert not origin.startswith((str(tmp_path), driver))
    assert words == "words"


def test_a_worker_killed_in_the_middle_changes_nothing(spark, cluster, tmp_path, expected):
    run = Run(spark, tmp_path, 1, {"worker": lambda: [cluster.workers[0].pid]}, one_blow(3))
    found = run.live()
    cluster.kill(cluster.workers[0])  # for the rest of it
    cluster.add_worker()
    assert found == expected


@pytest.mark.parametrize("group", groups("executors"), ids=group_name)
def test_chaos_executors_killed_nothing_is_lost_and_nothing_comes_twice(group, spark, cluster, expected, tmp_path):
    number = group[0] // TOGETHER["executors"]
    targets = targets_on(cluster)
    name = sorted(targets)[(number + number // len(AIMS)) % len(targets)]  # each of them at each phase, in turn
    runs = [Run(spark, tmp_path / str(seed), seed, {name: targets[name]}, number=number) for seed in group]
    with contextlib.ExitStack() as stack:
        for seed, run in zip(group, runs, strict=True):
            stack.enter_context(written_down("executors", seed, run.hits))
        assert live_together(runs) == [expected] * len(group)


def test_chaos_hit_savepoints_and_rescalings_on_a_cluster_while_tasks_ran(cluster):
    assert_everything_was_hit("executors")
    assert {hit["target"] for hit in LOG.hits("executors")} == set(targets_on(cluster))


def test_a_job_goes_on_from_a_savepoint_and_from_its_checkpoint(spark, cluster, tmp_path, expected):
    """Cancelled in the middle, started again, saved, restored in another directory at another parallelism."""
    output = tmp_path / "output"
    output.mkdir()

    def start(checkpoint, parallelism=2, **configuration):
        env = environment(tmp_path / checkpoint, spark=spark).set_parallelism(parallelism)
        env.configure(Configuration.from_dict(configuration))
        build(env, output)
        return env.execute_async("goes on")

    def wait_for(client, commits):
        result = client.get_job_execution_result()
        wait_until(lambda: result.done() or len(list(output.glob("*.json"))) >= commits, WAIT_SECONDS, "commits")
        assert not result.done()

    client = start("first")
    wait_for(client, 2)
    client.cancel().result(WAIT_SECONDS)
    client = start("first")
    wait_for(client, 4)
    path = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(WAIT_SECONDS)
    client = start("second", 3, **{"execution.savepoint.path": path})
    last = stop(client, output, tmp_path / "savepoints")
    assert (committed(output), state_in(last)) == expected


class Dice:
    """Gives each record another key every time it is asked."""

    def __call__(self, value):
        return random.randrange(1_000), value


def test_a_function_that_rolls_dice_counts_every_record_once_though_an_executor_is_killed(spark, cluster, tmp_path):
    output = tmp_path / "output"
    output.mkdir()
    env = StreamExecutionEnvironment(Configuration.from_dict({"penstock.batch.max-records": "200"}), spark=spark)
    env.set_parallelism(2).set_restart_strategy(RestartStrategies.fixed_delay_restart(10, 20))
    env.get_checkpoint_config().set_checkpoint_storage((tmp_path / "checkpoint").as_uri())
    diced = env.from_sequence(1, 2_000).uid("numbers").map(Dice()).uid("dice")
    diced.key_by(lambda pair: pair[0]).map(lambda pair: pair[1]).uid("numbers again").sink_to(FilesSink(str(output)))
    client = env.execute_async("dice")
    for commits in (1, 4):
        wait_until(lambda wanted=commits: len(list(output.glob("*.json"))) >= wanted, WAIT_SECONDS, "commits")
        kill(cluster.executors()[:1])
    client.get_job_execution_result().result(WAIT_SECONDS)
    found = [record for path in output.glob("*.json") for record in json.loads(path.read_text())]
    assert sorted(found) == list(range(1, 2_001))


def fail_on_77(value):
    if value == 77:
        raise ValueError("poison")
    return value


def test_a_poisoned_record_is_named_when_the_restart_strategy_is_exhausted(spark, tmp_path):
    env = StreamExecutionEnvironment(Configuration.from_dict({"penstock.batch.max-records": "50"}), spark=spark)
    env.set_parallelism(2).set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 20))
    env.from_sequence(1, 100).map(fail_on_77).name("careful").key_by(lambda n: n % 3).print()
    with pytest.raises(UserFunctionError, match=r"(?s)'careful'.*record: 77.*poison") as failure:
        env.execute("poisoned")
    assert "restarted once" in "".join(failure.value.__notes__)
