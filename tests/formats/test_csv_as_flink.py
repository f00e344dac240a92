"""CSV lines and files as Flink writes and reads them."""

import io

import pytest

from penstock.common import Row, Types
from penstock.common.errors import RecordFormatError
from penstock.formats.csv import (
    CsvBulkWriters,
    CsvReaderFormat,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
)


def written(schema, *rows):
    stream = io.BytesIO()
    writer = CsvBulkWriters.for_schema(schema).create(stream)
    for row in rows:
        writer.add_element(row)
    writer.finish()
    return stream.getvalue().decode()


def read(schema, path):
    file_format = CsvReaderFormat.for_schema(schema)
    length = file_format.length(str(path))
    return [record for batch in file_format.read(str(path), 0, length) for record in batch]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (Types.FLOAT(), 3e38, "3.0E38"),
        (Types.FLOAT(), 0.1, "0.1"),
        (Types.DOUBLE(), 2e-308, "2.0E-308"),
        (Types.DOUBLE(), 1, "1.0"),
        (Types.DOUBLE(), 12345678.9, "1.23456789E7"),
    ],
)
def test_numbers_are_written_as_java_writes_them(kind, value, text):
    schema = CsvRowSerializationSchema.Builder(Types.ROW([kind])).build()
    assert schema.serialize((value,)) == f"{text}\n".encode()


@pytest.mark.parametrize(
    ("separator", "text", "field"),
    [
        (",", "plain", "plain"),
        (",", "two words", '"two words"'),
        (",", "a" * 24, "a" * 24),
        (",", "a" * 25, '"' + "a" * 25 + '"'),
        ("|", "plain", '"plain"'),
        ("|", "~", "~"),
        (",", 'say "yes"', '"say ""yes"""'),
    ],
)
def test_a_text_is_quoted_if_a_character_of_it_is_no_greater_than_the_special_ones(separator, text, field):
    schema = CsvSchema.builder().add_string_column("text").set_column_separator(separator).build()
    assert written(schema, (text,)) == f"{field}\n"


def test_an_escape_character_in_a_text_is_doubled_and_so_is_a_quote():
    builder = CsvRowSerializationSchema.Builder(Types.ROW([Types.STRING(), Types.STRING(), Types.STRING()]))
    builder.set_escape_character("*").set_quote_character("'").set_field_delimiter(";")
    line = b"'123''4**';'a;b''c';END\n"
    assert builder.build().serialize(("123'4*", "a;b'c", "END")) == line
    reader = CsvRowDeserializationSchema.Builder(Types.ROW([Types.STRING(), Types.STRING(), Types.STRING()]))
    reader.set_escape_character("*").set_quote_character("'").set_field_delimiter(";")
    assert list(reader.build().deserialize(line)) == ["123'4*", "a;b'c", "END"]


def test_a_row_in_a_row_is_written_with_the_separator_of_arrays():
    inner = Types.ROW([Types.STRING(), Types.INT()])
    outer = Types.ROW_NAMED(["pair", "n"], [inner, Types.INT()])
    writer = CsvRowSerializationSchema.Builder(outer).set_array_element_delimiter(":").build()
    reader = CsvRowDeserializationSchema.Builder(outer).set_array_element_delimiter(":").build()
    assert writer.serialize((("a", 1), 2)) == b"a:1,2\n"
    assert reader.deserialize(b"a:1,2") == Row(pair=Row(f0="a", f1=1), n=2)


def test_every_array_column_has_its_own_separator(tmp_path):
    schema = (
        CsvSchema.builder()
        .add_array_column("numbers", ";", Types.INT())
        .add_array_column("flags", ":", Types.BOOLEAN())
        .add_array_column("texts", ",")
        .set_column_separator("|")
        .disable_quote_char()
        .build()
    )
    path = tmp_path / "arrays.csv"
    path.write_text("1;2;3|true:false|a,b,c\n")
    (row,) = read(schema, path)
    assert row.as_dict() == {"numbers": [1, 2, 3], "flags": [True, False], "texts": ["a", "b", "c"]}
    assert written(schema, row) == path.read_text()
    copied = CsvSchema.builder().add_columns_from(schema).set_column_separator("|").disable_quote_char().build()
    assert read(copied, path) == [row]


NAMES = CsvSchema.builder().add_string_column("name").add_number_column("age", Types.INT()).set_use_header()


def test_a_header_with_other_names_is_skipped(tmp_path):
    (tmp_path / "f").write_text("h1,h2\nAda,36\n")
    assert read(NAMES.build(), tmp_path / "f") == [Row(name="Ada", age=36)]


def test_a_header_that_names_some_columns_in_other_places_is_refused(tmp_path):
    (tmp_path / "f").write_text("years,name\n36,Ada\n")
    with pytest.raises(RecordFormatError, match="the header has the columns years, name, expected name, age"):
        read(NAMES.build(), tmp_path / "f")


def test_columns_take_sqls_data_types():
    from penstock.table import DataTypes

    builder = CsvSchema.builder().add_number_column("n", number_type=DataTypes.TINYINT())
    schema = builder.add_array_column("many", element_type=DataTypes.INT()).build()
    assert schema.row_type == Types.ROW_NAMED(["n", "many"], [Types.BYTE(), Types.BASIC_ARRAY(Types.INT())])
