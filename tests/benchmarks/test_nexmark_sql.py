"""Nexmark's queries in SQL give what DuckDB gives over the same events."""

from __future__ import annotations

import csv
from collections import Counter
from decimal import Decimal

import duckdb
import pyarrow.parquet as pq
import pytest
from benchmarks.nexmark import event_files
from benchmarks.nexmark.sql import QUERIES, VIEWS, sink, statements

from penstock.datastream import StreamExecutionEnvironment
from penstock.table import StreamTableEnvironment
from penstock.testing import MiniCluster

RECORDS = 4_000
EVENTS_PER_SECOND = 40  # 100 seconds of event time: many windows


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    directory = tmp_path_factory.mktemp("events")
    for number in range(2):
        rows = event_files.table(0, RECORDS, EVENTS_PER_SECOND)
        mine = [place // 50 % 2 == number for place in range(RECORDS)]
        pq.write_table(rows.filter(mine), directory / f"part-{number}.parquet", row_group_size=700)
    return directory


@pytest.fixture(scope="module")
def duck(events):
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE events AS SELECT * FROM '{events}/*.parquet'")
        for name, text in VIEWS.items():
            database.execute(f"CREATE VIEW {name} AS {text}")
        yield database


def environment(events):
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=1_500))
    env.set_parallelism(2)
    t_env = StreamTableEnvironment.create(env)
    t_env.get_config().set("table.local-time-zone", "UTC")
    for statement in statements(str(events)):
        t_env.execute_sql(statement)
    return t_env


def final_rows(t_env, query):
    rows = Counter()
    with t_env.execute_sql(query).collect() as changes:
        for change in changes:
            rows[_comparable(change)] += 1 if str(change.get_row_kind()) in ("+I", "+U") else -1
    return +rows


def _comparable(row):
    return tuple(float(value) if isinstance(value, Decimal) else value for value in row)


@pytest.mark.parametrize("name", [name for name, query in QUERIES.items() if query.reference()])
def test_query_agrees_with_duckdb(name, events, duck):
    expected = Counter(map(_comparable, duck.execute(QUERIES[name].reference().replace("`", '"')).fetchall()))
    assert expected
    assert final_rows(environment(events), QUERIES[name].text) == expected


def test_last_bids_and_top_bids(events, duck):
    """Which of equal bids counts is not defined; their times and prices are."""
    last = final_rows(environment(events), QUERIES["q18"].text)
    expected = duck.execute("SELECT auction, bidder, max(date_time) FROM bid GROUP BY ALL").fetchall()
    assert Counter((row[0], row[1], row[5]) for row in last.elements()) == Counter(expected)
    top = final_rows(environment(events), QUERIES["q19"].text)
    ranked = (
        "SELECT auction, price, row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS n FROM bid "
        "QUALIFY n <= 10"
    )
    assert Counter((row[0], row[2], row[6]) for row in top.elements()) == Counter(duck.execute(ranked).fetchall())


def test_q10_writes_files(events, duck, tmp_path):
    t_env = environment(events)
    t_env.execute_sql(sink("q10", str(tmp_path / "out")))
    t_env.execute_sql(f"INSERT INTO answer {QUERIES['q10'].text}").wait()
    lines = [
        (*map(int, row[:3]), row[4], *(part.split("=")[1] for part in path.parts[-3:-1]))
        for path in (tmp_path / "out").rglob("*.csv")
        for row in csv.reader(path.read_text().splitlines())
    ]
    expected = duck.execute(
        "SELECT auction, bidder, price, url, strftime(date_time, '%Y-%m-%d'), strftime(date_time, '%H%%3A%M') FROM bid"
    )
    assert Counter(lines) == Counter(expected.fetchall())
