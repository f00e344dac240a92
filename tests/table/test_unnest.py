"""UNNEST: the elements of a collection as rows (T76)."""

from penstock.table import DataTypes


def _arrays(sql):
    sql.t_env.create_temporary_view(
        "t",
        sql.t_env.from_elements(
            [(1, ["a", None, "b"]), (2, []), (3, None), (4, ["c"])],
            DataTypes.ROW(
                [DataTypes.FIELD("id", DataTypes.INT()), DataTypes.FIELD("words", DataTypes.ARRAY(DataTypes.STRING()))]
            ),
        ),
    )


def test_t76_unnest_gives_a_row_for_each_element(sql):
    _arrays(sql)
    expected = [(1, "a"), (1, None), (1, "b"), (4, "c")]
    assert sql.rows("SELECT id, word FROM t CROSS JOIN UNNEST(words) AS u (word)") == expected
    assert sql.rows("SELECT id, word FROM t, UNNEST(words) AS u (word)") == expected


def test_t76_left_join_unnest_keeps_rows_of_empty_and_null_collections(sql):
    _arrays(sql)
    assert sql.rows("SELECT id, word FROM t LEFT JOIN UNNEST(words) AS u (word) ON TRUE") == [
        (1, "a"),
        (1, None),
        (1, "b"),
        (2, None),
        (3, None),
        (4, "c"),
    ]


def test_t76_ordinality_counts_from_1(sql):
    _arrays(sql)
    query = "SELECT id, word, n FROM t {} UNNEST(words) WITH ORDINALITY AS u (word, n) {}"
    assert sql.rows(query.format("CROSS JOIN", "")) == [(1, "a", 1), (1, None, 2), (1, "b", 3), (4, "c", 1)]
    assert sql.rows(query.format("LEFT JOIN", "ON TRUE"))[3:5] == [(2, None, None), (3, None, None)]


def test_t76_unnest_of_arrays_of_rows_gives_their_columns(sql):
    row = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT()), DataTypes.FIELD("b", DataTypes.STRING())])
    sql.t_env.create_temporary_view(
        "t",
        sql.t_env.from_elements(
            [(1, [(1, "x"), (2, "y")]), (2, [(3, "z")])],
            DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT()), DataTypes.FIELD("rs", DataTypes.ARRAY(row))]),
        ),
    )
    assert sql.rows("SELECT id, a, b FROM t CROSS JOIN UNNEST(rs) AS u (a, b) WHERE a > 1") == [
        (1, 2, "y"),
        (2, 3, "z"),
    ]


def test_t76_unnest_of_maps_gives_keys_and_values(sql):
    sql.table("t", ["id"], (1,), (2,))
    query = "SELECT id, k, v FROM t CROSS JOIN UNNEST(MAP['a', id, 'b', id * 10]) AS u (k, v)"
    assert sql.rows(query) == [(1, "a", 1), (1, "b", 10), (2, "a", 2), (2, "b", 20)]


def test_t13_row_kinds_pass_through_unnest(sql):
    sql.table("t", ["k", "v"], ("a", 1), ("a", 2))
    query = "SELECT k, x FROM (SELECT k, SUM(v) AS s FROM t GROUP BY k) CROSS JOIN UNNEST(ARRAY[s, -s]) AS u (x)"
    assert sql.changelog(query) == [
        ("+I", "a", 1),
        ("+I", "a", -1),
        ("-U", "a", 1),
        ("-U", "a", -1),
        ("+U", "a", 3),
        ("+U", "a", -3),
    ]


def test_t76_unnest_of_constants(sql):
    assert sql.rows("SELECT x + 1 FROM UNNEST(ARRAY[1, 2, 3]) AS u (x)") == [(2,), (3,), (4,)]
