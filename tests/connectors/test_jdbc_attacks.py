"""JdbcSink on PostgreSQL while things go wrong: sessions killed by the server, two attempts at one checkpoint."""

import threading
import time

import pytest
from tests.connectors.test_jdbc import ROW, execute, options, postgres_url  # noqa: F401 - a fixture

from penstock.connectors.jdbc import JdbcSink
from penstock.core.sink import WriterInitContext


@pytest.fixture
def url(postgres_url):  # noqa: F811
    for statement in ("DROP TABLE IF EXISTS t", "CREATE TABLE t (k VARCHAR(20), n BIGINT)"):
        execute(postgres_url, statement)
    return postgres_url


def writer(url, checkpoint_id, job_id):
    sink = JdbcSink.exactly_once_sink("INSERT INTO t VALUES (?, ?)", ROW, options(url))
    context = WriterInitContext(subtask_id=0, parallelism=1, checkpoint_id=checkpoint_id, job_id=job_id, sink_id="sink")
    return sink.create_writer(context)


def numbers(url):
    return sorted(n for _, n in execute(url, "SELECT * FROM t"))


def kill_other_sessions(url):
    execute(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")


def test_a_session_that_the_server_kills_in_the_middle_of_a_checkpoint_is_begun_again(url):
    one = writer(url, 1, "killed")
    one.write_batch([("a", 1)], None)
    one.flush(end_of_input=False)
    one.begin(2)
    one.write_batch([("a", 2)], None)
    kill_other_sessions(url)
    one.flush(end_of_input=False)
    one.close()
    assert numbers(url) == [1, 2]


def test_a_session_that_is_killed_with_rows_written_and_not_committed_leaves_none_of_them(url):
    one = writer(url, 1, "half")
    one.write_batch([("a", n) for n in range(5)], None)
    one.flush(end_of_input=False)
    one.begin(2)
    commits = []

    class Killed(type(one._connected)):
        def commit(connection):
            commits.append(1)
            if len(commits) == 1:  # everything is sent, nothing is committed
                kill_other_sessions(url)
            super().commit()

    Killed.__module__ = type(one._connected).__module__
    one._connected.__class__ = Killed
    one.write_batch([("a", n) for n in range(5, 10)], None)
    one.flush(end_of_input=False)
    one.close()
    assert commits == [1]
    assert numbers(url) == list(range(10))


def test_two_attempts_at_the_same_checkpoint_at_once_write_it_once(url):
    first = writer(url, 1, "twice")
    first.write_batch([("a", 0)], None)
    first.flush(end_of_input=False)
    first.begin(2)
    second = writer(url, 2, "twice")
    holding, release = threading.Event(), threading.Event()

    class Slow(type(first._connected)):
        def commit(connection):
            holding.set()
            assert release.wait(60)
            super().commit()

    Slow.__module__ = type(first._connected).__module__
    first._connected.__class__ = Slow
    for attempt in (first, second):
        attempt.write_batch([("a", 1), ("a", 2)], None)
    one = threading.Thread(target=lambda: first.flush(end_of_input=False))
    one.start()
    assert holding.wait(60)
    two = threading.Thread(target=lambda: second.flush(end_of_input=False))
    two.start()
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    while execute(url, waiting) == [(0,)]:  # the second attempt waits for the first one's note
        assert two.is_alive()
        time.sleep(0.005)
    release.set()
    one.join(60)
    two.join(60)
    first.close()
    second.close()
    assert numbers(url) == [0, 1, 2]
