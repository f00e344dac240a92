"""Jobs on Spark: clients, restarts, checkpoints, and what must not be seen of the engine."""

import threading
from pathlib import Path

import pytest
from support import script

from penstock.common import Configuration, JobStatus, RestartStrategies
from penstock.common.errors import InvalidProgramError, JobExecutionError, UserFunctionError
from penstock.core.sink import Committer, HandOverWriter, Sink
from penstock.datastream import KeyedProcessFunction, MapFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.spark.report_sink import _Listener

pytestmark = pytest.mark.spark


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield ctx.get_current_key(), self.count.value()


class FailFirst(MapFunction):
    """Fails on a record until the job was restarted often enough."""

    def __init__(self, record, attempts):
        self.record, self.attempts = record, attempts

    def open(self, runtime_context: RuntimeContext):
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value):
        if value == self.record and self.attempt < self.attempts:
            raise ValueError(f"attempt {self.attempt}")
        return value


class Kept(Sink):
    """Commits into a list of the test."""

    def __init__(self, commits, on_commit=None):
        self.commits, self.on_commit = commits, on_commit

    def __getstate__(self):
        return {}

    def create_writer(self, context):
        return HandOverWriter()

    def create_committer(self):
        return _Committer(self.commits, self.on_commit)


class _Committer(Committer):
    def __init__(self, commits, on_commit):
        self.commits, self.on_commit = commits, on_commit

    def commit(self, committables, checkpoint_id):
        self.commits[checkpoint_id] = list(committables)
        if self.on_commit is not None:
            self.on_commit(checkpoint_id)


@pytest.fixture
def env(spark):
    """Small batches, so that a job has many of them."""
    configuration = Configuration.from_dict({"penstock.batch.max-records": "40"})
    return StreamExecutionEnvironment(configuration, spark=spark).set_parallelism(2)


def all_counts(commits):
    return sorted(record for records in commits.values() for record in records)


def expected_counts(records, keys):
    return sorted((key, n) for key in range(keys) for n in range(1, len(range(key or keys, records + 1, keys)) + 1))


def test_a_job_that_fails_is_restarted_from_its_last_checkpoint(env):
    commits = {}
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 10))
    numbers = env.from_sequence(1, 120).map(FailFirst(55, attempts=2))
    numbers.key_by(lambda n: n % 3).process(Count()).sink_to(Kept(commits))
    client = env.execute_async("restarted")
    client.get_job_execution_result().result()
    assert client.progress.restarts == 2
    assert all_counts(commits) == expected_counts(120, 3)
    assert client.progress.source_records == 120  # what was replayed counts once


def test_a_job_that_fails_too_often_raises_the_users_error(env):
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 10))
    env.from_sequence(1, 20).map(FailFirst(5, attempts=9)).print()
    client = env.execute_async("hopeless")
    with pytest.raises(UserFunctionError, match="ValueError: attempt 1"):
        client.get_job_execution_result().result()
    assert client.get_job_status().result() is JobStatus.FAILED


def test_a_running_job_can_be_cancelled_and_continued(env, tmp_path):
    commits, second = {}, threading.Event()
    env.get_checkpoint_config().set_checkpoint_storage(tmp_path.as_uri())

    def build():
        numbers = env.from_sequence(1, 240).uid("numbers")
        counts = numbers.key_by(lambda n: n % 3).process(Count()).uid("counts")
        counts.sink_to(Kept(commits, lambda checkpoint: checkpoint >= 2 and second.set())).uid("sink")

    build()
    client = env.execute_async("cancelled")
    assert second.wait(100)
    assert client.get_job_status().result() is JobStatus.RUNNING
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED
    stopped_at = max(commits)
    assert stopped_at < 6
    build()
    env.execute("continued")
    assert sorted(commits) == list(range(1, max(commits) + 1))
    assert all_counts(commits) == expected_counts(240, 3)
    # It is done: another run has nothing to add.
    before = dict(commits)
    build()
    env.execute("again")
    assert commits == before


class Alarm(KeyedProcessFunction):
    """Rings once, some time after its record."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + value[1])
        yield value[0], "set"

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), "rings"


def test_processing_time_timers_fire_though_nothing_comes_and_after_a_restart(env, tmp_path):
    commits, first = {}, threading.Event()
    env.get_checkpoint_config().set_checkpoint_storage(tmp_path.as_uri())

    def build(on_commit):
        source = script(env, [("soon", 300), ("later", 4_000)], bounded=False).uid("script")
        source.key_by(0).process(Alarm()).uid("alarm").sink_to(Kept(commits, on_commit)).uid("sink")

    def rings(key):
        return any((key, "rings") in records for records in commits.values())

    build(lambda _: rings("soon") and first.set())
    client = env.execute_async("alarms")
    assert first.wait(100)
    client.cancel().result()
    second = threading.Event()
    build(lambda _: rings("later") and second.set())
    client = env.execute_async("alarms again")
    assert second.wait(100)
    client.cancel().result()
    assert all_counts(commits) == [("later", "rings"), ("later", "set"), ("soon", "rings"), ("soon", "set")]


def test_a_failing_commit_is_the_jobs_error(env):
    def fail(checkpoint_id):
        raise OSError("disk full")

    env.from_sequence(1, 10).sink_to(Kept({}, fail)).name("files")
    with pytest.raises(
        JobExecutionError, match=r"sink 'Sink: files' failed to commit batch 1: OSError: disk full"
    ) as caught:
        env.execute()
    assert "java" not in str(caught.value)


def test_a_checkpoint_of_another_job_is_refused(env, tmp_path):
    env.get_checkpoint_config().set_checkpoint_storage(tmp_path.as_uri())
    env.from_sequence(1, 10).key_by(lambda n: n % 2).process(Count()).name("counts").uid("counts").print()
    env.execute()
    env.from_sequence(1, 10).key_by(lambda n: n % 2).process(Count()).uid("other").print()
    with pytest.raises(InvalidProgramError, match="counts"):
        env.execute()


def test_two_jobs_run_at_the_same_time(env):
    first, second = {}, {}
    env.from_sequence(1, 60).key_by(lambda n: n % 2).process(Count()).sink_to(Kept(first))
    one = env.execute_async("one")
    env.from_sequence(1, 90).key_by(lambda n: n % 3).process(Count()).sink_to(Kept(second))
    two = env.execute_async("two")
    one.get_job_execution_result().result()
    two.get_job_execution_result().result()
    assert all_counts(first) == expected_counts(60, 2)
    assert all_counts(second) == expected_counts(90, 3)


def test_nothing_of_the_engine_is_printed(env, capfd):
    env.from_sequence(1, 10).map(lambda n: 1 / (n - 5)).print()
    with pytest.raises(UserFunctionError):
        env.execute()
    printed = capfd.readouterr()
    for text in (printed.out, printed.err):
        assert "java" not in text
        assert "Traceback" not in text
        assert "WARN" not in text


def test_a_spark_without_our_sink_reports_through_foreach_batch(env, monkeypatch):
    """As in a session that Penstock did not start."""
    monkeypatch.setattr("penstock.spark.report_sink._sink_class", lambda spark: None)
    commits = {}
    env.from_sequence(1, 100).key_by(lambda n: n % 3).process(Count()).sink_to(Kept(commits))
    env.execute()
    assert all_counts(commits) == expected_counts(100, 3)


def test_what_a_batch_sends_to_the_driver_arrives_whole_also_if_it_is_large(spark, monkeypatch):
    stored, original = [], _Listener.stored

    def store(self, batch_id, path):
        stored.append(Path(path))
        assert Path(path).stat().st_size > 65_536
        original(self, batch_id, path)

    monkeypatch.setattr(_Listener, "stored", store)
    commits = {}
    env = StreamExecutionEnvironment(spark=spark).set_parallelism(2)
    env.from_sequence(1, 3_000).map(lambda n: f"{n:0100d}").sink_to(Kept(commits))
    env.execute()
    assert sorted(int(value) for values in commits.values() for value in values) == list(range(1, 3_001))
    assert stored
    assert not any(path.parent.exists() for path in stored)


class Diary(MapFunction):
    """Writes down when it was opened and closed, and counts the records it has seen in a field of its own."""

    def __init__(self, directory, name):
        self.directory, self.name = directory, name

    def open(self, runtime_context: RuntimeContext):
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.seen = 0
        self._note("open")

    def map(self, value):
        self.seen += 1
        return value

    def close(self):
        self._note(f"close {self.seen}")

    def _note(self, event):
        with (self.directory / f"{self.name}-{self.subtask}").open("a") as diary:
            diary.write(event + "\n")


def test_a_function_lives_from_the_first_batch_to_the_last_whichever_worker_spark_asks(env, tmp_path):
    numbers = env.from_sequence(1, 1_000).map(Diary(tmp_path, "source"))
    numbers.key_by(lambda n: n % 10).map(Diary(tmp_path, "keyed")).map(lambda n: None).print()
    env.execute()
    diaries = {path.name: path.read_text().split("\n")[:-1] for path in tmp_path.iterdir()}
    assert sorted(diaries) == ["keyed-0", "keyed-1", "source-0", "source-1"]
    assert all(len(lines) == 2 and lines[0] == "open" for lines in diaries.values()), diaries
    assert sum(int(lines[1].split()[1]) for name, lines in diaries.items() if name.startswith("source")) == 1_000
    assert sum(int(lines[1].split()[1]) for name, lines in diaries.items() if name.startswith("keyed")) == 1_000
