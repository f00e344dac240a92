"""User-defined functions (T76, T100 to T105)."""

import asyncio

import pytest
from tests.table.conftest import table_environment, timed
from tests.table.user_functions import PREFIX, Total, shout, twice, words

from penstock.common import Row
from penstock.common.errors import InvalidProgramError, UserFunctionError
from penstock.table import DataTypes
from penstock.table.expressions import col, lit
from penstock.table.udf import (
    AggregateFunction,
    ScalarFunction,
    TableAggregateFunction,
    TableFunction,
    udaf,
    udf,
    udtaf,
    udtf,
)
from penstock.util.exceptions import TableException, ValidationException


@pytest.fixture
def numbers(sql):
    sql.table("t", ["k", "v"], ("a", 1), ("b", 2), ("a", 3))
    return sql


# -- scalar functions -------------------------------------------------------------------------------------------------


def test_t100_a_scalar_function_by_decorator_call_and_class(numbers):
    t = numbers.t_env.from_path("t")
    plus_one = udf(lambda i: i + 1, result_type=DataTypes.BIGINT())
    assert numbers.rows(t.select(twice(t.v), plus_one(t.v), shout(t.k))) == [(2, 2, "A!"), (4, 3, "B!"), (6, 4, "A!")]


def test_t100_a_function_registered_under_a_name_is_called_in_sql(numbers):
    numbers.t_env.create_temporary_function("dbl", twice)
    numbers.t_env.create_temporary_system_function("loud", shout)
    assert numbers.rows("SELECT DBL(v), loud(k) FROM t WHERE dbl(v) > 2") == [(4, "B!"), (6, "A!")]


def test_t100_create_function_in_sql(numbers):
    numbers.t_env.execute_sql(f"CREATE TEMPORARY SYSTEM FUNCTION dbl AS '{PREFIX}.twice' LANGUAGE PYTHON")
    numbers.t_env.execute_sql(f"CREATE FUNCTION total AS '{PREFIX}.Total' LANGUAGE PYTHON")
    assert numbers.rows("SELECT dbl(v) FROM t") == [(2,), (4,), (6,)]
    assert numbers.final("SELECT k, total(v) FROM t GROUP BY k") == [("a", 4), ("b", 2)]
    numbers.t_env.execute_sql("DROP FUNCTION total")
    with pytest.raises(ValidationException, match="total"):
        numbers.t_env.sql_query("SELECT total(v) FROM t")


def test_t100_create_function_says_what_cannot_be_imported(t_env):
    with pytest.raises(ValidationException, match="no_such_module"):
        t_env.execute_sql("CREATE FUNCTION f AS 'no_such_module.f' LANGUAGE PYTHON")


def test_t101_null_is_none_and_the_result_gets_the_declared_type(sql):
    sql.table("t", ["v"], (1,), (None,))
    described = udf(lambda v: "none" if v is None else "some", result_type="STRING")
    price = udf(lambda v: v, result_type="DECIMAL(6, 2)")
    t = sql.t_env.from_path("t")
    assert [(a, str(b)) for a, b in sql.rows(t.select(described(t.v), price(t.v)))] == [
        ("some", "1.00"),
        ("none", "None"),
    ]


def test_t101_an_exception_fails_the_job_and_names_the_record(numbers):
    def fails(v):
        return 1 // (v - 2)

    t = numbers.t_env.from_path("t")
    with pytest.raises(UserFunctionError, match="ZeroDivisionError") as raised:
        numbers.rows(t.select(udf(fails, result_type="BIGINT")(t.v)))
    assert "(2,)" in str(raised.value)


def test_t102_open_comes_before_the_first_row_and_close_at_the_end(numbers, tmp_path):
    trace = tmp_path / "calls"

    class Traced(ScalarFunction):
        def open(self, function_context):
            self.file = trace.open("w")
            self.file.write("open")

        def eval(self, v):
            self.file.write(f" {v}")
            return v

        def close(self):
            self.file.write(" close")
            self.file.close()

    t = numbers.t_env.from_path("t")
    traced = udf(Traced(), result_type="BIGINT")
    assert numbers.rows(t.select(traced(t.v))) == [(1,), (2,), (3,)]
    assert trace.read_text() == "open 1 2 3 close"


class _Subtract(ScalarFunction):
    def open(self, function_context):
        self.known = int(function_context.get_job_parameter("known", "1"))
        self.unknown = int(function_context.get_job_parameter("unknown", "1"))

    def eval(self, value):
        return value - self.known - self.unknown


def test_t102_open_reads_the_global_parameters_of_the_job(numbers):
    numbers.t_env.get_config().set("pipeline.global-job-parameters", "known:2")
    numbers.t_env.create_temporary_system_function("subtract", udf(_Subtract(), result_type=DataTypes.BIGINT()))
    assert numbers.rows("SELECT subtract(10)") == [(7,)]


class _HasParameter(ScalarFunction):
    def open(self, function_context):
        self.found = function_context.get_job_parameter("unknown", None) is not None

    def eval(self):
        return self.found


def test_t102_a_parameter_that_is_missing_has_the_default_itself(numbers):
    numbers.t_env.create_temporary_system_function("has_parameter", udf(_HasParameter(), result_type="BOOLEAN"))
    assert numbers.rows("SELECT has_parameter()") == [(False,)]


def test_a_function_with_too_many_arguments_is_rejected_at_once(numbers):
    numbers.t_env.create_temporary_function("dbl", twice)
    with pytest.raises(ValidationException, match="'twice' cannot be called with 2 arguments"):
        numbers.t_env.sql_query("SELECT dbl(v, v) FROM t")


def test_functions_without_a_result_type_and_unknown_kinds_are_rejected():
    with pytest.raises(InvalidProgramError, match="result_type"):
        udf(lambda v: v)
    with pytest.raises(InvalidProgramError, match="func_type"):
        udf(lambda v: v, result_type="INT", func_type="polars")
    with pytest.raises(InvalidProgramError, match="callable"):
        udf(3, result_type="INT")


def test_t104_pandas_and_arrow_functions_get_whole_columns(numbers):
    pytest.importorskip("pandas")
    import pyarrow.compute as pc

    t = numbers.t_env.from_path("t")
    by_pandas = udf(lambda k, v: k + v.astype(str), result_type="STRING", func_type="pandas")
    by_arrow = udf(lambda v: pc.multiply(v, 10), result_type="BIGINT", func_type="arrow")
    assert numbers.rows(t.select(by_pandas(t.k, t.v), by_arrow(t.v))) == [("a1", 10), ("b2", 20), ("a3", 30)]


def test_t104_a_pandas_function_must_return_as_many_rows(numbers):
    pytest.importorskip("pandas")
    t = numbers.t_env.from_path("t")
    with pytest.raises(UserFunctionError, match="got 3 rows and returned 1"):
        numbers.rows(t.select(udf(lambda v: v[:1], result_type="BIGINT", func_type="pandas")(t.v)))


def test_asynchronous_functions_keep_the_order_of_rows(numbers):
    @udf(result_type="BIGINT")
    async def slow(v):
        for _ in range(10 - 3 * v):  # the first row takes longest
            await asyncio.sleep(0)
        return v * 100

    t = numbers.t_env.from_path("t")
    assert numbers.rows(t.select(slow(t.v))) == [(100,), (200,), (300,)]


def test_asynchronous_functions_are_tried_again(numbers):
    numbers.t_env.get_config().set("table.exec.async-scalar.retry-delay", "1 ms")

    class Unreliable(ScalarFunction):
        def open(self, function_context):
            self.attempts = 0

        async def eval(self, v):
            self.attempts += 1
            if self.attempts == 1:
                raise OSError("not yet")
            return v

    t = numbers.t_env.from_path("t")
    assert numbers.rows(t.select(udf(Unreliable(), result_type="BIGINT")(t.v))) == [(1,), (2,), (3,)]
    numbers.t_env.get_config().set("table.exec.async-scalar.max-attempts", "1")
    with pytest.raises(UserFunctionError, match="not yet"):
        numbers.rows(t.select(udf(Unreliable(), result_type="BIGINT")(t.v)))


# -- table functions --------------------------------------------------------------------------------------------------


@pytest.fixture
def texts(sql):
    sql.table("t", ["id", "s"], (1, "to be"), (2, ""), (3, "or"))
    sql.t_env.create_temporary_function("words", words)
    return sql


def test_t76_lateral_table_joins_every_row_with_the_rows_of_the_function(texts):
    expected = [(1, "to", 2), (1, "be", 2), (3, "or", 2)]
    assert texts.rows("SELECT id, w, n FROM t, LATERAL TABLE(words(s)) AS x(w, n)") == expected
    assert texts.rows("SELECT id, w, n FROM t JOIN LATERAL TABLE(words(s)) AS x(w, n) ON TRUE") == expected
    assert texts.rows("SELECT id, w FROM t JOIN LATERAL TABLE(words(s)) AS x(w, n) ON w <> 'to'") == [
        (1, "be"),
        (3, "or"),
    ]


def test_t76_left_join_lateral_keeps_rows_without_a_result(texts):
    rows = texts.rows("SELECT id, w FROM t LEFT JOIN LATERAL TABLE(words(s)) AS x(w, n) ON TRUE")
    assert rows == [(1, "to"), (1, "be"), (2, None), (3, "or")]
    with pytest.raises(ValidationException, match="only ON TRUE"):
        texts.t_env.sql_query("SELECT id FROM t LEFT JOIN LATERAL TABLE(words(s)) AS x(w, n) ON id > 1")


def test_t76_join_lateral_of_the_table_api(texts):
    t = texts.t_env.from_path("t")
    joined = t.join_lateral(words(t.s).alias("w", "n")).select(col("id"), col("w"))
    assert texts.rows(joined) == [(1, "to"), (1, "be"), (3, "or")]
    outer = t.left_outer_join_lateral(words(t.s).alias("w", "n"), lit(True)).select(col("id"), col("w"))
    assert texts.rows(outer) == [(1, "to"), (1, "be"), (2, None), (3, "or")]
    with pytest.raises(ValidationException, match="ambiguous"):
        t.join_lateral(words(t.s).alias("id", "n"))


def test_t76_unnest_of_arrays_maps_and_rows(sql):
    assert sql.rows("SELECT x FROM UNNEST(ARRAY[3, 4]) AS u(x)") == [(3,), (4,)]
    sql.table("t", ["id", "a"], (1, ["p", "q"]), (2, []), (3, None))
    assert sql.rows("SELECT id, x FROM t CROSS JOIN UNNEST(a) AS u(x)") == [(1, "p"), (1, "q")]
    assert sql.rows("SELECT id, x FROM t LEFT JOIN UNNEST(a) AS u(x) ON TRUE") == [
        (1, "p"),
        (1, "q"),
        (2, None),
        (3, None),
    ]
    assert sql.rows("SELECT id, x, o FROM t CROSS JOIN UNNEST(a) WITH ORDINALITY AS u(x, o)") == [
        (1, "p", 1),
        (1, "q", 2),
    ]
    assert sorted(sql.rows("SELECT k, v FROM UNNEST(MAP['a', 1, 'b', 2]) AS u(k, v)")) == [("a", 1), ("b", 2)]


def test_t103_a_table_function_yields_tuples_rows_or_single_values(numbers):
    class Mixed(TableFunction):
        def eval(self, v):
            yield from ((v,), Row(v + 10), v + 20)

    t = numbers.t_env.from_path("t")
    mixed = udtf(Mixed(), result_types=["BIGINT"])
    assert numbers.rows(t.filter(t.v == 1).join_lateral(mixed(t.v).alias("x")).select(col("x"))) == [(1,), (11,), (21,)]
    listed = udtf(range, result_types=DataTypes.BIGINT())
    assert numbers.rows(t.filter(t.v == 2).flat_map(listed(t.v))) == [(0,), (1,)]


def test_t103_a_row_of_the_wrong_length_fails_with_a_message(numbers):
    t = numbers.t_env.from_path("t")
    wrong = udtf(lambda v: [(v, v, v)], result_types=["BIGINT", "BIGINT"])
    with pytest.raises(UserFunctionError, match="expected a row of 2 values"):
        numbers.rows(t.flat_map(wrong(t.v)))


def test_a_table_function_passes_row_kinds_on(sql):
    sql.table("t", ["k", "v"], ("a", 1), ("a", 1))
    sql.t_env.create_temporary_function("words", words)
    query = "SELECT w, c FROM (SELECT k, COUNT(*) AS c FROM t GROUP BY k), LATERAL TABLE(words(k)) AS x(w, n)"
    assert sql.changelog(query) == [("+I", "a", 1), ("-U", "a", 1), ("+U", "a", 2)]


# -- aggregate functions ----------------------------------------------------------------------------------------------


def test_t103_an_aggregate_function_updates_its_result(numbers):
    t = numbers.t_env.from_path("t")
    total = udaf(Total())
    assert numbers.changelog(t.group_by(t.k).select(t.k, total(t.v))) == [
        ("+I", "a", 1),
        ("+I", "b", 2),
        ("-U", "a", 1),
        ("+U", "a", 4),
    ]


def test_t103_retract_is_called_for_updated_input(numbers):
    numbers.t_env.create_temporary_function("total", udaf(Total()))
    query = "SELECT total(c) FROM (SELECT k, COUNT(*) AS c FROM t GROUP BY k)"
    assert numbers.final(query) == [(3,)]


def test_t103_a_function_without_retract_is_rejected_over_updates(numbers):
    class Longest(AggregateFunction):
        def create_accumulator(self):
            return [0]

        def accumulate(self, accumulator, v):
            accumulator[0] = max(accumulator[0], v)

        def get_value(self, accumulator):
            return accumulator[0]

    numbers.t_env.create_temporary_function("longest", udaf(Longest(), result_type="BIGINT"))
    assert numbers.final("SELECT longest(v) FROM t") == [(3,)]
    with pytest.raises(TableException, match="no retract"):
        numbers.changelog("SELECT longest(c) FROM (SELECT k, COUNT(*) AS c FROM t GROUP BY k)")


def test_t103_list_and_map_views_are_kept_in_the_accumulator(sql):
    from penstock.table.data_view import ListView, MapView

    class Names(AggregateFunction):
        def create_accumulator(self):
            return Row(ListView(), MapView())

        def accumulate(self, accumulator, name):
            if not accumulator[1].contains(name):
                accumulator[1][name] = 0
                accumulator[0].add(name)
            accumulator[1][name] = accumulator[1][name] + 1

        def get_value(self, accumulator):
            return ",".join(f"{name}{accumulator[1].get(name)}" for name in accumulator[0].get())

    t = table_environment(parallelism=2).from_elements([("x",), ("y",), ("x",)], ["n"])
    assert sql.final(t.select(udaf(Names(), result_type="STRING")(t.n))) == [("x2,y1",)]


def test_t104_pandas_aggregates_run_in_windows_and_in_batch_mode(sql, batch):
    pytest.importorskip("pandas")
    import datetime as dt

    mean = udaf(lambda v: v.mean(), result_type="DOUBLE", func_type="pandas")
    at = [dt.datetime(2024, 1, 1, 0, 0, second) for second in (1, 2, 12)]
    timed(sql, "t", ["v"], (1, at[0]), (2, at[1]), (7, at[2]))
    sql.t_env.create_temporary_function("mean", mean)
    query = """SELECT mean(v) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND))
               GROUP BY window_start, window_end"""
    assert sql.rows(query) == [(1.5,), (7.0,)]
    with pytest.raises(TableException, match="Pandas UDAF"):
        sql.changelog("SELECT mean(v) FROM t")
    batch.table("t", ["k", "v"], ("a", 1), ("b", 5), ("a", 2))
    batch.t_env.create_temporary_function("mean", mean)
    assert sorted(batch.rows("SELECT k, mean(v) FROM t GROUP BY k")) == [("a", 1.5), ("b", 5.0)]


# -- whole rows and groups --------------------------------------------------------------------------------------------

PAIR = DataTypes.ROW([DataTypes.FIELD("x", DataTypes.STRING()), DataTypes.FIELD("y", DataTypes.BIGINT())])


def test_t105_map_takes_a_call_or_a_function_of_the_whole_row(numbers):
    t = numbers.t_env.from_path("t")
    by_call = udf(lambda v: Row("n", v), result_type=PAIR)
    assert numbers.rows(t.map(by_call(t.v)).select(col("y"), col("x"))) == [(1, "n"), (2, "n"), (3, "n")]
    by_row = udf(lambda row: Row(row.k + "!", row[1] * 2), result_type=PAIR)
    mapped = t.map(by_row).alias("p", "q")
    assert mapped.get_schema().get_field_names() == ["p", "q"]
    assert numbers.rows(mapped) == [("a!", 2), ("b!", 4), ("a!", 6)]


def test_t105_map_calls_the_function_once_for_each_row(numbers):
    class Counting(ScalarFunction):
        def open(self, function_context):
            self.calls = 0

        def eval(self, row):
            self.calls += 1
            return Row(row.k, self.calls)

    mapped = numbers.t_env.from_path("t").map(udf(Counting(), result_type=PAIR, deterministic=False))
    assert numbers.rows(mapped) == [("a", 1), ("b", 2), ("a", 3)]


def test_t105_map_with_pandas_gets_a_data_frame(numbers):
    pytest.importorskip("pandas")

    def doubled(frame):
        return frame.assign(v=frame.v * 2)

    mapped = numbers.t_env.from_path("t").map(udf(doubled, result_type=PAIR, func_type="pandas"))
    assert numbers.rows(mapped) == [("a", 2), ("b", 4), ("a", 6)]


def test_t105_flat_map_of_the_whole_row(numbers):
    @udtf(result_types=["STRING", "BIGINT"])
    def copies(row):
        for number in range(row.v):
            yield row.k, number

    assert numbers.rows(numbers.t_env.from_path("t").flat_map(copies)) == [
        ("a", 0),
        ("b", 0),
        ("b", 1),
        ("a", 0),
        ("a", 1),
        ("a", 2),
    ]


def test_t105_aggregate_gives_the_fields_of_its_row(numbers):
    class CountAndSum(AggregateFunction):
        def create_accumulator(self):
            return Row(0, 0)

        def accumulate(self, accumulator, row):
            accumulator[0] += 1
            accumulator[1] += row.v

        def retract(self, accumulator, row):
            accumulator[0] -= 1
            accumulator[1] -= row.v

        def get_value(self, accumulator):
            return Row(accumulator[0], accumulator[1])

        def get_result_type(self):
            return DataTypes.ROW([DataTypes.FIELD("c", DataTypes.BIGINT()), DataTypes.FIELD("s", DataTypes.BIGINT())])

    t = numbers.t_env.from_path("t")
    counted = udaf(CountAndSum())
    grouped = t.group_by(t.k).aggregate(counted.alias("n", "total")).select(col("k"), col("total"), col("n"))
    assert numbers.final(grouped) == [("a", 4, 2), ("b", 2, 1)]
    assert numbers.final(t.aggregate(counted).select(col("c"), col("s"))) == [(3, 6)]


class Top2(TableAggregateFunction):
    """The two largest values with their ranks."""

    def create_accumulator(self):
        return []

    def accumulate(self, accumulator, v):
        accumulator.append(v)
        accumulator.sort(reverse=True)

    def retract(self, accumulator, v):
        accumulator.remove(v)

    def emit_value(self, accumulator):
        for rank, v in enumerate(accumulator[:2], 1):
            yield Row(v, rank)

    def get_result_type(self):
        return DataTypes.ROW([DataTypes.FIELD("v", DataTypes.BIGINT()), DataTypes.FIELD("rank", DataTypes.INT())])


def test_t103_a_table_aggregate_replaces_the_rows_of_a_group(numbers):
    t = numbers.t_env.from_path("t")
    top = udtaf(Top2())
    query = t.group_by(t.k).flat_aggregate(top(t.v).alias("best", "r")).select(col("k"), col("best"), col("r"))
    assert numbers.changelog(query) == [
        ("+I", "a", 1, 1),
        ("+I", "b", 2, 1),
        ("-D", "a", 1, 1),
        ("+I", "a", 3, 1),
        ("+I", "a", 1, 2),
    ]


def test_t103_a_table_aggregate_takes_rows_away(numbers):
    counts = numbers.t_env.sql_query("SELECT k, COUNT(*) AS c FROM t GROUP BY k")
    assert numbers.final(counts.flat_aggregate(udtaf(Top2())(col("c"))).select(col("v"))) == [(1,), (2,)]


def test_t140_a_table_aggregate_in_batch_mode_gives_final_rows(batch):
    batch.table("t", ["k", "v"], ("a", 1), ("a", 9), ("a", 4))
    t = batch.t_env.from_path("t")
    query = t.group_by(t.k).flat_aggregate(udtaf(Top2())(t.v)).select(col("k"), col("v"))
    assert batch.rows(query) == [("a", 9), ("a", 4)]


def test_methods_reject_functions_of_another_kind(numbers):
    t = numbers.t_env.from_path("t")
    with pytest.raises(ValidationException, match=r"map\(\) takes a scalar function, but 'words' is a table function"):
        t.map(words)
    with pytest.raises(ValidationException, match="is a table function and not allowed here"):
        t.select(words(t.k))
    with pytest.raises(ValidationException, match="user-defined table function"):
        t.flat_map(col("k"))
