"""The programs of examples/connectors: what they leave in files, databases and stores."""

import contextlib
import sqlite3
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from penstock.connectors.jdbc import JdbcConnectionOptions
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster
from penstock.testing.continuous_cluster import ContinuousCluster

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "connectors"))

import async_lookup
import database_rows
import dead_letters
import file_counts
import store_upserts
import transactional_sinks


@pytest.fixture(params=["one batch", "many", "continuous"])
def env(request):
    cluster = {
        "one batch": MiniCluster,
        "many": lambda: MiniCluster(max_records=1, cold=True),
        "continuous": lambda: ContinuousCluster(max_records=1),
    }[request.param]()
    return StreamExecutionEnvironment(executor=cluster).set_parallelism(2)


def test_files_are_counted_into_parquet(env, tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    for file in range(2):
        lines = [f"sensor_{n % 2},{file * 60_000 + n * 10_000},20.5\n" for n in range(6)]
        (source / f"{file}.csv").write_text("".join(lines))
    file_counts.define(env, str(source), str(tmp_path / "out"))
    env.execute()
    rows = [
        tuple(row.values()) for path in (tmp_path / "out").rglob("*.parquet") for row in pq.read_table(path).to_pylist()
    ]
    assert sorted(rows) == [(f"sensor_{n}", minute, 3) for n in range(2) for minute in (0, 60_000)]


def test_rows_are_in_the_database(env, tmp_path):
    file = tmp_path / "db"
    with contextlib.closing(sqlite3.connect(file)) as database:
        for statement in database_rows.TABLES:
            database.execute(statement)
    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(f"jdbc:sqlite:{file}").build()
    database_rows.define(env, options)
    env.execute()
    with contextlib.closing(sqlite3.connect(file)) as database:
        latest = sorted(database.execute("SELECT * FROM temperatures"))
        alerts = sorted(database.execute("SELECT * FROM alerts"))
    assert latest == [("sensor_1", 33.0), ("sensor_2", 29.5), ("sensor_3", 19.0)]
    assert alerts == [("sensor_1", 33.0), ("sensor_2", 31.0)]


def test_words_are_counted_into_redis(env):
    redis = pytest.importorskip("redis")
    from tests.connectors.servers import redis_server

    with redis_server() as url, redis.Redis.from_url(url, decode_responses=True) as client:
        store_upserts.define(env, url, None)
        env.execute()
        assert (client.get("count:to"), client.get("count:question"), client.dbsize()) == ("2", "1", 8)


def test_transactions_and_write_ahead_log_deliver_each_square_once(env, tmp_path, capsys):
    transactional_sinks.define(env, str(tmp_path))
    env.execute()
    squares = [number * number for number in range(1, 11)]
    files = [path.read_text().split() for path in (tmp_path / "target").iterdir()]
    assert sorted(int(line) for lines in files for line in lines) == squares
    printed = [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()]
    assert sorted(map(int, printed)) == squares
    assert list((tmp_path / "temporary").iterdir()) == []


def test_rooms_are_looked_up_in_order(env, tmp_path):
    async_lookup.make_database(str(tmp_path / "rooms"))
    found = list(async_lookup.define(env, str(tmp_path / "rooms")).execute_and_collect())
    assert found == [("kitchen", 20.5), ("cellar", 11.0), ("UNKNOWN ROOM", 33.0), ("kitchen", 21.0)]


def test_dead_letters_are_in_a_file(env, tmp_path):
    counts = list(dead_letters.define(env, str(tmp_path)).execute_and_collect())
    assert sorted(counts) == [("ada", 3), ("ada", 7)]
    lines = [line for path in tmp_path.iterdir() for line in path.read_text().splitlines()]
    assert len(lines) == 2
    assert all("error" in line for line in lines)
