"""Values and messages that formats are seldom given, and must keep or refuse all the same."""

import csv
import json
import time
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from penstock.common import Row, Types
from penstock.common.errors import RecordFormatError
from penstock.common.time import Instant
from penstock.core.table.type_information import as_row_type
from penstock.core.table.types import DataTypes
from penstock.formats.avro import (
    AvroBulkWriters,
    AvroReaderFormat,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
)
from penstock.formats.csv import (
    CsvBulkWriters,
    CsvReaderFormat,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
)
from penstock.formats.json import (
    JsonLinesEncoder,
    JsonReaderFormat,
    JsonRowDeserializationSchema,
    JsonRowSerializationSchema,
)
from penstock.formats.orc import OrcBulkWriters, OrcColumnarRowInputFormat
from penstock.formats.parquet import (
    AvroParquetReaders,
    AvroParquetWriters,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)


def written_and_read(path, factory, file_format, records):
    with path.open("wb") as stream:
        writer = factory.create(stream)
        for record in records:
            writer.add_element(record)
        writer.finish()
    return read(file_format, path)


def read(file_format, path):
    length = file_format.length(str(path))
    return [record for batch in file_format.read(str(path), 0, length) for record in batch]


# -- CSV ------------------------------------------------------------------------------------------------------------

NOTES = CsvSchema.builder().add_string_column("note").add_number_column("n", Types.LONG()).set_use_header(True).build()
ODD_TEXTS = ["two\nlines", "a\r\nb", "\n", "ends with\r", 'a "quote", and a comma', "", "#"]


def test_csv_files_with_line_ends_in_fields_are_read_as_a_whole(tmp_path):
    rows = [Row(note=text, n=number) for number, text in enumerate(ODD_TEXTS)]
    file_format = CsvReaderFormat.for_schema(NOTES, multiline=True)
    assert file_format.split_units is None
    assert written_and_read(tmp_path / "f", CsvBulkWriters.for_schema(NOTES), file_format, rows) == rows


def test_a_csv_field_that_spans_lines_is_refused_with_advice_where_records_are_lines(tmp_path):
    with pytest.raises(RecordFormatError, match="multiline=True"):
        written_and_read(
            tmp_path / "f", CsvBulkWriters.for_schema(NOTES), CsvReaderFormat.for_schema(NOTES), [("two\nlines", 1)]
        )


def test_broken_lines_of_a_csv_file_that_is_read_as_a_whole_are_named_or_left_out(tmp_path):
    path = tmp_path / "f"
    path.write_text('note,n\n"a\nb",1\nc,many\nd,2\n')
    with pytest.raises(RecordFormatError, match=r"before line 5: .*field 'n'"):
        read(CsvReaderFormat.for_schema(NOTES, multiline=True), path)
    lenient = CsvReaderFormat.for_schema(NOTES, multiline=True, ignore_parse_errors=True)
    assert read(lenient, path) == [Row(note="a\nb", n=1), Row(note="d", n=2)]


def test_bytes_that_are_no_text_cost_a_csv_file_that_is_read_as_a_whole_one_row(tmp_path):
    path = tmp_path / "broken.csv"
    path.write_bytes(b"a,1\n\xff,2\n" + b"c,3\n" * 5_000)
    schema = CsvSchema.builder().add_string_column("name").add_number_column("n").build()
    with pytest.raises(RecordFormatError, match="before line 3"):
        read(CsvReaderFormat.for_schema(schema, multiline=True), path)
    found = read(CsvReaderFormat.for_schema(schema, multiline=True, ignore_parse_errors=True), path)
    assert [row.n for row in found] == [1] + [3] * 5_000


@pytest.mark.parametrize("multiline", [False, True])
def test_a_byte_order_mark_is_no_part_of_the_first_record(tmp_path, multiline):
    schema = CsvSchema.builder().add_string_column("name").add_number_column("n")
    path = tmp_path / "marked"
    path.write_bytes("\ufeffa,1\nb,2\n".encode())
    first, _ = read(CsvReaderFormat.for_schema(schema.build(), multiline=multiline), path)
    assert list(first) == ["a", 1]
    path.write_bytes("\ufeffname,n\na,1\n".encode())
    headed = CsvReaderFormat.for_schema(schema.set_use_header().build(), multiline=multiline)
    assert [list(row) for row in read(headed, path)] == [["a", 1]]
    path.write_bytes("\ufeff{}\n".encode())
    assert read(JsonReaderFormat(), path) == [{}]


def test_csv_messages_keep_line_ends_and_long_fields():
    kind = Types.ROW([Types.STRING(), Types.INT()])
    writer, reader = CsvRowSerializationSchema.Builder(kind).build(), CsvRowDeserializationSchema.Builder(kind).build()
    limit = csv.field_size_limit(131_072)
    try:
        reader = CsvRowDeserializationSchema.Builder(kind).build()
        for text in [*ODD_TEXTS, "x" * 200_000]:
            assert list(reader.deserialize(writer.serialize(Row(text, 1)))) == [text, 1]
    finally:
        csv.field_size_limit(limit)


# -- JSON -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "poison", [b'{"at": ' + b"[" * 200_000, b'{"at": "0001-01-01T00:00:00+14:00"}', b'{"at": 1e400}', b"\xff"]
)
def test_no_message_whatsoever_fails_a_job_that_ignores_broken_ones(poison, tmp_path):
    kind = Types.ROW_NAMED(["at"], [Types.SQL_TIMESTAMP()])
    assert JsonRowDeserializationSchema(kind, ignore_parse_errors=True).deserialize(poison) is None
    with pytest.raises(RecordFormatError):
        JsonRowDeserializationSchema(kind).deserialize(poison)
    (tmp_path / "f").write_bytes(poison + b'\n{"at": "2020-01-01T00:00:00"}\n')
    rows = read(JsonReaderFormat(kind, ignore_parse_errors=True), tmp_path / "f")
    assert rows == [Row(at=datetime.fromisoformat("2020-01-01T00:00:00"))]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_have_are_texts_and_come_back(number, tmp_path):
    kind = Types.ROW_NAMED(["x", "more"], [Types.DOUBLE(), Types.LIST(Types.DOUBLE())])
    message = JsonRowSerializationSchema(kind).serialize(Row(float(number), [1.5, float(number)]))
    assert json.loads(message, parse_constant=pytest.fail) == {"x": number, "more": [1.5, number]}
    row = JsonRowDeserializationSchema(kind).deserialize(message)
    assert str(row["x"]) == str(row["more"][1]) == str(float(number))
    with (tmp_path / "f").open("wb") as stream:
        JsonLinesEncoder().encode({"x": float(number)}, stream)
    assert json.loads((tmp_path / "f").read_bytes()) == {"x": number}


def test_half_of_a_surrogate_pair_that_json_may_hold_is_written_again():
    kind = Types.ROW_NAMED(["x"], [Types.STRING()])
    row = JsonRowDeserializationSchema(kind).deserialize(b'{"x": "\\ud800"}')
    assert JsonRowDeserializationSchema(kind).deserialize(JsonRowSerializationSchema(kind).serialize(row)) == row


# -- columns --------------------------------------------------------------------------------------------------------

COLUMNS = {
    "parquet": (ParquetBulkWriters.for_row_type, ParquetColumnarRowInputFormat),
    "orc": (OrcBulkWriters.for_row_type, OrcColumnarRowInputFormat),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_values_come_back_as_what_they_were_declared_to_be(name, tmp_path):
    writers, reader = COLUMNS[name]
    inner = Types.ROW_NAMED(["at", "n"], [Types.INSTANT(), Types.BIG_INT()])
    kind = Types.ROW_NAMED(
        ["at", "n", "inner", "many", "by"],
        [Types.INSTANT(), Types.BIG_INT(), inner, Types.LIST(inner), Types.MAP(Types.STRING(), Types.INSTANT())],
    )
    moment = Instant(1_700_000_000, 123_456_000)
    part = Row(at=moment, n=10**20)
    rows = [
        Row(at=moment, n=-1, inner=part, many=[part, None], by={"a": moment}),
        Row(at=None, n=None, inner=None, many=[], by={}),
    ]
    found = written_and_read(tmp_path / "f", writers(kind), reader(kind), rows)
    assert found == rows
    assert type(found[0]["n"]) is int


@pytest.mark.parametrize("name", COLUMNS)
def test_rows_within_rows_need_no_names(name, tmp_path):
    writers, reader = COLUMNS[name]
    point = Types.ROW_NAMED(["x", "y"], [Types.INT(), Types.INT()])
    line = Types.ROW_NAMED(["start", "end"], [point, point])
    kind = Types.ROW_NAMED(["line", "lines"], [line, Types.LIST(line)])
    named = Row(start=Row(x=1, y=2), end=Row(x=3, y=4))
    unnamed = Row(Row(1, 2), Row(3, 4))
    records = [Row(line=named, lines=[named]), Row(unnamed, [unnamed]), (((1, 2), (3, 4)), [((1, 2), (3, 4))])]
    assert (
        written_and_read(tmp_path / "f", writers(kind), reader(kind), records) == [Row(line=named, lines=[named])] * 3
    )


def test_nanoseconds_of_other_writers_are_cut_to_microseconds(tmp_path):
    nanos = pa.timestamp("ns", "UTC")
    table = pa.table(
        {
            "at": pa.array([1_700_000_000_123_456_789, None], nanos),
            "all": pa.array([[{"at": 1_700_000_000_123_456_789}], None], pa.list_(pa.struct([("at", nanos)]))),
        }
    )
    expected = datetime(2023, 11, 14, 22, 13, 20, 123_456, tzinfo=UTC)
    pq.write_table(table, tmp_path / "parquet")
    rows = read(ParquetColumnarRowInputFormat(), tmp_path / "parquet")
    assert rows == [Row(at=expected, all=[Row(at=expected)]), Row(at=None, all=None)]
    orc.write_table(table.select(["at"]), tmp_path / "orc")
    kind = Types.ROW_NAMED(["at"], [Types.INSTANT()])
    found = read(OrcColumnarRowInputFormat(kind), tmp_path / "orc")
    assert found == [Row(at=Instant(1_700_000_000, 123_456_000)), Row(at=None)]


# -- Avro -----------------------------------------------------------------------------------------------------------

POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}
EVENT = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "what", "type": ["null", "int", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "maybe", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}, "string"]},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "where", "type": ["null", POINT]},
        {"name": "path", "type": {"type": "array", "items": "Point"}},
        {"name": "by", "type": {"type": "map", "values": ["null", "Point", "int"]}},
    ],
}
NOON = datetime(2023, 1, 1, 12, 0, tzinfo=UTC)


def event(**changes):
    fields = {
        "what": "text",
        "at": NOON,
        "maybe": None,
        "local": NOON.replace(tzinfo=None),
        "day": date(2023, 1, 1),
        "price": Decimal("1.25"),
        "where": Row(x=1),
        "path": [Row(x=2)],
        "by": {"a": Row(x=3), "b": 4, "c": None},
    }
    return Row(**{**fields, **changes})


@pytest.mark.parametrize(
    "changes",
    [{}, {"what": None, "where": None, "path": []}, {"what": 7, "maybe": NOON}, {"maybe": "unknown", "by": {}}],
)
def test_avro_messages_keep_unions_logical_types_and_records_in_records(changes):
    text = json.dumps(EVENT)
    writer, reader = AvroRowSerializationSchema(avro_schema_string=text), AvroRowDeserializationSchema(None, text)
    row = event(**changes)
    assert reader.deserialize(writer.serialize(row)) == row


def test_avro_records_in_records_may_be_rows_without_names_tuples_and_dicts(tmp_path):
    schema = AvroSchema.parse_string(json.dumps(EVENT))
    rows = [event(where=point, path=[point]) for point in (Row(x=5), Row(5), (5,), {"x": 5})]
    found = written_and_read(tmp_path / "f", AvroBulkWriters.for_generic_record(schema), AvroReaderFormat(schema), rows)
    assert [(record["where"], record["path"]) for record in found] == [({"x": 5}, [{"x": 5}])] * 4


def test_a_time_without_a_zone_is_the_same_moment_on_every_machine(monkeypatch):
    text = json.dumps(EVENT)
    writer, reader = AvroRowSerializationSchema(avro_schema_string=text), AvroRowDeserializationSchema(None, text)
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        naive = NOON.replace(tzinfo=None)
        assert reader.deserialize(writer.serialize(event(at=naive, maybe=naive))) == event(maybe=NOON)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_an_avro_record_may_contain_itself():
    node = {
        "type": "record",
        "name": "Node",
        "fields": [{"name": "value", "type": "int"}, {"name": "next", "type": ["null", "Node"]}],
    }
    text = json.dumps(node)
    writer, reader = AvroRowSerializationSchema(avro_schema_string=text), AvroRowDeserializationSchema(None, text)
    chain = Row(value=1, next=Row(value=2, next=Row(value=3, next=None)))
    assert reader.deserialize(writer.serialize(chain)) == chain


def test_a_named_avro_type_may_be_used_again_in_columns(tmp_path):
    fields = [{"name": "a", "type": ["null", POINT]}, {"name": "b", "type": {"type": "array", "items": "Point"}}]
    schema = AvroSchema({"type": "record", "name": "Two", "fields": fields})
    records = [{"a": {"x": 1}, "b": [{"x": 2}]}, {"a": None, "b": []}]
    factory, reader = AvroParquetWriters.for_generic_record(schema), AvroParquetReaders.for_generic_record(schema)
    assert written_and_read(tmp_path / "f", factory, reader, records) == records


# -- points in time ---------------------------------------------------------------------------------------------------

MOMENT = DataTypes.ROW([DataTypes.FIELD("at", DataTypes.TIMESTAMP_LTZ(3))])


@pytest.mark.parametrize(
    ("writers", "reader"),
    [(ParquetBulkWriters, ParquetColumnarRowInputFormat), (OrcBulkWriters, OrcColumnarRowInputFormat)],
)
@pytest.mark.parametrize("value", [NOON, NOON.replace(tzinfo=None), Instant.from_datetime(NOON), None])
def test_a_timestamp_with_local_time_zone_is_read_as_a_point_in_time(tmp_path, writers, reader, value):
    [row] = written_and_read(tmp_path / "f", writers.for_row_type(MOMENT), reader(MOMENT), [Row(at=value)])
    assert row == Row(at=None if value is None else NOON)


def test_a_timestamp_with_local_time_zone_may_come_from_a_column_without_zones(tmp_path):
    pq.write_table(pa.table({"at": pa.array([NOON.replace(tzinfo=None)], pa.timestamp("ms"))}), tmp_path / "f")
    assert read(ParquetColumnarRowInputFormat(MOMENT), tmp_path / "f") == [Row(at=NOON)]


@pytest.mark.parametrize("text", ["2023-01-01T12:00:00", "2023-01-01T12:00:00Z", "2023-01-01T20:00:00+08:00"])
def test_a_timestamp_with_local_time_zone_in_text_is_in_utc_unless_it_has_a_zone(text):
    schema = JsonRowDeserializationSchema.builder().type_info(as_row_type(MOMENT)).build()
    assert schema.deserialize(json.dumps({"at": text}).encode()) == Row(at=NOON)
