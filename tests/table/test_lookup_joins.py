"""Lookup joins: FOR SYSTEM_TIME AS OF processing time (T75)."""

import contextlib

import pytest
from tests.table.conftest import Queries, table_environment

from penstock.connectors.dbapi import open_database
from penstock.connectors.sinks import CollectSink
from penstock.testing import MiniCluster
from penstock.util.exceptions import TableException


def execute(url, *statements):
    with contextlib.closing(open_database(url, None, None, None).connect()) as connection:
        for statement in statements:
            connection.cursor().execute(statement)
        connection.commit()


@pytest.fixture
def url(tmp_path):
    found = f"jdbc:sqlite:{tmp_path / 'db'}"
    execute(
        found,
        "CREATE TABLE users (id INT, name TEXT, level INT)",
        "INSERT INTO users VALUES (1, 'ann', 3), (2, 'bob', 1), (2, 'bert', 2)",
    )
    return found


def tables(queries, url, options=""):
    queries.table("visits_raw", ["visitor", "page"], (1, "a"), (2, "b"), (3, "c"), (None, "d"))
    t_env = queries.t_env
    view = t_env.sql_query("SELECT visitor, page, PROCTIME() AS at FROM visits_raw")
    t_env.create_temporary_view("visits", view)
    t_env.execute_sql(
        "CREATE TABLE users (id BIGINT, name STRING, level INT) WITH "
        f"('connector' = 'jdbc', 'url' = '{url}', 'table-name' = 'users' {options})"
    )
    return queries


def join(kind, more=""):
    return (
        f"SELECT v.page, u.name FROM visits v {kind} JOIN users FOR SYSTEM_TIME AS OF v.at AS u "
        f"ON v.visitor = u.id {more}"
    )


def test_t75_each_row_asks_the_connector(sql, url):
    tables(sql, url)
    assert sorted(sql.rows(join(""))) == [("a", "ann"), ("b", "bert"), ("b", "bob")]


def test_t75_left_keeps_rows_without_partner(sql, url):
    tables(sql, url)
    found = sql.rows(join("LEFT"))
    assert sorted(found, key=repr) == [("a", "ann"), ("b", "bert"), ("b", "bob"), ("c", None), ("d", None)]


def test_t75_other_conditions_are_tested_for_what_was_found(sql, url):
    tables(sql, url)
    assert sql.rows(join("", "AND u.level < 2")) == [("b", "bob")]
    with pytest.raises(TableException, match="LEFT lookup join"):
        sql.t_env.sql_query(join("LEFT", "AND u.level < 2"))


def test_t75_later_changes_do_not_update_results(url):
    cluster = MiniCluster(max_records=1)
    queries = tables(Queries(table_environment()), url)
    t_env = queries.t_env
    sink = CollectSink()
    t_env.to_data_stream(t_env.sql_query(join("LEFT"))).sink_to(sink)
    env = t_env._env
    job = cluster.start(list(env.sinks), env.job_settings(None))
    job.run_batch()
    execute(url, "UPDATE users SET name = 'eve' WHERE id = 1", "INSERT INTO users VALUES (3, 'cy', 1)")
    for _ in range(3):
        job.run_batch()
    found = []
    while not sink.records.empty():
        found += [tuple(row) for row in sink.records.get_nowait()]
    assert ("a", "ann") in found
    assert ("a", "eve") not in found
    assert ("c", "cy") in found


def test_t75_a_cache_answers_for_keys_that_are_known(sql, url):
    tables(sql, url, ", 'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '10'")
    assert sorted(sql.rows(join(""))) == [("a", "ann"), ("b", "bert"), ("b", "bob")]


def test_t75_a_connector_that_cannot_look_up_is_refused(sql, url):
    tables(sql, url)
    sql.t_env.execute_sql("CREATE TABLE made (id BIGINT, name STRING) WITH ('connector' = 'datagen')")
    with pytest.raises(TableException, match="cannot look up"):
        sql.t_env.sql_query(join("").replace("users", "made"))
