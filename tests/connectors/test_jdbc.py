"""JdbcSink on a real PostgreSQL and on SQLite: at least once, upserts, exactly once whatever crashes."""

import contextlib
import pickle
import sqlite3

import pytest
from crashing import Crashing
from tests.connectors.servers import postgresql

from penstock.common import Types
from penstock.common.errors import InvalidProgramError, PenstockError
from penstock.connectors import jdbc
from penstock.connectors.dbapi import open_database, to_paramstyle
from penstock.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from penstock.core.sink import WriterInitContext

ROW = Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.LONG()])
TROUBLE = {}


@pytest.fixture(scope="module")
def postgres_url():
    with postgresql() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """A database with an empty table `t`."""
    found = (
        request.getfixturevalue("postgres_url") if request.param == "postgresql" else f"jdbc:sqlite:{tmp_path / 'db'}"
    )
    for statement in ("DROP TABLE IF EXISTS t", "CREATE TABLE t (k VARCHAR(20), n BIGINT)"):
        execute(found, statement)
    return found


def execute(url, sql):
    with contextlib.closing(open_database(url, None, None, None).connect()) as connection:
        cursor = connection.cursor()
        cursor.execute(sql)
        rows = cursor.fetchall() if cursor.description else []
        connection.commit()
    return rows


def options(url):
    return JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).build()


def rows_to(sink, records=30):
    def build(env):
        env.from_sequence(1, records).rebalance().map(_row).map(_troublesome).sink_to(sink)

    return build


def _row(n):
    return f"key {n % 5}", n


def _troublesome(row):
    if TROUBLE.pop(row[1], False):
        raise RuntimeError("crash")
    return row


@pytest.fixture(autouse=True)
def _clean():
    TROUBLE.clear()


def test_rows_that_have_waited_long_enough_are_written_before_the_batch_ends(url, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(jdbc.time, "monotonic", lambda: now[0])
    execution = JdbcExecutionOptions.builder().with_batch_interval_ms(100).build()
    sink = JdbcSink.sink("INSERT INTO t VALUES (?, ?)", ROW, options(url), execution)
    writer = sink.create_writer(WriterInitContext(subtask_id=0, parallelism=1, checkpoint_id=1))
    written = []
    for moment in (0.0, 0.099, 0.1, 0.15, 0.25):
        now[0] = moment
        writer.write_batch([("k", int(1_000 * moment))], None)
        written.append(len(execute(url, "SELECT * FROM t")))
    assert written == [0, 0, 3, 3, 5]
    writer.close()


@pytest.mark.parametrize("cold", [False, True])
def test_exactly_once_survives_crashes_of_tasks(tmp_path, url, cold):
    sink = JdbcSink.exactly_once_sink("INSERT INTO t VALUES (?, ?)", ROW, options(url))
    TROUBLE.update(dict.fromkeys((7, 8, 20), True))
    assert Crashing(tmp_path, rows_to(sink), cold=cold).run() >= 2
    assert sorted(n for _, n in execute(url, "SELECT * FROM t")) == list(range(1, 31))


def test_exactly_once_when_the_batch_is_lost_after_the_database_has_committed(tmp_path, url):
    sink = JdbcSink.exactly_once_sink("INSERT INTO t VALUES (?, ?)", ROW, options(url))
    crashing = Crashing(tmp_path, rows_to(sink))
    written = 0
    for _ in range(3):  # each batch runs twice: the first run is forgotten by everybody but the database
        assert crashing.start().run_batch()
        job = crashing.start()
        assert job.run_batch()
        crashing.snapshot = job.snapshot()
        (rows,) = execute(url, "SELECT count(*), count(DISTINCT n) FROM t")
        assert rows[0] == rows[1] > written
        written = rows[0]
    crashing.run()
    assert sorted(n for _, n in execute(url, "SELECT * FROM t")) == list(range(1, 31))


def test_two_jobs_and_two_sinks_keep_their_own_notes(tmp_path, url):
    sink = JdbcSink.exactly_once_sink("INSERT INTO t VALUES (?, ?)", ROW, options(url))

    def build(env):
        for _ in range(2):
            rows_to(sink, 10)(env)

    for run in range(2):
        Crashing(tmp_path / str(run), build).run()
    assert execute(url, "SELECT count(*) FROM t") == [(40,)]


def test_at_least_once_writes_everything(tmp_path, url):
    execution = JdbcExecutionOptions.builder().with_batch_size(2).with_batch_interval_ms(5).with_max_retries(1).build()
    sink = JdbcSink.sink("INSERT INTO t VALUES (?, ?)", ROW, options(url), execution)
    TROUBLE[9] = True
    Crashing(tmp_path, rows_to(sink)).run()
    assert {n for _, n in execute(url, "SELECT * FROM t")} == set(range(1, 31))


def test_upserts_keep_the_last_row_of_each_key(tmp_path, url):
    execute(url, "CREATE UNIQUE INDEX t_key ON t (k)")
    sink = JdbcSink.upsert_sink("t", ROW, ["k"], options(url))
    TROUBLE.update(dict.fromkeys((11, 27), True))

    def build(env):
        rows = env.from_sequence(1, 30).map(_row).map(_troublesome)
        rows.key_by(lambda row: row[0]).reduce(max).sink_to(sink)

    Crashing(tmp_path, build, parallelism=2).run()
    assert sorted(execute(url, "SELECT * FROM t")) == [(f"key {n % 5}", n) for n in (30, 26, 27, 28, 29)]


def test_a_key_alone_is_inserted_once(url):
    kind = Types.ROW_NAMED(["k"], [Types.STRING()])
    assert JdbcSink.upsert_sink("t", kind, ["k"], options(url)).sql.endswith("DO NOTHING")
    for keys in ([], ["x"]):
        with pytest.raises(InvalidProgramError, match="key fields"):
            JdbcSink.upsert_sink("t", kind, keys, options(url))


def test_a_lost_connection_is_made_again(tmp_path, url):
    failing = _FailingConnections(url)
    connection = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_connection_provider(failing).build()
    _FailingConnections.to_fail = 2
    sink = JdbcSink.exactly_once_sink("INSERT INTO t VALUES (?, ?)", ROW, connection)
    Crashing(tmp_path, rows_to(sink, 5), max_records=100, parallelism=1).run()
    assert sorted(n for _, n in execute(url, "SELECT * FROM t")) == [1, 2, 3, 4, 5]


class _FailingConnections:
    """Connections whose commit does its work and then reports a failure: its outcome is unknown."""

    to_fail = 0

    def __init__(self, url):
        self.url = url

    def __call__(self):
        database = open_database(self.url, None, None, None)
        real = database.connect()
        error = database.errors[0]

        class Connection(type(real)):
            def commit(connection):
                super().commit()
                if _FailingConnections.to_fail > 0:
                    _FailingConnections.to_fail -= 1
                    raise error("lost")

        Connection.__module__ = type(real).__module__
        if isinstance(real, sqlite3.Connection):
            path = self.url.removeprefix("jdbc:sqlite:")
            real.close()
            return sqlite3.connect(path, factory=Connection)
        real.__class__ = Connection
        return real


def test_an_error_in_a_statement_names_sink_and_reason(tmp_path, url):
    sink = JdbcSink.exactly_once_sink(
        "INSERT INTO nowhere VALUES (?, ?)", ROW, options(url), JdbcExecutionOptions(max_retries=0)
    )
    with pytest.raises(PenstockError, match=r"(?s)JdbcSink.*nowhere"):
        Crashing(tmp_path, rows_to(sink)).start().run()
    wrong = JdbcSink.sink("INSERT INTO t VALUES (?)", Types.ROW([Types.INT()]), options(url))
    with pytest.raises(PenstockError, match="expected a row of 1 field"):
        Crashing(tmp_path / "other", rows_to(wrong)).start().run()


def test_settings_are_checked_and_passwords_stay_out_of_logs():
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("jdbc:sqlite:x").with_driver_name("d")
    built = builder.with_user_name("u").with_password("secret").build()
    assert (built.get_db_url(), built.get_driver_name(), built.get_user_name(), built.get_password()) == (
        "jdbc:sqlite:x",
        "d",
        "u",
        "secret",
    )
    assert "secret" not in repr(built)
    execution = JdbcExecutionOptions.defaults()
    assert (execution.get_batch_size(), execution.get_max_retries(), execution.get_batch_interval_ms()) == (5_000, 3, 0)
    for wrong in (
        lambda: JdbcConnectionOptions.JdbcConnectionOptionsBuilder().build(),
        lambda: JdbcExecutionOptions.builder().with_batch_size(0),
        lambda: JdbcExecutionOptions.builder().with_max_retries(-1),
        lambda: JdbcSink.sink("", Types.INT(), built),
        lambda: JdbcSink.upsert_sink("t", Types.INT(), ["k"], built),
        lambda: open_database("jdbc:derby:x", None, None, None),
    ):
        with pytest.raises(InvalidProgramError):
            wrong()
    assert pickle.loads(pickle.dumps(JdbcSink.sink("x", ROW, built))).sql == "x"


@pytest.mark.parametrize(
    ("sql", "style", "expected"),
    [
        ("a = ? AND b = '?'", "qmark", "a = ? AND b = '?'"),
        ("a = ? AND b = '?' -- ?", "format", "a = %s AND b = '?' -- ?"),
        ('a = ? AND "?" = ?', "numeric", 'a = :1 AND "?" = :2'),
        ("a LIKE '%x' AND b = ?", "pyformat", "a LIKE '%%x' AND b = %s"),
        ("it''s - ? : ?", "format", "it''s - %s : %s"),
    ],
)
def test_question_marks_become_the_drivers_style(sql, style, expected):
    assert to_paramstyle(sql, style) == expected
