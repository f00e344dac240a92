"""What the planner does besides translating: it reads few columns, and computes equal things once."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.table.plan.nodes.base import walk
from penstock.table.plan.nodes.relational import ScanRel, WatermarkRel


@pytest.fixture
def events(sql, tmp_path):
    pq.write_table(
        pa.table({"kind": [0, 1, 0], "a": ["x", "y", "z"], "b": [1.5, 2.5, 3.5], "c": [1, 2, 3]}),
        tmp_path / "part.parquet",
    )
    sql.t_env.execute_sql(
        "CREATE TABLE events (kind BIGINT, a STRING, b DOUBLE, c BIGINT, ts AS TO_TIMESTAMP_LTZ(c, 0), "
        f"WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'parquet')"
    )
    return sql


def planned(sql, query):
    return sql.t_env._planner().optimize(sql.t_env.sql_query(query)._relation)


def scans(plan):
    return [one for one in walk(plan) if isinstance(one, ScanRel)]


def test_t6_only_columns_that_are_needed_are_read(events):
    (scan,) = scans(planned(events, "SELECT a FROM events WHERE kind = 0"))
    assert scan.names == ["kind", "a", "c"]  # the watermark needs c
    assert events.rows("SELECT a FROM events WHERE kind = 0") == [("x",), ("z",)]


def test_t6_a_query_without_columns_still_knows_how_many_rows_there_are(events):
    assert events.rows("SELECT 7 FROM events") == [(7,), (7,), (7,)]
    assert events.final("SELECT COUNT(*) FROM events") == [(3,)]


def test_t6_windows_carry_only_columns_that_are_needed(events):
    windows = "TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '2' SECOND))"
    query = f"SELECT window_end, SUM(b) FROM {windows} GROUP BY window_start, window_end"
    (scan,) = scans(planned(events, query))
    assert scan.names == ["b", "c"]
    assert [total for _, total in events.rows(query)] == [1.5, 6.0]


def test_t6_a_table_that_is_used_twice_is_read_once(events):
    query = "SELECT l.a, r.b FROM events l JOIN events r ON l.c = r.c WHERE l.kind = 0"
    plan = planned(events, query)
    assert len({id(one) for one in scans(plan)}) == 1
    assert len({id(one) for one in walk(plan) if isinstance(one, WatermarkRel)}) == 1
    assert events.final(query) == [("x", 1.5), ("z", 3.5)]


def test_t6_what_is_not_deterministic_is_computed_each_time(events):
    numbered = "(SELECT UUID() AS u, c FROM events)"
    plan = planned(events, f"SELECT l.u, r.u FROM {numbered} l JOIN {numbered} r ON l.c = r.c")
    assert len({id(one) for one in scans(plan)}) == 1
    assert len({id(one) for one in plan.inputs[0].inputs}) == 2
