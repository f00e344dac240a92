"""DECIMAL(precision, scale) in files: rounded half up, NULL if it does not fit, as in Flink."""

import io
import pickle
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.common import Row
from penstock.common.typeinfo import Types
from penstock.common.typeinfo.decimal import DecimalTypeInfo
from penstock.core.table.type_information import as_type_information
from penstock.core.table.types import DataTypes
from penstock.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from penstock.datastream.formats.orc import OrcBulkWriters
from penstock.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat

ROW = DataTypes.ROW([DataTypes.FIELD("amount", DataTypes.DECIMAL(4, 1))])


def csv_schema(null=None):
    builder = CsvSchema.builder().add_number_column("amount", DataTypes.DECIMAL(4, 1))
    return (builder if null is None else builder.set_null_value(null)).build()


def written(factory, *rows):
    stream = io.BytesIO()
    writer = factory.create(stream)
    for row in rows:
        writer.add_element(row)
    writer.finish()
    return stream.getvalue()


def read_lines(schema, text, tmp_path):
    path = tmp_path / "amounts.csv"
    path.write_text(text, encoding="utf-8")
    reader = CsvReaderFormat.for_schema(schema)
    return [row["amount"] for rows in reader.read(str(path), 0, reader.length(str(path))) for row in rows]


@pytest.mark.parametrize(
    ("text", "amount"), [("1.25", "1.3"), ("-1.25", "-1.3"), ("7", "7.0"), ("999.94", "999.9"), ("999.95", None)]
)
def test_csv_rounds_a_number_to_the_declared_scale_and_reads_null_if_it_does_not_fit(text, amount, tmp_path):
    found = read_lines(csv_schema(), f"{text}\n", tmp_path)
    assert found == [None if amount is None else Decimal(amount)]


def test_csv_writes_the_declared_scale_and_the_null_literal_for_what_does_not_fit():
    rows = [Row(amount=Decimal("1.25")), Row(amount=7), Row(amount=Decimal(12345)), Row(amount=None)]
    assert written(CsvBulkWriters.for_schema(csv_schema(null="-")), *rows) == b"1.3\n7.0\n-\n-\n"


def test_parquet_columns_have_the_declared_scale():
    rows = [Row(amount=Decimal("1.25")), Row(amount=Decimal(12345)), Row(amount=None)]
    table = pq.read_table(pa.BufferReader(written(ParquetBulkWriters.for_row_type(ROW), *rows)))
    assert table.schema.field("amount").type == pa.decimal128(4, 1)
    assert table["amount"].to_pylist() == [Decimal("1.3"), None, None]


def test_orc_columns_have_the_declared_scale():
    table = pa.orc.read_table(pa.BufferReader(written(OrcBulkWriters.for_row_type(ROW), Row(amount=Decimal("1.25")))))
    assert table["amount"].to_pylist() == [Decimal("1.3")]


def test_parquet_of_another_scale_is_read_in_the_declared_one(tmp_path):
    path = tmp_path / "amounts.parquet"
    pq.write_table(pa.table({"amount": pa.array([Decimal("1.25")], pa.decimal128(20, 5))}), path)
    rows = [row for rows in ParquetColumnarRowInputFormat(ROW).read(str(path), 0, 1) for row in rows]
    assert rows == [Row(amount=Decimal("1.3"))]


def test_a_number_without_declared_digits_is_never_null_in_parquet():
    factory = ParquetBulkWriters.for_row_type(Types.ROW_NAMED(["amount"], [Types.BIG_DEC()]))
    with pytest.raises(Exception, match="fit"):
        written(factory, Row(amount=Decimal(10) ** 37))


def test_a_declared_decimal_prints_its_digits_and_survives_pickling():
    kind = as_type_information(DataTypes.DECIMAL(4, 1))
    assert repr(kind) == "Decimal(4,1)"
    assert pickle.loads(pickle.dumps(kind)) == kind == DecimalTypeInfo(4, 1)
    assert kind != DecimalTypeInfo(4, 2)
    assert kind.to_ddl() == "decimal(4,1)"
