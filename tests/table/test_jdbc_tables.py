"""The connector jdbc on SQLite and PostgreSQL (T11, T124)."""

import contextlib
import datetime as dt
from decimal import Decimal

import pytest
from tests.connectors.servers import postgresql
from tests.table.conftest import Queries, table_environment

from penstock.connectors.dbapi import open_database
from penstock.util.exceptions import TableException, ValidationException


@pytest.fixture(scope="module")
def postgres_url():
    pytest.importorskip("psycopg")
    with postgresql() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """A database without tables `t` and `u`."""
    found = (
        request.getfixturevalue("postgres_url") if request.param == "postgresql" else f"jdbc:sqlite:{tmp_path / 'db'}"
    )
    execute(found, "DROP TABLE IF EXISTS t")
    execute(found, "DROP TABLE IF EXISTS u")
    return found


def execute(url, sql):
    with contextlib.closing(open_database(url, None, None, None).connect()) as connection:
        cursor = connection.cursor()
        cursor.execute(sql)
        rows = cursor.fetchall() if cursor.description else []
        connection.commit()
    return [tuple(row) for row in rows]


def create(t_env, url, name, columns, extra=""):
    t_env.execute_sql(
        f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'jdbc', 'url' = '{url}', 'table-name' = '{name}' {extra})"
    )


def test_a_table_of_a_database_is_a_bounded_source(sql, url):
    execute(url, "CREATE TABLE t (id INT, n DECIMAL(8, 2), ok BOOLEAN, d DATE, at TIMESTAMP, s VARCHAR(10))")
    execute(url, "INSERT INTO t VALUES (1, 2.50, TRUE, '2024-01-02', '2024-01-02 03:04:05', 'x')")
    execute(url, "INSERT INTO t VALUES (2, NULL, NULL, NULL, NULL, NULL)")
    create(sql.t_env, url, "t", "s STRING, id INT, n DECIMAL(8, 2), ok BOOLEAN, d DATE, at TIMESTAMP(3)")
    moment = dt.datetime(2024, 1, 2, 3, 4, 5)
    assert sorted(sql.rows("SELECT id, n, ok, d, at, s FROM t")) == [
        (1, Decimal("2.50"), True, dt.date(2024, 1, 2), moment, "x"),
        (2, None, None, None, None, None),
    ]


def test_a_large_table_is_read_in_ranges_of_a_column(url):
    sql = Queries(table_environment(parallelism=2))
    execute(url, "CREATE TABLE t (id INT)")
    for number in range(1, 11):
        execute(url, f"INSERT INTO t VALUES ({number})")
    ranges = """, 'scan.partition.column' = 'id', 'scan.partition.num' = '3', 'scan.partition.lower-bound' = '1',
                'scan.partition.upper-bound' = '10'"""
    create(sql.t_env, url, "t", "id INT", ranges)
    assert sorted(sql.rows("SELECT id FROM t")) == [(number,) for number in range(1, 11)]


def test_t124_with_a_primary_key_a_query_that_updates_is_upserted(sql, url):
    execute(url, "CREATE TABLE t (k VARCHAR(10) PRIMARY KEY, c BIGINT)")
    sql.table("s", ["k"], ("a",), ("b",), ("a",))
    create(sql.t_env, url, "t", "k STRING, c BIGINT, PRIMARY KEY (k) NOT ENFORCED")
    for _ in range(2):  # a second run changes nothing
        sql.t_env.execute_sql("INSERT INTO t SELECT k, COUNT(*) FROM s GROUP BY k").wait()
    assert sorted(execute(url, "SELECT k, c FROM t")) == [("a", 2), ("b", 1)]


def test_t15_rows_that_are_taken_away_are_deleted(sql, url):
    execute(url, "CREATE TABLE t (k VARCHAR(10) PRIMARY KEY, c BIGINT)")
    sql.table("s", ["k", "v"], ("a", 8), ("b", 7), ("a", -5))
    create(sql.t_env, url, "t", "k STRING, c BIGINT, PRIMARY KEY (k) NOT ENFORCED")
    sql.t_env.execute_sql("INSERT INTO t SELECT k, SUM(v) AS c FROM s GROUP BY k HAVING SUM(v) > 5").wait()
    assert execute(url, "SELECT k, c FROM t") == [("b", 7)]


def test_t124_without_a_primary_key_only_inserts_are_taken(sql, url):
    execute(url, "CREATE TABLE t (k VARCHAR(10), c BIGINT)")
    sql.table("s", ["k"], ("a",))
    create(sql.t_env, url, "t", "k STRING, c BIGINT")
    with pytest.raises(TableException, match="doesn't support consuming update"):
        sql.t_env.execute_sql("INSERT INTO t SELECT k, COUNT(*) FROM s GROUP BY k")
    sql.t_env.execute_sql("INSERT INTO t SELECT k, 1 FROM s").wait()
    assert execute(url, "SELECT k, c FROM t") == [("a", 1)]


def test_options_of_ranges_belong_together(sql, tmp_path):
    create(sql.t_env, f"jdbc:sqlite:{tmp_path / 'db'}", "t", "id INT", ", 'scan.partition.num' = '3'")
    with pytest.raises(ValidationException, match="must be set together"):
        sql.rows("SELECT * FROM t")
