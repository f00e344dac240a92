"""Group windows of SQL and of the Table API, OVER windows of the Table API, sorting (T44, T45, T68, T80, T86)."""

import datetime as dt

import pytest
from tests.table.conftest import timed

from penstock.common import Row
from penstock.table import AggregateFunction, DataTypes
from penstock.table.expressions import CURRENT_ROW, UNBOUNDED_RANGE, col, lit, row_interval
from penstock.table.udf import udaf
from penstock.table.window import Over, Session, Slide, Tumble
from penstock.util.exceptions import TableException, ValidationException


def at(second):
    return dt.datetime(2024, 5, 1, 12, 0) + dt.timedelta(seconds=second)


ROWS = [("a", 1, at(1)), ("b", 2, at(2)), ("a", 4, at(3)), ("a", 8, at(12))]
TEN = "INTERVAL '10' SECOND"


def seconds(rows):
    return [tuple(int((v - at(0)).total_seconds()) if isinstance(v, dt.datetime) else v for v in row) for row in rows]


def test_t68_group_by_tumble(sql):
    timed(sql, "t", ["k", "v"], *ROWS)
    query = (
        f"SELECT k, TUMBLE_START(ts, {TEN}), TUMBLE_END(ts, {TEN}), SUM(v) AS s FROM t GROUP BY k, TUMBLE(ts, {TEN}) "
        "HAVING SUM(v) > 2"
    )
    assert seconds(sql.rows(query)) == [("a", 0, 10, 5), ("a", 10, 20, 8)]


def test_t68_group_by_hop(sql):
    timed(sql, "t", ["k", "v"], *ROWS)
    hop = "(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)"
    query = f"SELECT HOP_START{hop}, HOP_END{hop}, COUNT(*) FROM t GROUP BY HOP{hop}"
    assert seconds(sql.rows(query)) == [(-5, 5, 3), (0, 10, 3), (5, 15, 1), (10, 20, 1)]


def test_t68_group_by_session_of_a_computed_key(sql):
    timed(sql, "t", ["k", "v"], *ROWS)
    session = "(ts, INTERVAL '2' SECOND)"
    query = (
        f"SELECT UPPER(k), SESSION_START{session}, SESSION_END{session}, SUM(v) FROM t "
        f"GROUP BY SESSION{session}, UPPER(k)"
    )
    assert seconds(sql.rows(query)) == [("B", 2, 4, 2), ("A", 1, 5, 5), ("A", 12, 14, 8)]


def test_t68_the_rowtime_of_a_window_is_a_time_attribute(sql):
    timed(sql, "t", ["k", "v"], *ROWS)
    five = "INTERVAL '5' SECOND"
    inner = f"SELECT TUMBLE_ROWTIME(ts, {five}) AS rt, SUM(v) AS s FROM t GROUP BY TUMBLE(ts, {five})"
    query = f"SELECT TUMBLE_END(rt, {TEN}), SUM(s), COUNT(*) FROM ({inner}) GROUP BY TUMBLE(rt, {TEN})"
    assert seconds(sql.rows(query)) == [(10, 7, 1), (20, 8, 1)]


def test_t68_parts_of_a_window_that_is_not_grouped_by_are_rejected(sql):
    timed(sql, "t", ["k", "v"], *ROWS)
    with pytest.raises(ValidationException, match="same arguments"):
        sql.t_env.sql_query(f"SELECT TUMBLE_START(ts, INTERVAL '1' SECOND) FROM t GROUP BY TUMBLE(ts, {TEN})")


def test_t68_windows_need_a_time_attribute(sql):
    timed(sql, "t", ["k", "v"], *ROWS)
    with pytest.raises(ValidationException, match="time attribute"):
        sql.t_env.sql_query(f"SELECT SUM(v) FROM t GROUP BY TUMBLE(v, {TEN})")


def test_t44_a_null_rowtime_fails_the_job(sql):
    timed(sql, "t", ["k", "v"], ("a", 1, at(1)), ("b", 2, None))
    with pytest.raises(Exception, match="rowtime of a row is NULL"):
        sql.rows(f"SELECT SUM(v) FROM t GROUP BY TUMBLE(ts, {TEN})")


# -- Table API


def test_t68_tumble_of_the_table_api(sql):
    timed(sql, "t", ["k", "v"], *ROWS)
    window = Tumble.over(lit(10).seconds).on(col("ts")).alias("w")
    table = sql.t_env.from_path("t").window(window).group_by(col("w"), col("k"))
    result = table.select(col("k"), col("w").start, col("w").end, col("v").sum.alias("s"))
    assert seconds(sql.rows(result)) == [("a", 0, 10, 5), ("b", 0, 10, 2), ("a", 10, 20, 8)]


def test_t68_slide_and_session_of_the_table_api(sql):
    timed(sql, "t", ["k", "v"], *ROWS)
    table = sql.t_env.from_path("t")
    slide = table.window(Slide.over(lit(10).seconds).every(lit(5).seconds).on(col("ts")).alias("w")).group_by(col("w"))
    assert seconds(sql.rows(slide.select(col("w").end, col("v").count))) == [(5, 3), (10, 3), (15, 1), (20, 1)]
    session = table.window(Session.with_gap(lit(2).seconds).on(col("ts")).alias("w")).group_by(col("w"), col("k"))
    rows = sql.rows(session.select(col("k"), col("w").rowtime, col("v").sum))
    assert seconds(rows) == [("b", 3, 2), ("a", 4, 5), ("a", 13, 8)]


def test_t68_group_by_without_the_window_is_rejected(sql):
    timed(sql, "t", ["k", "v"], *ROWS)
    window = Tumble.over(lit(10).seconds).on(col("ts")).alias("w")
    with pytest.raises(ValidationException, match="needs the window"):
        sql.t_env.from_path("t").window(window).group_by(col("k"))


class MinMax(AggregateFunction):
    """The smallest and the largest value."""

    def create_accumulator(self):
        return [None, None]

    def accumulate(self, accumulator, value):
        accumulator[0] = value if accumulator[0] is None else min(accumulator[0], value)
        accumulator[1] = value if accumulator[1] is None else max(accumulator[1], value)

    def get_value(self, accumulator):
        return Row(*accumulator)


def test_t105_aggregate_functions_of_windows(sql):
    timed(sql, "t", ["k", "v"], *ROWS)
    row = DataTypes.ROW([DataTypes.FIELD("low", DataTypes.BIGINT()), DataTypes.FIELD("high", DataTypes.BIGINT())])
    minmax = udaf(MinMax(), result_type=row, accumulator_type=DataTypes.ARRAY(DataTypes.BIGINT()), name="minmax")
    window = Tumble.over(lit(10).seconds).on(col("ts")).alias("w")
    grouped = sql.t_env.from_path("t").window(window).group_by(col("w"), col("k"))
    aggregated = grouped.aggregate(minmax(col("v")).alias("a", "b"))
    result = aggregated.select(col("k"), col("a"), col("b"), col("w").start.alias("s"), col("w").end)
    assert seconds(sql.rows(result)) == [("a", 1, 4, 0, 10), ("b", 2, 2, 0, 10), ("a", 8, 8, 10, 20)]


def test_t80_over_windows_of_the_table_api(sql):
    timed(sql, "t", ["k", "v"], *ROWS)
    table = sql.t_env.from_path("t")
    by_key = Over.partition_by(col("k")).order_by(col("ts")).preceding(UNBOUNDED_RANGE).alias("w")
    result = table.over_window(by_key).select(col("k"), col("v").sum.over(col("w")), col("v").max.over(col("w")))
    assert sql.rows(result) == [("a", 1, 1), ("b", 2, 2), ("a", 5, 4), ("a", 13, 8)]
    two = Over.order_by(col("ts")).preceding(row_interval(1)).following(CURRENT_ROW).alias("w")
    assert sql.rows(table.over_window(two).select(col("v").sum.over(col("w")))) == [(1,), (3,), (6,), (12,)]
    time = Over.order_by(col("ts")).preceding(lit(1).seconds).alias("w")
    assert sql.rows(table.over_window(time).select(col("v").sum.over(col("w")))) == [(1,), (3,), (6,), (8,)]


def test_t80_an_unknown_over_window_is_rejected(sql):
    timed(sql, "t", ["k", "v"], *ROWS)
    window = Over.order_by(col("ts")).preceding(UNBOUNDED_RANGE).alias("w")
    with pytest.raises(ValidationException, match="the OVER window 'x' does not exist"):
        sql.t_env.from_path("t").over_window(window).select(col("v").sum.over(col("x")))


def test_t86_sorting_of_the_table_api(batch, sql):
    for queries in (batch, sql):
        queries.table("t", ["k", "v"], ("b", 2), ("a", None), ("c", 2), ("d", 5))
    table = batch.t_env.from_path("t")
    assert batch.rows(table.order_by(col("v").desc, col("k"))) == [("d", 5), ("b", 2), ("c", 2), ("a", None)]
    assert batch.rows(table.order_by(col("k")).offset(1).fetch(2)) == [("b", 2), ("c", 2)]
    assert batch.rows(table.order_by(col("k")).limit(1, 2).select(col("k"))) == [("c",)]
    streaming = sql.t_env.from_path("t")
    assert sql.final(streaming.order_by(col("k").desc).fetch(2)) == [("c", 2), ("d", 5)]
    with pytest.raises(TableException, match="LIMIT"):
        streaming.order_by(col("k")).execute()


def test_t50_arguments_of_a_function_in_group_by_are_no_keys(sql):
    sql.table("t", ["k"], ("a",), ("A",))
    assert sql.final("SELECT UPPER(k), COUNT(*) FROM t GROUP BY UPPER(k)") == [("A", 2)]
