"""Interval joins (T73), temporal joins (T74), window joins (T65), and time attributes through joins (T41)."""

import datetime as dt

import pyarrow as pa
import pytest
from tests.table.conftest import timed
from tests.table.rows_connector import ROWS

from penstock.runtime.table.expressions import EvaluationContext
from penstock.runtime.table.operators.interval_join import IntervalJoinOperator
from penstock.runtime.table.operators.temporal_join import TemporalJoinOperator
from penstock.table.plan.nodes.base import TimeAttribute
from penstock.testing.table_harness import TableOperatorHarness
from penstock.util.exceptions import TableException, ValidationException

TIME = pa.timestamp("us")
SIDE = pa.schema([("k", pa.int64()), ("t", TIME)])
BOTH = pa.schema([("k", pa.int64()), ("t", TIME), ("k2", pa.int64()), ("t2", TIME)])


def at(seconds):
    return dt.datetime(2024, 5, 1) + dt.timedelta(seconds=seconds)


def millis(seconds):
    return int((at(seconds) - dt.datetime(1970, 1, 1)).total_seconds() * 1000)


def shape(*, schema=BOTH):
    types = [pa.int64(), TIME]
    return (types, types), ([0], [0]), [pa.int64()], [False], None, schema, EvaluationContext()


def interval(*, outer=(False, False), lower=0, upper=3000):
    operator = IntervalJoinOperator(*shape(), outer=outer, time_columns=(1, 1), lower=lower, upper=upper)
    return TableOperatorHarness(operator, SIDE, SIDE)


def rows_of(harness):
    return [one for one in harness.take() if isinstance(one, tuple)]


# -- interval joins ---------------------------------------------------------------------------------------------------


def test_t73_both_bounds_of_an_interval_count():
    join = interval()
    join.process(("+I", 1, at(1)))
    join.process2(("+I", 1, at(1)), ("+I", 1, at(4)), ("+I", 1, at(5)), ("+I", 2, at(2)))
    assert rows_of(join) == [("+I", 1, at(1), 1, at(1)), ("+I", 1, at(1), 1, at(4))]
    join.process(("+I", 1, at(2)))
    assert rows_of(join) == [("+I", 1, at(2), 1, at(4)), ("+I", 1, at(2), 1, at(5))]


def test_t73_an_outer_row_is_padded_when_no_partner_can_come():
    join = interval(outer=(True, False))
    join.process(("+I", 2, at(2)), ("+I", 1, at(1)), ("+I", None, at(3)))
    join.process2(("+I", 1, at(4)), ("+I", 2, at(6)))
    assert rows_of(join) == [("+I", None, at(3), None, None), ("+I", 1, at(1), 1, at(4))]
    join.operator.process_watermark(millis(5))
    assert rows_of(join) == []
    join.operator.process_watermark(millis(5) + 1)
    assert rows_of(join) == [("+I", 2, at(2), None, None)]


def test_t73_the_watermark_drops_rows_and_stays_behind_the_results():
    join = interval(lower=-2000, upper=3000)
    join.process(("+I", 1, at(1)))
    join.process2(("+I", 1, at(9)))
    join.operator.process_watermark(millis(12))
    assert join.take() == [millis(9)]
    assert list(join.operator._state.keys()) == []


def _interval_tables(sql):
    timed(sql, "l", ["k", "a"], (1, "a", at(1)), (2, "b", at(2)), (None, "n", at(3)))
    timed(sql, "r", ["k", "x"], (1, "x", at(4)), (2, "y", at(6)), (3, "z", at(8)))


BETWEEN = "r.ts BETWEEN l.ts AND l.ts + INTERVAL '3' SECOND"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("", [("a", "x")]),
        ("LEFT", [("a", "x"), ("b", None), ("n", None)]),
        ("RIGHT", [("a", "x"), (None, "y"), (None, "z")]),
        ("FULL", [("a", "x"), ("b", None), ("n", None), (None, "y"), (None, "z")]),
    ],
)
def test_t73_interval_joins_give_inserts_only(sql, kind, expected):
    _interval_tables(sql)
    rows = sql.rows(f"SELECT a, x FROM l {kind} JOIN r ON l.k = r.k AND {BETWEEN}")
    assert sorted(rows, key=repr) == sorted(expected, key=repr)


def test_t73_the_bounds_may_be_in_where(sql):
    _interval_tables(sql)
    query = "SELECT a, x FROM l, r WHERE l.k = r.k AND l.ts < r.ts AND l.ts + INTERVAL '5' SECOND > r.ts"
    assert sorted(sql.rows(query)) == [("a", "x"), ("b", "y")]
    assert "IntervalJoin" in sql.t_env.sql_query(query).explain()


def test_t73_bounds_on_other_columns_make_a_regular_join(sql):
    _interval_tables(sql)
    query = """
        SELECT a, x FROM l JOIN (SELECT k, x, CAST(ts AS TIMESTAMP(3)) + INTERVAL '0' SECOND AS ts FROM r) AS r
        ON l.k = r.k AND r.ts BETWEEN l.ts AND l.ts + INTERVAL '3' SECOND
    """
    assert "IntervalJoin" not in sql.t_env.sql_query(query).explain()
    assert sql.final(query) == [("a", "x")]


def test_t73_batch_mode_compares_times_as_values(batch):
    _interval_tables(batch)
    assert sorted(batch.rows(f"SELECT a, x FROM l LEFT JOIN r ON l.k = r.k AND {BETWEEN}"), key=repr) == [
        ("a", "x"),
        ("b", None),
        ("n", None),
    ]


def test_t41_times_stay_time_attributes_through_an_interval_join(sql):
    _interval_tables(sql)
    sql.t_env.execute_sql(f"CREATE TEMPORARY VIEW j AS SELECT l.k, a, x, r.ts FROM l JOIN r ON l.k = r.k AND {BETWEEN}")
    assert sql.t_env.from_path("j")._relation.fields[3].time is TimeAttribute.ROWTIME
    query = """
        SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(ts), INTERVAL '5' SECOND))
        GROUP BY window_start, window_end
    """
    assert sql.rows(query) == [(at(0), 1)]


def test_t41_a_regular_join_has_no_time_attributes(sql):
    _interval_tables(sql)
    sql.t_env.execute_sql("CREATE TEMPORARY VIEW j AS SELECT l.k, a, x, r.ts FROM l JOIN r ON l.k = r.k")
    query = """
        SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(ts), INTERVAL '5' SECOND))
        GROUP BY window_start, window_end
    """
    with pytest.raises(ValidationException, match="time attribute"):
        sql.changelog(query)


# -- temporal joins ---------------------------------------------------------------------------------------------------

VERSIONS = [("+I", "c", 10, at(3)), ("+U", "c", 12, at(8))]


def _temporal_tables(sql, versions=VERSIONS, key=True):
    timed(sql, "o", ["id", "c"], *((i, "c", at(s)) for i, s in enumerate((2, 3, 7, 9))), (9, None, at(4)))
    ROWS["versions"] = versions
    primary = ", PRIMARY KEY (c) NOT ENFORCED" if key else ""
    sql.t_env.execute_sql(
        f"CREATE TABLE v (c STRING, p INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts{primary}) "
        "WITH ('connector' = 'test-rows', 'name' = 'versions')"
    )


def test_t74_each_left_row_has_the_version_of_its_time(sql):
    _temporal_tables(sql)
    query = "SELECT o.id, v.p FROM o {} JOIN v FOR SYSTEM_TIME AS OF o.ts ON o.c = v.c"
    assert sorted(sql.rows(query.format(""))) == [(1, 10), (2, 10), (3, 12)]
    assert sorted(sql.rows(query.format("LEFT"))) == [(0, None), (1, 10), (2, 10), (3, 12), (9, None)]


def test_t74_a_deletion_ends_a_version(sql):
    _temporal_tables(sql, [("+I", "c", 10, at(3)), ("-D", "c", 10, at(5)), ("+I", "c", 15, at(9))])
    query = "SELECT o.id, v.p FROM o LEFT JOIN v FOR SYSTEM_TIME AS OF o.ts ON o.c = v.c AND v.p > 5"
    assert sorted(sql.rows(query)) == [(0, None), (1, 10), (2, None), (3, 15), (9, None)]


def test_t74_a_versioned_table_without_key_is_rejected(sql):
    _temporal_tables(sql, key=False)
    with pytest.raises(ValidationException, match="primary key"):
        sql.changelog("SELECT o.id, v.p FROM o JOIN v FOR SYSTEM_TIME AS OF o.ts ON o.c = v.c")


def test_t74_a_time_that_is_no_attribute_of_the_left_table_is_rejected(sql):
    _temporal_tables(sql)
    with pytest.raises(ValidationException, match="time attribute"):
        sql.t_env.sql_query("SELECT 1 FROM o JOIN v FOR SYSTEM_TIME AS OF v.ts ON o.c = v.c")
    with pytest.raises(TableException, match="Processing-time"):
        sql.t_env.sql_query(
            "SELECT 1 FROM (SELECT *, PROCTIME() AS p FROM o) AS o JOIN v FOR SYSTEM_TIME AS OF o.p ON o.c = v.c"
        )


def test_t74_rows_wait_for_both_watermarks_and_old_versions_are_dropped():
    operator = TemporalJoinOperator(*shape(), outer=False, time_columns=(1, 1))
    join = TableOperatorHarness(operator, SIDE, SIDE)
    join.process2(("+I", 1, at(1)), ("+U", 1, at(5)), ("+U", 1, at(3)))
    join.process(("+I", 1, at(4)))
    assert rows_of(join) == []
    join.operator.process_watermark(millis(4))
    assert rows_of(join) == [("+I", 1, at(4), 1, at(3))]
    rows = join.operator._state.all_rows()
    assert len(join.operator._state.gather_field(1, rows)[0]) == 2
    assert join.operator._state.gather_field(0, rows) == [None]


# -- window joins -----------------------------------------------------------------------------------------------------

WINDOW = "(SELECT * FROM TABLE(TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '5' SECOND)))"
SAME = "l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("", [("a", "x")]),
        ("LEFT", [("a", "x"), ("b", None), ("n", None)]),
        ("RIGHT", [("a", "x"), (None, "y"), (None, "z")]),
        ("FULL", [("a", "x"), ("b", None), ("n", None), (None, "y"), (None, "z")]),
    ],
)
def test_t65_window_joins_give_inserts_only(sql, kind, expected):
    _interval_tables(sql)
    query = f"SELECT a, x FROM {WINDOW.format('l')} AS l {kind} JOIN {WINDOW.format('r')} AS r ON {SAME}"
    assert "WindowJoin" in sql.t_env.sql_query(query).explain()
    assert sorted(sql.rows(query), key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize(("word", "expected"), [("EXISTS", ["a"]), ("NOT EXISTS", ["b", "n"])])
def test_t65_semi_and_anti_joins_of_windows(sql, word, expected):
    _interval_tables(sql)
    query = (
        f"SELECT a FROM {WINDOW.format('l')} AS l WHERE {word} (SELECT * FROM {WINDOW.format('r')} AS r WHERE {SAME})"
    )
    assert "WindowJoin" in sql.t_env.sql_query(query).explain()
    assert sorted(value for (value,) in sql.rows(query)) == expected


def test_t65_conditions_besides_the_equalities(sql):
    _interval_tables(sql)
    query = f"SELECT a, x FROM {WINDOW.format('l')} AS l LEFT JOIN {WINDOW.format('r')} AS r ON {SAME} AND x > 'x'"
    assert sorted(sql.rows(query)) == [("a", None), ("b", None), ("n", None)]
