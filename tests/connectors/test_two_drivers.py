"""Two drivers on one checkpoint directory: whenever the first one is replaced, every record is in the output once.

On Spark, with processes that are stopped and go on: tests/spark/test_two_drivers.py.
"""

import functools
import os
import sqlite3
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.connectors.file_sinks import FLAT, LINES, hidden, numbers, row_sink
from tests.connectors.servers import postgresql
from tests.connectors.two_drivers import World

from penstock.common import Types
from penstock.common.errors import FencedError
from penstock.connectors.dbapi import open_database
from penstock.connectors.file_system import FileCompactor, FileCompactStrategy, FileSink, RollingPolicy
from penstock.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from penstock.core.functions import TwoPhaseCommitSinkFunction
from penstock.core.sink import WriterInitContext

pytestmark = pytest.mark.exhaustive

RECORDS = 16
EVERYTHING = list(range(1, RECORDS + 1))
ROW = Types.ROW_NAMED(["n"], [Types.LONG()])


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch):
    """No machine crashes here, only drivers."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def hasty(path):
    """A connection to SQLite that does not wait for the disk either."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = OFF")
    return connection


class Transactions(TwoPhaseCommitSinkFunction):
    """A system with transactions: files, which get another name with every step. A commit can be repeated."""

    def __init__(self, directory: Path):
        self.directory = directory

    def begin_transaction(self):
        name = uuid.uuid4().hex
        self.path(name, "open").write_text("")
        return name

    def path(self, name, stage):
        return self.directory / f"{name}.{stage}"

    def invoke(self, transaction, value, context):
        with self.path(transaction, "open").open("a") as file:
            file.write(f"{value}\n")

    def pre_commit(self, transaction):
        self.path(transaction, "open").rename(self.path(transaction, "prepared"))

    def commit(self, transaction):
        if not self.path(transaction, "committed").exists():
            self.path(transaction, "prepared").rename(self.path(transaction, "committed"))

    def abort(self, transaction):
        self.path(transaction, "open").unlink(missing_ok=True)

    @property
    def visible(self):
        return sorted(int(line) for path in self.directory.glob("*.committed") for line in path.read_text().split())


class Outside:
    """A system to write to, of the kind that a test asks for."""

    def __init__(self, directory, url=""):
        self.directory = directory
        self.directory.mkdir()
        self.url = url or f"jdbc:sqlite:{directory / 'db'}"

    def files(self, env):
        small = RollingPolicy.default_rolling_policy(12, 10**9, 10**9)
        env.from_sequence(1, RECORDS).rebalance().sink_to(row_sink(self.directory, small))

    def compacted_files(self, env):
        builder = FileSink.for_row_format(self.directory, LINES).with_bucket_assigner(FLAT)
        builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(2).build()
        sink = builder.enable_compact(strategy, FileCompactor.concat_file_compactor(b"")).build()
        env.from_sequence(1, RECORDS).rebalance().sink_to(sink)

    def two_phase_commit(self, env):
        env.from_sequence(1, RECORDS).rebalance().add_sink(Transactions(self.directory))

    def database(self, env):
        builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(self.url)
        if self.url.startswith("jdbc:sqlite:"):
            builder.with_connection_provider(functools.partial(hasty, self.url.removeprefix("jdbc:sqlite:")))
        sink = JdbcSink.exactly_once_sink("INSERT INTO numbers VALUES (?)", ROW, builder.build())
        env.from_sequence(1, RECORDS).rebalance().map(lambda n: (n,)).sink_to(sink)

    def execute(self, sql):
        connection = open_database(self.url, None, None, None).connect()
        cursor = connection.cursor()
        cursor.execute(sql)
        rows = cursor.fetchall() if cursor.description else []
        connection.commit()
        connection.close()
        return rows

    def hidden(self):
        return set(hidden(self.directory))

    def visible(self, kind):
        if kind == "two_phase_commit":
            return Transactions(self.directory).visible
        if kind == "database":
            return sorted(n for (n,) in self.execute("SELECT n FROM numbers"))
        return numbers(self.directory)


@dataclass
class Outcome:
    """What became of the first driver."""

    checks: int
    error: Exception | None
    seen: list
    """How things looked when it woke up, and when it had ended."""
    outran: bool
    """Whether it completed a checkpoint that its successor had begun to run again."""


def replaced_at(world, pause, batches, look=lambda: None):
    """The first driver is replaced behind one of its checks."""
    successors, seen = [], []

    def replace():
        successors.append(world.driver("successor"))
        successors[0].run(batches)
        seen.append(look())

    first = world.driver("first", pause=pause, meanwhile=replace)
    error = first.run_until_fenced()
    seen.append(look())
    for successor in successors:
        successor.run()
    world.driver("third").run()  # started again later: it finds what the others have left
    return Outcome(first.fence.checks, error, seen, any(successor.outrun for successor in successors))


@pytest.mark.parametrize("batches", [0, 1, 10_000], ids=["at its start", "in the middle", "at its end"])
@pytest.mark.parametrize("kind", ["files", "compacted_files", "two_phase_commit", "database"])
def test_a_driver_that_is_replaced_behind_any_of_its_checks_loses_and_doubles_nothing(tmp_path, kind, batches):
    """The old driver wakes up when the new one is at its start, in the middle, or at its end."""
    pause, errors, outran = 0, [], 0
    while True:
        pause += 1
        outside = Outside(tmp_path / f"{kind} {pause}")
        if kind == "database":
            outside.execute("CREATE TABLE numbers (n BIGINT)")
        world = World(tmp_path / f"job {pause}", getattr(outside, kind))
        first = replaced_at(world, pause, batches, outside.hidden)
        assert outside.visible(kind) == EVERYTHING, pause
        if first.checks < pause:  # it had come to its end before
            assert first.error is None
            break
        if not first.outran:
            # What is left is at most what the tasks of the first driver wrote when their driver had been replaced.
            late = first.seen[-1] - first.seen[0] if batches else set()
            assert outside.hidden() <= late, pause
        errors.append(first.error)
        outran += first.outran
    assert pause > 3 * (RECORDS // 8)
    assert bool(outran) == (batches == 0)
    # Only behind its last checks, when the last checkpoint was complete, it may have had nothing left to do.
    assert all(errors[:-3])


def test_a_driver_that_was_replaced_removes_no_hidden_file_of_the_next_one(tmp_path):
    outside = Outside(tmp_path / "out")
    world = World(tmp_path / "job", outside.files)
    seen = []

    def replace():
        successor = world.driver("successor")
        successor.run(1)
        seen.append((successor, hidden(outside.directory)))

    first = world.driver("first", pause=6, meanwhile=replace, cold=True)
    assert isinstance(first.run_until_fenced(), Exception)
    [(successor, before)] = seen
    assert before
    assert set(hidden(outside.directory)) >= set(before)
    successor.run()
    assert numbers(outside.directory) == EVERYTHING
    assert hidden(outside.directory) == []


# -- databases ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def postgres_url():
    with postgresql() as url:
        yield url


@pytest.mark.parametrize("pause", range(1, 11))
def test_two_drivers_of_a_job_that_writes_to_postgresql_write_every_row_once(tmp_path, postgres_url, pause):
    outside = Outside(tmp_path / "out", postgres_url)
    for statement in ("DROP TABLE IF EXISTS numbers", "CREATE TABLE numbers (n BIGINT)"):
        outside.execute(statement)
    first = replaced_at(World(tmp_path / "job", outside.database), pause, batches=pause % 3)
    assert first.checks >= pause
    assert first.error is not None
    assert outside.visible("database") == EVERYTHING


def writer(outside, epoch, checkpoint_id):
    connection = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(outside.url).build()
    sink = JdbcSink.exactly_once_sink("INSERT INTO numbers VALUES (?)", ROW, connection)
    context = WriterInitContext(0, 1, checkpoint_id, job_id="job", sink_id="sink", epoch=epoch)
    return sink.create_writer(context)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path):
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else ""
    outside = Outside(tmp_path / "out", url)
    for statement in (
        "DROP TABLE IF EXISTS penstock_checkpoints",
        "DROP TABLE IF EXISTS numbers",
        "CREATE TABLE numbers (n BIGINT)",
    ):
        outside.execute(statement)
    return outside


def write(a_writer, *values):
    a_writer.write_batch([(value,) for value in values], None)
    a_writer.flush(end_of_input=False)


def test_a_task_of_a_replaced_driver_writes_no_row_once_its_successor_has_written_one(database):
    old, new = writer(database, epoch=1, checkpoint_id=1), writer(database, epoch=2, checkpoint_id=1)
    write(old, 1)
    new.begin(2)
    write(new, 2)
    old.begin(3)
    with pytest.raises(FencedError, match="has epoch 2, and this task's driver 1"):
        write(old, 3)
    new.begin(3)
    write(new, 4)
    assert database.visible("database") == [1, 2, 4]


def test_a_table_of_checkpoints_from_before_drivers_had_epochs_gets_the_column(database):
    database.execute(
        "CREATE TABLE penstock_checkpoints (job_id VARCHAR(64), sink_id VARCHAR(64), subtask INTEGER, "
        "checkpoint_id BIGINT, PRIMARY KEY (job_id, sink_id, subtask))"
    )
    database.execute("INSERT INTO penstock_checkpoints VALUES ('job', 'sink', 0, 5)")
    late = writer(database, epoch=2, checkpoint_id=5)
    write(late, 5)  # written before
    late.begin(6)
    write(late, 6)
    assert database.visible("database") == [6]
    assert database.execute("SELECT checkpoint_id, epoch FROM penstock_checkpoints") == [(6, 2)]
