"""Values of every kind on their way from DataFrames to records and back."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.common import Row
from penstock.common.errors import TypeMismatchError
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.runtime.source.frame_source import rows_of
from penstock.spark.interop import to_record_batch

SCHEMA = (
    "id bigint, amount decimal(10,2), at timestamp, local timestamp_ntz, tags array<string>, counts map<string,int>, "
    "place struct<x:int,names:array<struct<text:string>>>, day date, raw binary, ratio float, empty string"
)
AT = datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
FULL = Row(
    id=1,
    amount=Decimal("1.50"),
    at=AT,
    local=AT.replace(tzinfo=None),
    tags=["x", None],
    counts={"k": 1, "l": None},
    place=Row(x=1, names=[Row(text="a"), None]),
    day=date(2020, 1, 1),
    raw=b"\x00\x01",
    ratio=1.5,
    empty=None,
)
NOTHING = Row(id=2, **dict.fromkeys(FULL.get_field_names()[1:]))


@pytest.mark.spark
@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_values_of_every_kind_come_back_as_they_were(spark, mode, tmp_path):
    def env():
        return StreamExecutionEnvironment(spark=spark).set_parallelism(1).set_runtime_mode(mode)

    frame = env().from_collection([FULL, NOTHING]).to_dataframe(SCHEMA)
    if frame.isStreaming:
        options = {"checkpointLocation": str(tmp_path / "checkpoint"), "path": str(tmp_path / "out")}
        query = frame.writeStream.format("parquet").options(**options).start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        frame = spark.read.parquet(str(tmp_path / "out"))
    assert sorted(env().from_dataframe(frame).execute_and_collect(), key=lambda row: row.id) == [FULL, NOTHING]


def batch_of(value, kind):
    return to_record_batch([(value,)], pa.schema([("value", kind)])).column(0)[0].as_py()


def test_a_time_without_a_zone_is_one_of_the_session():
    in_berlin = pa.timestamp("us", tz="Europe/Berlin")
    winter = datetime(2020, 1, 1, 12, tzinfo=UTC).replace(tzinfo=None)
    assert batch_of(winter, in_berlin) == datetime(2020, 1, 1, 11, tzinfo=UTC)
    assert batch_of(winter.replace(tzinfo=timezone(timedelta(hours=5))), in_berlin) == datetime(
        2020, 1, 1, 7, tzinfo=UTC
    )
    assert batch_of([winter], pa.list_(in_berlin)) == [datetime(2020, 1, 1, 11, tzinfo=UTC)]
    assert batch_of(winter, pa.timestamp("us")) == winter


@pytest.mark.parametrize(
    ("zone", "hours"), [("Z", 0), ("+01:00", 1), ("-05:30", -5.5), ("GMT+8", 8), ("UTC-03:00", -3), ("GMT", 0)]
)
def test_the_zone_of_the_session_may_be_an_offset(zone, hours):
    noon = datetime(2020, 1, 1, 12, tzinfo=UTC)
    column = to_record_batch([(noon.replace(tzinfo=None),)], pa.schema([("at", pa.timestamp("us", tz=zone))])).column(0)
    assert column.cast(pa.int64())[0].as_py() == (noon - timedelta(hours=hours)).timestamp() * 1_000_000


@pytest.mark.parametrize("value", [(1, "a"), Row(1, "a"), Row(b="a", a=1), {"b": "a", "a": 1}])
def test_a_struct_is_made_of_whatever_has_fields(value):
    assert batch_of(value, pa.struct([("a", pa.int32()), ("b", pa.string())])) == {"a": 1, "b": "a"}


def test_structs_are_rows_and_maps_are_dicts_also_inside_each_other():
    place = pa.struct([("x", pa.int32())])
    kind = pa.map_(pa.string(), pa.list_(place))
    batch = pa.RecordBatch.from_arrays([pa.array([[("k", [{"x": 1}, None])], None], kind)], names=["m"])
    assert rows_of(batch) == [Row(m={"k": [Row(x=1), None]}), Row(m=None)]
    assert rows_of(batch)[0].m["k"][0].x == 1


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (("x", 1, 2), r"record \('x', 1, 2\) has 3 fields, but there are 2 columns: a, b"),
        (("x", "y"), r"does not fit the DataFrame's schema .*'y'.*one of \[\('x', 'y'\)\]"),
        (("x", 2**40), r"does not fit the DataFrame's schema .*1099511627776"),
    ],
)
def test_a_record_that_does_not_fit_is_named(record, message):
    with pytest.raises(TypeMismatchError, match=message):
        to_record_batch([record], pa.schema([("a", pa.string()), ("b", pa.int32())]))
