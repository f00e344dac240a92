"""The continuous mode without Spark: tasks are threads of this process."""

import itertools
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from penstock.common import Configuration, Types
from penstock.common.errors import CheckpointError, UserFunctionError
from penstock.connectors import CollectSink, PrintSink
from penstock.connectors.jdbc import JdbcSink
from penstock.datastream import StreamExecutionEnvironment
from penstock.runtime.checkpoint.commit_log import CommitLog
from penstock.spark.continuous.slots import without_optimising_compiler
from penstock.testing import MiniCluster
from penstock.testing.continuous_cluster import ContinuousCluster


class Program:
    """Running totals by key; what its sink has committed is kept across runs of the program."""

    def __init__(self, records=60, parallelism=2, cluster=ContinuousCluster):
        self.sink = CollectSink()
        self.cluster = cluster(max_records=4)
        self.env = StreamExecutionEnvironment(executor=self.cluster).set_parallelism(parallelism)
        stream = self.env.from_collection(list(range(records))).key_by(lambda n: n % 5).reduce(lambda a, b: a + b)
        stream.uid("totals").sink_to(self.sink).uid("sink").set_parallelism(1)

    def start(self, **options):
        return self.cluster.start(list(self.env.sinks), self.env.job_settings("totals"), job_id="j", **options)

    def collected(self):
        found = []
        while not self.sink.records.empty():
            found += self.sink.records.get()
        return found


def expected(records=60):
    return sorted(
        total for key in range(5) for total in itertools.accumulate(n for n in range(records) if n % 5 == key)
    )


def test_a_checkpoint_takes_several_steps():
    program = Program()
    job = program.start()
    offsets = []
    while not job.over and job.run_batch():
        offsets.append(job.offset.checkpoint_id)
    job.close()
    assert max(offsets) < len(offsets) - 3
    assert sorted(program.collected()) == expected()


def test_transactional_sinks_wait_for_the_checkpoint():
    program = Program()
    job = program.start()
    assert job.run_batch()
    assert job.offset.checkpoint_id == 0
    assert program.collected() == []
    job.run_to_end()
    job.close()
    assert sorted(program.collected()) == expected()


def test_sinks_that_need_no_checkpoint_publish_at_once(capsys):
    cluster = ContinuousCluster(max_records=4)
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(1)
    env.from_collection(list(range(40))).key_by(lambda n: n).map(str).sink_to(PrintSink())
    job = cluster.start(list(env.sinks), env.job_settings("print"))
    assert job.run_batch()
    assert job.offset.checkpoint_id == 0
    assert capsys.readouterr().out.split() == ["0", "1", "2", "3"]
    job.run_to_end()
    job.close()
    assert len(capsys.readouterr().out.split()) == 36


@pytest.mark.parametrize("steps", range(1, 16, 2))
def test_a_killed_job_resumes_from_its_last_complete_checkpoint(tmp_path, steps):
    program = Program()
    job = program.start(directory=str(tmp_path))
    for _ in range(steps):
        job.run_batch()
    job.kill()
    job = program.start(directory=str(tmp_path))
    job.run_to_end()
    job.close()
    assert sorted(program.collected()) == expected()


def test_a_job_that_is_killed_after_every_few_steps_loses_and_repeats_nothing(tmp_path):
    program = Program(records=200)
    for _ in range(50):
        job = program.start(directory=str(tmp_path))
        for _ in range(7):
            if not job.over:
                job.run_batch()
        if job.over:
            job.close()
            break
        job.kill()
    assert job.finished
    assert sorted(program.collected()) == expected(200)


@pytest.mark.parametrize(("first", "second"), [(ContinuousCluster, MiniCluster), (MiniCluster, ContinuousCluster)])
def test_a_savepoint_of_one_mode_restores_in_the_other_at_another_parallelism(tmp_path, first, second):
    before = Program(parallelism=2, cluster=first)
    job = before.start()
    for _ in range(5):
        job.run_batch()
    savepoint = job.stop_with_savepoint(str(tmp_path))
    after = Program(parallelism=3, cluster=second)
    job = after.start(savepoint=savepoint)
    job.run_to_end()
    job.close()
    assert sorted(before.collected() + after.collected()) == expected()


def test_a_drained_job_ends_with_its_savepoint(tmp_path):
    program = Program()
    job = program.start()
    job.run_batch()
    job.stop_with_savepoint(str(tmp_path), drain=True)
    assert job.finished
    collected = program.collected()
    assert collected
    assert set(collected) <= set(expected())


def test_the_number_of_files_stays_bounded(tmp_path):
    program = Program(records=800)
    job = program.start(directory=str(tmp_path))
    most = 0
    while not job.over and job.run_batch():
        most = max(most, len(list(tmp_path.glob("continuous/*"))))
    job.close()
    assert job.offset.checkpoint_id > 30
    assert most < 60


def test_a_damaged_file_is_noticed(tmp_path):
    program = Program()
    job = program.start(directory=str(tmp_path))
    for _ in range(8):
        job.run_batch()
    job.kill()
    for path in Path(tmp_path, "continuous").glob("*.state"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(bytes(data))
    job = program.start(directory=str(tmp_path))
    with pytest.raises(CheckpointError, match="does not match its checksum"):
        job.run_to_end()
    job.kill()


def test_an_error_of_a_task_names_its_operator_and_ends_the_others():
    cluster = ContinuousCluster()
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(3)
    env.from_collection(list(range(9))).key_by(lambda n: n).map(lambda n: 1 // (n - 4)).name("divide").sink_to(
        CollectSink()
    )
    with pytest.raises(UserFunctionError, match="divide"):
        env.execute("fails")


class RowsOnce:
    """Rows of a program whose sink recognizes repeated batches by their checkpoint id."""

    def __init__(self, database):
        self.url = f"jdbc:sqlite:{database}"
        self.connect = partial(sqlite3.connect, database)
        with closing(self.connect()) as connection:
            connection.execute("CREATE TABLE t (n BIGINT)")

    def start(self, directory, max_records):
        row = Types.ROW_NAMED(["n"], [Types.LONG()])
        cluster = ContinuousCluster(max_records=max_records)
        env = StreamExecutionEnvironment(executor=cluster).set_parallelism(2)
        numbers = env.from_sequence(1, 100).key_by(lambda n: n % 5).map(lambda n: (n,))
        numbers.sink_to(JdbcSink("INSERT INTO t VALUES (?)", row, url=self.url, exactly_once=True)).uid("rows")
        return cluster.start(list(env.sinks), env.job_settings("rows"), job_id="j", directory=str(directory))

    def written(self):
        with closing(self.connect()) as connection:
            return sorted(n for (n,) in connection.execute("SELECT n FROM t"))


def test_a_sink_that_recognizes_repeated_batches_writes_each_record_once_however_steps_are_cut(tmp_path):
    rows = RowsOnce(tmp_path / "db")
    for run in range(60):
        job = rows.start(tmp_path / "checkpoints", max_records=3 + run % 4)
        for _ in range(3 + run % 5):
            if not job.over:
                job.run_batch()
        if job.over:
            job.close()
            break
        job.kill()
    assert job.finished
    assert rows.written() == list(range(1, 101))


def test_rows_that_were_written_before_a_crash_are_recognized_after_it(tmp_path, monkeypatch):
    rows = RowsOnce(tmp_path / "db")
    job = rows.start(tmp_path / "checkpoints", max_records=10)
    with monkeypatch.context() as patch:
        patch.setattr(CommitLog, "remove", _crash)
        with pytest.raises(_CrashError):
            job.run_to_end()
    job.kill()
    before = rows.written()
    assert before
    job = rows.start(tmp_path / "checkpoints", max_records=7)
    job.run_to_end()
    job.close()
    assert rows.written() == list(range(1, 101))


class _CrashError(BaseException):
    """The end of the driver."""


def _crash(*_):
    raise _CrashError


def test_the_users_options_for_java_come_after_ours():
    env = StreamExecutionEnvironment(executor=ContinuousCluster())
    settings = without_optimising_compiler(env.job_settings("plain"))
    assert settings.configuration["spark.driver.extraJavaOptions"] == "-XX:TieredStopAtLevel=1"
    env = StreamExecutionEnvironment(
        Configuration.from_dict({"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=4"})
    )
    settings = without_optimising_compiler(env.job_settings("tuned"))
    assert settings.configuration["spark.driver.extraJavaOptions"].endswith(" -XX:TieredStopAtLevel=4")
