"""Streams as tables and tables as streams."""

import datetime as dt

import pytest
from tests.table.conftest import Queries

from penstock.common import Types, WatermarkStrategy
from penstock.common.types import Row, RowKind
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.table import ChangelogMode, DataTypes, Schema
from penstock.table.plan.nodes.base import TimeAttribute
from penstock.util.exceptions import TableException, ValidationException

ROWS = Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.LONG()])


class _Assigner(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value.v


def _stream(t_env, *values, type_=ROWS):
    return t_env._env.from_collection(list(values), type_info=type_)


def _collected(stream):
    with stream.execute_and_collect() as rows:
        return [(str(row.get_row_kind()), *row) for row in rows]


def test_t111_columns_come_from_the_type_of_rows(t_env):
    table = t_env.from_data_stream(_stream(t_env, Row("p", 1), Row("q", 2)))
    assert table.get_schema().get_field_names() == ["k", "v"]
    assert Queries(t_env).rows(table) == [("p", 1), ("q", 2)]


def test_t111_fields_without_names_are_f0_f1(t_env):
    table = t_env.from_data_stream(_stream(t_env, Row("p", 1), type_=Types.ROW([Types.STRING(), Types.INT()])))
    assert table.get_schema().get_field_names() == ["f0", "f1"]
    single = t_env.from_data_stream(_stream(t_env, 5, type_=Types.LONG()))
    assert single.get_schema().get_field_names() == ["f0"]
    assert Queries(t_env).rows(single) == [(5,)]


def test_t111_the_time_of_a_record_is_the_metadata_column_rowtime(t_env):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_Assigner())
    stream = _stream(t_env, Row("p", 1000), Row("q", 2000)).assign_timestamps_and_watermarks(strategy)
    schema = (
        Schema.new_builder()
        .column_by_metadata("rowtime", DataTypes.TIMESTAMP_LTZ(3))
        .watermark("rowtime", "SOURCE_WATERMARK()")
        .build()
    )
    table = t_env.from_data_stream(stream, schema)
    assert Queries(t_env).rows(table) == [
        ("p", 1000, dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)),
        ("q", 2000, dt.datetime(1970, 1, 1, 0, 0, 2, tzinfo=dt.UTC)),
    ]
    assert table._relation.fields[2].time is TimeAttribute.ROWTIME


def test_t111_a_timestamp_with_local_time_zone_stays_one_on_its_way_through_a_stream(t_env):
    stream = t_env.to_data_stream(t_env.sql_query("SELECT TO_TIMESTAMP_LTZ(1000, 3) AS ts"))
    table = t_env.from_data_stream(stream)
    assert str(table.get_schema().get_field_data_type("ts")) == "TIMESTAMP_LTZ(6)"
    assert Queries(t_env).rows(table) == [(dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC),)]


def test_t110_views_are_made_of_streams(t_env):
    t_env.create_temporary_view("words", _stream(t_env, Row("p", 1)))
    assert Queries(t_env).rows("SELECT v + 1 FROM words") == [(2,)]


def test_t110_to_data_stream_takes_inserts_only(t_env):
    t_env.create_temporary_view("words", _stream(t_env, Row("p", 1)))
    stream = t_env.to_data_stream(t_env.sql_query("SELECT k, v * 2 AS w FROM words"))
    assert _collected(stream.map(lambda row: Row(row.k, row.w))) == [("+I", "p", 2)]
    with pytest.raises(TableException, match="update and delete"):
        t_env.to_data_stream(t_env.sql_query("SELECT k, COUNT(*) FROM words GROUP BY k"))


def test_t110_to_changelog_stream_sends_every_change(t_env):
    t_env.create_temporary_view("words", _stream(t_env, Row("p", 1), Row("p", 2)))
    table = t_env.sql_query("SELECT k, COUNT(*) AS c FROM words GROUP BY k")
    assert _collected(t_env.to_changelog_stream(table)) == [("+I", "p", 1), ("-U", "p", 1), ("+U", "p", 2)]
    upserts = t_env.to_changelog_stream(table, None, ChangelogMode.upsert())
    assert _collected(upserts) == [("+I", "p", 1), ("+U", "p", 2)]


def test_t112_a_changelog_stream_is_added_up(t_env):
    changes = [
        Row.of_kind(RowKind.INSERT, "p", 3),
        Row.of_kind(RowKind.UPDATE_BEFORE, "p", 3),
        Row.of_kind(RowKind.UPDATE_AFTER, "p", 5),
        Row.of_kind(RowKind.DELETE, "p", 5),
    ]
    t_env.create_temporary_view("t", t_env.from_changelog_stream(_stream(t_env, *changes)))
    assert Queries(t_env).changelog("SELECT k, SUM(v) FROM t GROUP BY k") == [
        ("+I", "p", 3),
        ("-D", "p", 3),
        ("+I", "p", 5),
        ("-D", "p", 5),
    ]


def test_t111_unknown_fields_of_a_stream_are_named(t_env):
    schema = Schema.new_builder().column("nope", DataTypes.STRING()).build()
    with pytest.raises(ValidationException, match="field named 'nope'"):
        t_env.from_data_stream(_stream(t_env, Row("p", 1)), schema)


@pytest.mark.parametrize(
    ("type_", "records"),
    [
        (Types.ROW([Types.STRING(), Types.LONG()]), [Row(f0="p", f1=1)]),
        (Types.TUPLE([Types.STRING(), Types.LONG()]), [("p", 1)]),
    ],
)
def test_t110_to_append_stream_gives_records_of_the_type(t_env, type_, records):
    table = t_env.from_data_stream(_stream(t_env, Row("p", 1)))
    with t_env.to_append_stream(table, type_).execute_and_collect() as found:
        assert list(found) == records


def test_t110_to_append_stream_of_a_single_column_gives_its_values(t_env):
    table = t_env.from_data_stream(_stream(t_env, 5, type_=Types.LONG()))
    with t_env.to_append_stream(table, Types.LONG()).execute_and_collect() as found:
        assert list(found) == [5]


def test_t110_to_retract_stream_flags_what_is_added_and_what_is_removed(t_env):
    t_env._env.set_parallelism(1)
    t_env.create_temporary_view("words", _stream(t_env, Row("p", 1), Row("p", 2)))
    table = t_env.sql_query("SELECT k, SUM(v) AS total FROM words GROUP BY k")
    with t_env.to_retract_stream(table, Types.TUPLE([Types.STRING(), Types.LONG()])).execute_and_collect() as found:
        assert list(found) == [(True, ("p", 1)), (False, ("p", 1)), (True, ("p", 3))]


def test_t112_upserts_of_a_stream_get_the_rows_that_they_replace(t_env):
    rows = [
        Row.of_kind(RowKind.INSERT, "k", 4),
        Row.of_kind(RowKind.UPDATE_AFTER, "k", 9),
        Row.of_kind(RowKind.DELETE, "k", 9),
    ]
    stream = _stream(t_env, *rows)
    schema = Schema.new_builder().column("k", "STRING NOT NULL").column("v", "BIGINT").primary_key("k").build()
    table = t_env.from_changelog_stream(stream, schema, ChangelogMode.upsert())
    t_env.create_temporary_view("t", table)
    changes = Queries(t_env).changelog("SELECT k, v FROM t")
    assert changes == [("+I", "k", 4), ("-U", "k", 4), ("+U", "k", 9), ("-D", "k", 9)]
    assert Queries(t_env).final("SELECT SUM(v) FROM t") == []
    with pytest.raises(ValidationException, match="needs a key"):
        t_env.from_changelog_stream(stream, None, ChangelogMode.upsert())
