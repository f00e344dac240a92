"""Schemas and file formats: what is written is read again, and what cannot be read is named, skipped or put aside."""

import io
import json
import pickle
from datetime import date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Instant, Row, Types
from penstock.common.errors import InvalidProgramError, PenstockError, RecordFormatError
from penstock.common.serialization import SimpleStringSchema
from penstock.connectors.file_system import FileSource
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.formats import DeadLetter, decode
from penstock.formats import avro as avro_module
from penstock.formats.avro import (
    AvroBulkWriters,
    AvroInputFormat,
    AvroReaderFormat,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
    GenericRecordAvroTypeInfo,
)
from penstock.formats.csv import (
    CsvBulkWriters,
    CsvReaderFormat,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
)
from penstock.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from penstock.formats.orc import OrcBulkWriters, OrcColumnarRowInputFormat
from penstock.formats.parquet import (
    AvroParquetReaders,
    AvroParquetWriters,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)
from penstock.testing import MiniCluster

EVERYTHING = Types.ROW_NAMED(
    ["text", "flag", "small", "big", "real", "exact", "day", "clock", "moment", "instant", "raw", "many", "by", "in_"],
    [
        Types.STRING(),
        Types.BOOLEAN(),
        Types.SHORT(),
        Types.LONG(),
        Types.DOUBLE(),
        Types.BIG_DEC(),
        Types.SQL_DATE(),
        Types.SQL_TIME(),
        Types.SQL_TIMESTAMP(),
        Types.INSTANT(),
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
        Types.LIST(Types.INT()),
        Types.MAP(Types.STRING(), Types.DOUBLE()),
        Types.ROW_NAMED(["x"], [Types.INT()]),
    ],
)
FULL = EVERYTHING.from_internal_type
VALUES = [
    'ä, "quoted"',
    True,
    -3,
    2**62,
    0.1,
    Decimal("12.340000000000000000"),
    date(2018, 7, 22),
    time(17, 0, 1),
    datetime.fromisoformat("2018-07-22T17:00:01"),
    Instant.of_epoch_milli(1_532_278_800_123),
    b"\x00\xff",
    [1, 2],
    {"a": 0.5},
    Row(x=7),
]


def everything():
    row = Row(*VALUES)
    row.set_field_names(EVERYTHING.get_field_names())
    return row


def nothing():
    row = Row(*[None] * len(VALUES))
    row.set_field_names(EVERYTHING.get_field_names())
    return row


def json_reader(kind=EVERYTHING):
    return JsonRowDeserializationSchema.builder().type_info(kind)


# -- JSON -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [everything(), nothing()], ids=["values", "nulls"])
def test_json_keeps_values_of_every_type(row):
    writer = pickle.loads(pickle.dumps(JsonRowSerializationSchema.builder().with_type_info(EVERYTHING).build()))
    reader = pickle.loads(pickle.dumps(json_reader().build()))
    message = writer.serialize(row)
    assert json.loads(message).keys() == set(EVERYTHING.get_field_names())
    assert reader.deserialize(message) == row
    assert reader.get_produced_type() == EVERYTHING
    assert EVERYTHING.validate(reader.deserialize(message)) is None


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"{", "Expecting"),
        (b"[1]", "expected an object"),
        (b'{"a": "x"}', "field 'a'"),
        (b'{"a": 1.5}', "expected an integer"),
        (b'{"a": true}', "expected an integer"),
        (b"\xff", "utf-8"),
    ],
)
def test_a_message_that_is_not_the_json_of_the_type_is_named_with_the_reason(message, reason):
    kind = Types.ROW_NAMED(["a"], [Types.INT()])
    with pytest.raises(RecordFormatError, match=reason) as caught:
        json_reader(kind).build().deserialize(message)
    assert caught.value.message is not None
    assert json_reader(kind).ignore_parse_errors().build().deserialize(message) is None


def test_missing_json_fields_are_none_or_refused():
    kind = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])
    assert json_reader(kind).build().deserialize(b'{"a": 1}') == Row(a=1, b=None)
    with pytest.raises(RecordFormatError, match="'b' is missing"):
        json_reader(kind).fail_on_missing_field().build().deserialize(b'{"a": 1}')
    with pytest.raises(InvalidProgramError, match="exclude"):
        json_reader(kind).fail_on_missing_field().ignore_parse_errors().build()


def test_a_json_schema_describes_the_rows():
    schema = {
        "type": "object",
        "definitions": {"point": {"type": "object", "properties": {"x": {"type": "number"}}}},
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": ["string", "null"]},
            "when": {"type": "string", "format": "date-time"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "at": {"$ref": "#/definitions/point"},
            "ok": {"type": "boolean"},
        },
    }
    reader = JsonRowDeserializationSchema.builder().json_schema(json.dumps(schema)).build()
    message = b'{"id": 1, "name": null, "when": "2018-07-22T17:00:00Z", "tags": ["a"], "at": {"x": 1.5}, "ok": true}'
    row = reader.deserialize(message)
    assert (row.id, row.when, row.tags, row.at.x, row.ok) == (
        1,
        datetime.fromisoformat("2018-07-22T17:00:00"),
        ["a"],
        Decimal("1.5"),
        True,
    )
    for broken in ("{", '{"type": "string"}', '{"type": "object", "properties": {"a": {"$ref": "#/no"}}}'):
        with pytest.raises(InvalidProgramError, match="JSON schema"):
            JsonRowDeserializationSchema.builder().json_schema(broken)


def test_schemas_without_a_type_are_refused():
    for build in (JsonRowDeserializationSchema.builder().build, JsonRowSerializationSchema.builder().build):
        with pytest.raises(InvalidProgramError, match="needs"):
            build()
    with pytest.raises(InvalidProgramError, match="ROW_NAMED"):
        json_reader(Types.INT())
    with pytest.raises(InvalidProgramError, match="ROW_NAMED"):
        CsvRowSerializationSchema.Builder(Types.INT())


# -- CSV --------------------------------------------------------------------------------------------------------------

CSV = Types.ROW_NAMED(
    ["s", "n", "d", "flags"], [Types.STRING(), Types.INT(), Types.SQL_DATE(), Types.BASIC_ARRAY(Types.BOOLEAN())]
)


@given(st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"])), st.integers(-(2**31), 2**31 - 1))
@settings(max_examples=100)
def test_csv_keeps_any_text(text, number):
    row = Row(s=text, n=number, d=date(2020, 2, 29), flags=[True, False])
    writer = CsvRowSerializationSchema.Builder(CSV).set_null_literal("NULL").build()
    reader = CsvRowDeserializationSchema.Builder(CSV).set_null_literal("NULL").build()
    if text != "NULL":
        assert reader.deserialize(writer.serialize(row)) == row


def test_the_csv_dialect_is_the_users_choice():
    writer = CsvRowSerializationSchema.Builder(CSV).set_field_delimiter("|").set_quote_character("'")
    writer.set_escape_character("\\").set_line_delimiter("\r\n").set_null_literal("-").set_array_element_delimiter("+")
    message = writer.build().serialize(("a|b", None, None, [True, True]))
    assert message == b"'a|b'|-|-|'true+true'\r\n"
    reader = CsvRowDeserializationSchema.Builder(CSV).set_field_delimiter("|").set_quote_character("'")
    reader.set_escape_character("\\").set_null_literal("-").set_array_element_delimiter("+").set_allow_comments(True)
    assert reader.build().deserialize(message) == Row(s="a|b", n=None, d=None, flags=[True, True])
    assert reader.build().deserialize(b"# nothing") is None
    plain = CsvRowSerializationSchema.Builder(Types.ROW([Types.STRING()])).disable_quote_character().build()
    assert plain.serialize(('"',)) == b'"\n'


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"a,1", "expected 4 fields, got 2"),
        (b"a,x,2020-01-01,true", "field 'n'"),
        (b'"a,1,2020-01-01,true', "unexpected end"),
    ],
)
def test_a_broken_csv_line_is_named_or_skipped(message, reason):
    with pytest.raises(RecordFormatError, match=reason):
        CsvRowDeserializationSchema.Builder(CSV).build().deserialize(message)
    assert CsvRowDeserializationSchema.Builder(CSV).set_ignore_parse_errors(True).build().deserialize(message) is None


def test_csv_schemas_are_built_column_by_column():
    other = CsvSchema.builder().add_array_column("e", "+", Types.INT()).add_boolean_column("f").build()
    builder = CsvSchema.builder().add_number_column("gone").clear_columns().add_columns_from(other)
    builder.add_number_column("n", Types.DOUBLE()).set_column_separator(";").set_quote_char("'").set_escape_char("\\")
    builder.set_line_separator("\r\n").set_null_value("?").set_allow_comments().set_array_element_separator("+")
    assert (builder.size(), len(builder.build())) == (3, 3)
    assert list(builder.build()) == ["e", "f", "n"]
    builder.disable_quote_char().disable_escape_char().disable_array_element_separator()
    for wrong in (
        lambda: builder.add_string_column("n"),
        lambda: builder.set_column_separator("::"),
        lambda: CsvSchema.builder().build(),
        lambda: builder.set_any_property_name("rest"),
    ):
        with pytest.raises(InvalidProgramError):
            wrong()


# -- files ------------------------------------------------------------------------------------------------------------


def write_file(path, factory, records):
    with path.open("wb") as stream:
        writer = factory.create(stream)
        for record in records:
            writer.add_element(record)
        writer.finish()
    return str(path)


def read_file(file_format, path, step):
    found, offset, end = [], 0, file_format.length(path)
    while offset < end:
        until = file_format.advance(path, offset, end, step)
        assert offset < until <= end
        for records in file_format.read(path, offset, until):
            found += records
        offset = until
    return found


PEOPLE = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])
PERSON = AvroSchema.parse_string(
    json.dumps(
        {
            "type": "record",
            "name": "Person",
            "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"], "default": None}],
        }
    )
)


@pytest.mark.parametrize("step", [1, 700, 10_000])
@pytest.mark.parametrize("name", ["parquet", "orc", "avro", "avro parquet", "csv"])
def test_files_are_read_completely_in_any_steps(tmp_path, name, step, monkeypatch):
    from penstock.formats import orc, parquet

    monkeypatch.setattr(parquet, "_ROWS_PER_GROUP", 400)
    monkeypatch.setattr(orc, "_ROWS_AT_ONCE", 400)
    monkeypatch.setattr(avro_module, "_RECORDS_PER_BLOCK", 100)
    monkeypatch.setattr(avro_module, "_BYTES_PER_RECORD", 1)
    header = (
        CsvSchema.builder().add_number_column("id", Types.LONG()).add_string_column("name").set_use_header().build()
    )
    factory, file_format = {
        "parquet": (ParquetBulkWriters.for_row_type(PEOPLE), ParquetColumnarRowInputFormat(PEOPLE)),
        "orc": (OrcBulkWriters.for_row_type(PEOPLE), OrcColumnarRowInputFormat(PEOPLE)),
        "avro": (AvroBulkWriters.for_generic_record(PERSON), AvroReaderFormat()),
        "avro parquet": (AvroParquetWriters.for_generic_record(PERSON), AvroParquetReaders.for_generic_record(PERSON)),
        "csv": (CsvBulkWriters.for_schema(header), CsvReaderFormat.for_schema(header)),
    }[name]
    count = 1_000 if step > 1 else 30
    people = [(number, None if number % 7 == 0 and name != "csv" else f"name {number}") for number in range(count)]
    records = people if "avro" not in name else [{"id": number, "name": text} for number, text in people]
    path = write_file(tmp_path / "file", pickle.loads(pickle.dumps(factory)), records)
    found = read_file(pickle.loads(pickle.dumps(file_format)), path, step)
    assert [(row["id"], row["name"]) for row in found] == people


@pytest.mark.parametrize("name", ["parquet", "orc"])
def test_columns_keep_values_of_every_type(tmp_path, name):
    kinds = dict(zip(EVERYTHING.get_field_names(), EVERYTHING.get_field_types(), strict=True))
    if name == "orc":
        del kinds["clock"]  # ORC has no time of day
    kind = Types.ROW_NAMED(list(kinds), list(kinds.values()))
    row = Row(**{field: everything()[field] for field in kinds})
    empty = Row(**dict.fromkeys(kinds))
    writers, reader = {
        "parquet": (ParquetBulkWriters.for_row_type(kind), ParquetColumnarRowInputFormat()),
        "orc": (OrcBulkWriters.for_row_type(kind), OrcColumnarRowInputFormat()),
    }[name]
    path = write_file(tmp_path / "file", writers, [row, empty])
    first, second = read_file(reader, path, 10)
    assert second == empty
    first["instant"] = Instant.from_datetime(first["instant"])
    assert first == row


def test_only_the_columns_of_the_type_are_read_and_missing_ones_are_named(tmp_path):
    path = write_file(tmp_path / "f", ParquetBulkWriters.for_row_type(PEOPLE), [(1, "a")])
    names = Types.ROW_NAMED(["name"], [Types.STRING()])
    assert read_file(ParquetColumnarRowInputFormat(names), path, 5) == [Row(name="a")]
    other = ParquetColumnarRowInputFormat(Types.ROW_NAMED(["age"], [Types.INT()]))
    with pytest.raises(RecordFormatError, match="no column 'age', its columns are id, name"):
        read_file(other, path, 5)


def test_empty_files_and_broken_files(tmp_path):
    for name, factory, reader in (
        ("parquet", ParquetBulkWriters.for_row_type(PEOPLE), ParquetColumnarRowInputFormat()),
        ("orc", OrcBulkWriters.for_row_type(PEOPLE), OrcColumnarRowInputFormat()),
        ("avro", AvroBulkWriters.for_generic_record(PERSON), AvroReaderFormat()),
    ):
        assert read_file(reader, write_file(tmp_path / name, factory, []), 5) == []
        broken = tmp_path / f"{name}.broken"
        broken.write_bytes(b"certainly not one of these")
        with pytest.raises(RecordFormatError, match=r"broken is no"):
            read_file(reader, str(broken), 5)


def test_parquet_ranges_end_with_row_groups_where_they_can(tmp_path):
    path = str(tmp_path / "groups")
    table = pa.table({"n": list(range(100))})
    pq.write_table(table, path, row_group_size=30)
    reader = ParquetColumnarRowInputFormat()
    assert [reader.advance(path, start, 100, 70) for start in (0, 60, 90)] == [60, 100, 100]
    assert reader.advance(path, 0, 100, 7) == 7


def test_avro_messages_and_schemas():
    text = json.dumps(PERSON.definition)
    writer, reader = (
        AvroRowSerializationSchema(avro_schema_string=text),
        AvroRowDeserializationSchema(avro_schema_string=text),
    )
    for value in ((1, "a"), Row(id=1, name="a"), {"id": 1, "name": "a"}):
        assert reader.deserialize(pickle.loads(pickle.dumps(writer)).serialize(value)) == Row(id=1, name="a")
    message = writer.serialize((1, None))
    framed = AvroRowDeserializationSchema(avro_schema_string=text, framed=True)
    assert framed.deserialize(b"\0\0\0\0\7" + message) == Row(id=1, name=None)
    for broken, schema in ((b"", reader), (message + b"x", reader), (b"\7\0\0\0\0", framed)):
        with pytest.raises(RecordFormatError):
            schema.deserialize(broken)
    with pytest.raises(RecordFormatError, match="Person"):
        writer.serialize(("one", "a"))
    for wrong in (
        '{"type": "string"}',
        "{",
        '{"type": "record", "name": "X", "fields": [{"name": "a", "type": "no"}]}',
    ):
        with pytest.raises(InvalidProgramError, match="Avro"):
            AvroSchema.parse_string(wrong)
    with pytest.raises(InvalidProgramError, match="avro_schema_string"):
        AvroRowSerializationSchema("com.example.Person")


def test_avro_files_are_read_with_a_newer_schema_and_by_create_input(tmp_path):
    path = write_file(tmp_path / "people.avro", AvroBulkWriters.for_generic_record(PERSON, "null"), [(1, "a")])
    (tmp_path / "person.avsc").write_text(
        json.dumps(
            {
                "type": "record",
                "name": "Person",
                "fields": [{"name": "id", "type": "long"}, {"name": "age", "type": "int", "default": -1}],
            }
        )
    )
    newer = AvroSchema.parse_file(tmp_path / "person.avsc")
    env = StreamExecutionEnvironment(executor=MiniCluster())
    source = AvroInputFormat(path, newer)
    assert isinstance(source.get_produced_type(), GenericRecordAvroTypeInfo)
    assert list(env.create_input(source).execute_and_collect()) == [{"id": 1, "age": -1}]
    assert FileSource.for_record_stream_format(AvroReaderFormat(), path).build().is_bounded


# -- poison records ---------------------------------------------------------------------------------------------------


@pytest.fixture
def messages():
    env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(2)
    return env.from_collection([b'{"a": 1}', "poison", b"{}", b'{"a": "x"}', '{"a": 2}'])


NUMBER = Types.ROW_NAMED(["a"], [Types.INT()])


def test_a_poison_record_fails_the_job_and_is_named(messages):
    with pytest.raises(PenstockError, match=r"Decode[\s\S]*poison"):
        list(decode(messages, json_reader(NUMBER).build()).execute_and_collect())


def test_poison_records_are_skipped_and_counted(messages):
    env = messages.get_execution_environment()
    decode(messages, json_reader(NUMBER).build(), on_error="skip").print()
    result = env.execute()
    counted = {name: value for name, value in result.get_all_accumulator_results().items() if "Skipped" in name}
    assert list(counted.values()) == [2]


def test_poison_records_go_to_a_side_output_as_they_were(messages):
    dead = OutputTag("dead letters")
    rows = decode(messages, json_reader(NUMBER).build(), on_error=dead)
    letters = list(rows.get_side_output(dead).execute_and_collect())
    assert [letter.message for letter in letters] == ["poison", b'{"a": "x"}']
    assert all(isinstance(letter, DeadLetter) and "JSON" in letter.error for letter in letters)
    assert [row.a for row in rows.execute_and_collect()] == [1, None, 2]


@pytest.mark.parametrize("number", ["3000000000", "-2147483649", "1_000", "\u0661", "1" * 40])
@pytest.mark.parametrize("kind", ["json", "json text", "csv"])
def test_a_number_that_does_not_fit_its_type_is_poison_as_any_other(number, kind):
    """What only the check of the declared type refuses fails the job, whatever its user has chosen."""
    row_type = Types.ROW_NAMED(["n"], [Types.INT()])
    if kind == "csv":
        schema = CsvRowDeserializationSchema.Builder(row_type).build()
        messages = ["1", number]
    else:
        schema = JsonRowDeserializationSchema.builder().type_info(row_type).build()
        messages = ['{"n": 1}', f'{{"n": "{number}"}}' if kind == "json text" else f'{{"n": {number}}}']
    dead = OutputTag("dead letters")
    env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(1)
    rows = decode(env.from_collection(messages), schema, on_error=dead)
    letters = rows.get_side_output(dead).map(lambda letter: letter.message)
    found = list(rows.map(lambda row: row.n).union(letters).execute_and_collect())
    assert sorted(found, key=str) == sorted([1, messages[1]], key=str)


def test_columns_of_a_csv_file_refuse_what_single_lines_refuse(tmp_path):
    schema = CsvSchema.builder().add_number_column("n", Types.INT()).add_number_column("x", Types.DOUBLE()).build()
    path = tmp_path / "numbers.csv"
    path.write_text("1,1.5\n3000000000,1\n1_0,1\n2,1_0\n3,\u0661\n4,2\n", encoding="utf-8")
    file_format = CsvReaderFormat.for_schema(schema, ignore_parse_errors=True)
    assert [row.n for batch in file_format.read(str(path), 0, 1_000) for row in batch] == [1, 4]


def test_any_schema_can_be_decoded_with_and_wrong_choices_are_refused(messages):
    dead = OutputTag("dead")
    env = messages.get_execution_environment()
    texts = decode(env.from_collection([b"fine", b"\xff"]), SimpleStringSchema(), on_error=dead)
    (letter,) = texts.get_side_output(dead).execute_and_collect()
    assert (letter.message, letter.error.split(":")[0]) == (b"\xff", "UnicodeDecodeError")
    with pytest.raises(InvalidProgramError, match="on_error"):
        decode(messages, SimpleStringSchema(), on_error="explode")
    with pytest.raises(InvalidProgramError, match="DeserializationSchema"):
        decode(messages, "no schema")


def test_values_that_do_not_fit_columns_or_have_none_are_refused():
    with pytest.raises(InvalidProgramError, match="no column type"):
        ParquetBulkWriters.for_row_type(Types.ROW([Types.PICKLED_BYTE_ARRAY()]))
    for make in (
        ParquetBulkWriters.for_row_type,
        OrcBulkWriters.for_row_type,
        ParquetColumnarRowInputFormat,
        OrcColumnarRowInputFormat,
    ):
        with pytest.raises(InvalidProgramError, match="ROW_NAMED"):
            make("no type")
    writer = ParquetBulkWriters.for_row_type(PEOPLE).create(io.BytesIO())
    writer.add_element(("one", "a"))
    with pytest.raises(RecordFormatError, match="field 'id'"):
        writer.finish()
