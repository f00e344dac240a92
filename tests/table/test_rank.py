"""Top-N, deduplication, ORDER BY and LIMIT (T66, T83 to T87)."""

import datetime as dt

import pytest
from tests.table.conftest import Queries, table_environment, timed

from penstock.util.exceptions import TableException

NUMBERED = "(SELECT *, ROW_NUMBER() OVER ({}) AS rn FROM {})"


def at(second):
    return dt.datetime(2024, 5, 1, 12, 0) + dt.timedelta(seconds=second)


def top(columns, over, where, table="t"):
    return f"SELECT {columns} FROM {NUMBERED.format(over, table)} WHERE {where}"


def final(changes):
    """What a changelog adds up to."""
    rows = []
    for kind, *row in changes:
        if kind in ("+I", "+U"):
            rows.append(tuple(row))
        else:
            rows.remove(tuple(row))
    return sorted(rows, key=repr)


# -- Top-N


def test_t84_without_rank_numbers_the_row_that_falls_out_is_deleted(sql):
    sql.table("t", ["v"], (4,), (6,), (9,), (5,))
    assert sql.changelog(top("v", "ORDER BY v DESC", "rn <= 2")) == [("+I", 4), ("+I", 6), ("-D", 4), ("+I", 9)]


def test_t85_with_rank_numbers_every_rank_behind_is_updated(sql):
    sql.table("t", ["v"], (4,), (6,))
    expected = [("+I", 4, 1), ("-U", 4, 1), ("+U", 6, 1), ("+I", 4, 2)]
    assert sql.changelog(top("v, rn", "ORDER BY v DESC", "rn <= 2")) == expected


def test_t83_ties_keep_their_order_of_arrival(sql):
    sql.table("t", ["k", "v"], ("a", 3), ("b", 3), ("c", 8))
    assert sql.changelog(top("k, v, rn", "ORDER BY v DESC", "rn <= 2")) == [
        ("+I", "a", 3, 1),
        ("+I", "b", 3, 2),
        ("-U", "a", 3, 1),
        ("+U", "c", 8, 1),
        ("-U", "b", 3, 2),
        ("+U", "a", 3, 2),
    ]


def test_t83_each_partition_has_its_ranks(sql):
    sql.table("t", ["k", "v"], ("a", 3), ("b", 5), ("a", 1), ("b", 4), ("a", 2))
    query = top("k, v, rn", "PARTITION BY k ORDER BY v", "rn < 3")
    assert sql.final(query) == [("a", 1, 1), ("a", 2, 2), ("b", 4, 1), ("b", 5, 2)]


def test_t83_ranges_of_ranks(sql):
    sql.table("t", ["v"], *((v,) for v in (5, 3, 9, 1, 7)))
    assert sql.final(top("v, rn", "ORDER BY v", "rn BETWEEN 2 AND 3")) == [(3, 2), (5, 3)]
    assert sql.final(top("v", "ORDER BY v", "rn > 1 AND rn <= 3")) == [(3,), (5,)]
    assert sql.final(top("v, rn", "ORDER BY v", "3 = rn")) == [(5, 3)]


def test_t83_other_conditions_stay(sql):
    sql.table("t", ["v"], *((v,) for v in (5, 3, 9, 1, 7)))
    assert sql.final(top("v, rn", "ORDER BY v", "rn <= 3 AND v > 2")) == [(3, 2), (5, 3)]


def test_t83_rows_that_are_taken_away_let_others_in(sql):
    sql.table("t", ["k", "v"], ("a", 1), ("b", 2), ("c", 3), ("a", 5))
    counted = "(SELECT k, SUM(v) AS s FROM t GROUP BY k)"
    query = top("k, s, rn", "ORDER BY s", "rn <= 2", counted)
    assert sql.final(query) == [("b", 2, 1), ("c", 3, 2)]
    assert sql.final(top("k, s", "ORDER BY s", "rn <= 2", counted)) == [("b", 2), ("c", 3)]


@pytest.mark.parametrize("columns", ["k, s", "k, s, rn"])
@pytest.mark.parametrize("where", ["rn <= 3", "rn BETWEEN 2 AND 4", "rn = 2"])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_t83_top_n_of_updates_is_that_of_the_final_table(columns, where, parallelism):
    queries = Queries(table_environment(parallelism))
    rows = [(i * 7 % 5, i * 31 % 17, i * i % 11 - 5) for i in range(300)]
    queries.table("t", ["g", "k", "v"], *rows)
    counted = "(SELECT g, k, SUM(v) AS s FROM t GROUP BY g, k)"
    query = top(f"g, {columns}", "PARTITION BY g ORDER BY s DESC, k", where, counted)
    sums = {}
    for g, k, v in rows:
        sums[g, k] = sums.get((g, k), 0) + v
    expected = []
    for g in range(5):
        ranked = sorted(((-s, k) for (other, k), s in sums.items() if other == g))
        for rank, (s, k) in enumerate(ranked, 1):
            if {"rn <= 3": rank <= 3, "rn BETWEEN 2 AND 4": 2 <= rank <= 4, "rn = 2": rank == 2}[where]:
                expected.append((g, k, -s, rank) if "rn" in columns else (g, k, -s))
    assert queries.final(query) == sorted(expected, key=repr)


def test_t36_nulls_are_the_smallest_values_of_a_top_n(sql):
    sql.table("t", ["v"], (4,), (None,), (2,), (7,))
    assert sql.final(top("v", "ORDER BY v", "rn <= 2")) == [(2,), (None,)]
    assert sql.final(top("v", "ORDER BY v DESC", "rn <= 2")) == [(4,), (7,)]
    assert sql.final(top("v", "ORDER BY v DESC NULLS FIRST", "rn <= 2")) == [(7,), (None,)]


def test_t83_text_and_doubles_sort_in_both_directions(sql):
    sql.table("t", ["s", "d"], ("b", 1.5), ("ab", -2.0), ("a", float("inf")), ("ba", 0.0))
    assert sql.final(top("s", "ORDER BY s DESC", "rn <= 2")) == [("b",), ("ba",)]
    assert sql.final(top("s", "ORDER BY s", "rn <= 2")) == [("a",), ("ab",)]
    assert sql.final(top("d", "ORDER BY d DESC", "rn <= 2")) == [(1.5,), (float("inf"),)]


def test_t140_top_n_in_batch_mode(batch):
    batch.table("t", ["k", "v"], ("a", 3), ("b", 5), ("a", 1), ("b", 4), ("a", 2))
    query = top("k, v, rn", "PARTITION BY k ORDER BY v", "rn <= 2")
    assert sorted(batch.rows(query)) == [("a", 1, 1), ("a", 2, 2), ("b", 4, 1), ("b", 5, 2)]


# -- Deduplication


def test_t87_the_first_row_by_order_of_arrival_is_never_replaced(sql):
    sql.table("t", ["k", "v"], ("a", 1), ("a", 2), ("b", 3), ("a", 4))
    query = top("k, v", "PARTITION BY k ORDER BY p", "rn = 1", "(SELECT *, PROCTIME() AS p FROM t)")
    assert sql.changelog(query) == [("+I", "a", 1), ("+I", "b", 3)]


def test_t87_the_last_row_by_order_of_arrival(sql):
    sql.table("t", ["k", "v"], ("a", 1), ("a", 2), ("b", 3), ("a", 4))
    query = top("k, v", "PARTITION BY k ORDER BY p DESC", "rn = 1", "(SELECT *, PROCTIME() AS p FROM t)")
    assert sql.changelog(query) == [
        ("+I", "a", 1),
        ("-U", "a", 1),
        ("+U", "a", 2),
        ("+I", "b", 3),
        ("-U", "a", 2),
        ("+U", "a", 4),
    ]


def test_t87_the_last_row_by_rowtime_ignores_older_rows_and_takes_equal_ones(sql):
    timed(sql, "t", ["k", "v"], ("k", 1, at(5)), ("k", 2, at(3)), ("k", 3, at(5)))
    query = top("v", "PARTITION BY k ORDER BY ts DESC", "rn = 1")
    assert sql.changelog(query) == [("+I", 1), ("-U", 1), ("+U", 3)]


def test_t13_the_first_row_by_rowtime_comes_with_the_watermark(sql):
    timed(sql, "t", ["k", "v"], ("k", 1, at(5)), ("k", 2, at(3)), ("l", 3, at(4)), ("k", 4, at(9)), delay=4)
    query = top("k, v", "PARTITION BY k ORDER BY ts", "rn = 1")
    assert sql.changelog(query) == [("+I", "k", 2), ("+I", "l", 3)]


def test_t87_the_last_row_keeps_nulls_and_all_types():
    queries = Queries(table_environment(2))
    rows = [
        (i % 9, None if i % 3 else i, None if i % 4 else f"s{i}", i / 2, i % 2 == 0, [i, None], at(i))
        for i in range(90)
    ]
    timed(queries, "t", ["k", "n", "s", "d", "b", "a"], *rows)
    query = top("k, n, s, d, b, a", "PARTITION BY k ORDER BY ts DESC", "rn = 1")
    assert queries.final(query) == sorted((row[:-1] for row in rows[-9:]), key=repr)


@pytest.mark.parametrize(("direction", "expected"), [("", [("a", 2), ("b", 3)]), ("DESC", [("a", 4), ("b", 3)])])
def test_t140_deduplication_in_batch_mode(batch, direction, expected):
    timed(batch, "t", ["k", "v"], ("a", 1, at(5)), ("a", 2, at(2)), ("b", 3, at(3)), ("a", 4, at(9)))
    query = top("k, v", f"PARTITION BY k ORDER BY ts {direction}", "rn = 1")
    assert sorted(batch.rows(query)) == expected


# -- Windows

TUMBLE = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND))"


def test_t66_top_n_of_windows_is_emitted_once(sql):
    rows = [("a", 1, at(1)), ("a", 5, at(2)), ("b", 3, at(3)), ("c", 4, at(12)), ("a", 2, at(13))]
    timed(sql, "t", ["k", "v"], *rows)
    query = top("k, v, rn", "PARTITION BY window_start, window_end ORDER BY v DESC", "rn <= 2", TUMBLE)
    assert sql.rows(query) == [("a", 5, 1), ("b", 3, 2), ("c", 4, 1), ("a", 2, 2)]


def test_t66_top_n_of_aggregated_windows(sql):
    rows = [("a", 1, at(1)), ("a", 5, at(2)), ("b", 9, at(3)), ("c", 4, at(12)), ("a", 2, at(13))]
    timed(sql, "t", ["k", "v"], *rows)
    sums = f"(SELECT k, window_start, window_end, SUM(v) AS s FROM {TUMBLE} GROUP BY k, window_start, window_end)"
    query = top("k, s", "PARTITION BY window_start, window_end ORDER BY s DESC", "rn <= 1", sums)
    assert sql.rows(query) == [("b", 9), ("c", 4)]


@pytest.mark.parametrize(("direction", "expected"), [("", [1, 3, 5]), ("DESC", [2, 4, 5])])
def test_t66_deduplication_of_windows(sql, direction, expected):
    rows = [("a", 1, at(1)), ("a", 2, at(1)), ("b", 3, at(3)), ("b", 4, at(4)), ("a", 5, at(13))]
    timed(sql, "t", ["k", "v"], *rows, delay=1)
    over = f"PARTITION BY window_start, window_end, k ORDER BY ts {direction}"
    assert [row[0] for row in sql.rows(top("v", over, "rn = 1", TUMBLE))] == expected


# -- ORDER BY and LIMIT


def test_t86_order_by_time_sorts_up_to_the_watermark(sql):
    timed(sql, "t", ["v"], (1, at(4)), (2, at(2)), (3, at(3)), (4, at(9)), (5, at(1)), (6, at(9)), delay=4)
    assert sql.rows("SELECT v FROM t ORDER BY ts, v DESC") == [(2,), (3,), (1,), (6,), (4,)]


def test_t86_order_by_with_limit_is_a_top_n(sql):
    sql.table("t", ["v"], (4,), (6,), (9,))
    assert sql.changelog("SELECT v FROM t ORDER BY v DESC LIMIT 2") == [("+I", 4), ("+I", 6), ("-D", 4), ("+I", 9)]
    assert sql.final("SELECT v FROM t ORDER BY v LIMIT 1 OFFSET 1") == [(6,)]


def test_t86_limit_alone_passes_the_first_rows(sql):
    sql.table("t", ["v"], *((v,) for v in range(10)))
    assert sql.rows("SELECT v FROM t LIMIT 3") == [(0,), (1,), (2,)]
    assert sql.rows("SELECT v FROM t LIMIT 3 OFFSET 2") == [(2,), (3,), (4,)]
    assert sql.final("SELECT v, COUNT(*) FROM t GROUP BY v LIMIT 2") == [(0, 1), (1, 1)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT v FROM t ORDER BY v", "Sort on a non-time-attribute field is not supported.*LIMIT"),
        ("SELECT v FROM t ORDER BY ts DESC", "must be ascending on time"),
        ("SELECT v FROM t OFFSET 3", "FETCH is missed"),
    ],
)
def test_t86_other_orders_are_rejected_in_streaming_mode(sql, query, message):
    timed(sql, "t", ["v"], (1, at(4)))
    with pytest.raises(TableException, match=message):
        sql.t_env.execute_sql(query)


def test_t140_order_by_anything_in_batch_mode(batch):
    batch.table("t", ["k", "v"], ("b", 2), ("a", None), ("c", 2), ("d", 5))
    assert batch.rows("SELECT k, v FROM t ORDER BY v DESC, k") == [("d", 5), ("b", 2), ("c", 2), ("a", None)]
    assert batch.rows("SELECT k FROM t ORDER BY v, k DESC LIMIT 2 OFFSET 1") == [("c",), ("b",)]
    assert batch.rows("SELECT k FROM t ORDER BY k DESC OFFSET 3") == [("a",)]
