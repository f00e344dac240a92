"""Avro records in Parquet files: unions are structs of members, fields that are always null have no column."""

import io
import json
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.common import Row
from penstock.common.errors import RecordFormatError
from penstock.datastream.formats.avro import AvroSchema
from penstock.datastream.formats.parquet import AvroParquetReaders, AvroParquetWriters

SIZES = {"type": "record", "name": "Size", "fields": [{"name": "w", "type": ["int", "string"]}]}


def schema_of(**fields):
    parts = [{"name": name, "type": kind} for name, kind in fields.items()]
    return AvroSchema.parse_string(json.dumps({"type": "record", "name": "test", "fields": parts}))


def round_trip(schema, records, tmp_path):
    factory = pickle.loads(pickle.dumps(AvroParquetWriters.for_generic_record(schema)))
    stream = io.BytesIO()
    writer = factory.create(stream)
    for record in records:
        writer.add_element(record)
    writer.finish()
    path = tmp_path / "records.parquet"
    path.write_bytes(stream.getvalue())
    reader = pickle.loads(pickle.dumps(AvroParquetReaders.for_generic_record(schema)))
    found = [record for batch in reader.read(str(path), 0, len(records)) for record in batch]
    return found, pq.read_schema(path)


def test_a_union_is_a_struct_with_a_member_for_each_type(tmp_path):
    records = [{"value": 1}, {"value": 2.5}, {"value": None}]
    found, columns = round_trip(schema_of(value=["int", "double", "null"]), records, tmp_path)
    assert found == records
    assert columns.field("value").type == pa.struct([("member0", pa.int32()), ("member1", pa.float64())])


def test_a_field_that_is_always_null_has_no_column_and_is_read_as_none(tmp_path):
    records = [{"nothing": None, "number": 1}]
    found, columns = round_trip(schema_of(nothing="null", number="int"), records, tmp_path)
    assert found == records
    assert columns.names == ["number"]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ({"type": "array", "items": ["int", "string"]}, [1, "a"]),
        ({"type": "map", "values": ["int", "string"]}, {"x": 1, "y": "a"}),
        (SIZES, {"w": "wide"}),
        (["null", SIZES], {"w": 3}),
        ([SIZES, "string"], {"w": 3}),
        ([SIZES, "string"], "none"),
    ],
)
def test_unions_are_found_at_any_depth(kind, value, tmp_path):
    found, _ = round_trip(schema_of(part=kind), [{"part": value}], tmp_path)
    assert found == [{"part": value}]


def test_rows_and_tuples_are_written_as_records_with_unions(tmp_path):
    schema = schema_of(value=["int", "string"], number="int")
    found, _ = round_trip(schema, [Row(value="a", number=1), (2, 3)], tmp_path)
    assert found == [{"value": "a", "number": 1}, {"value": 2, "number": 3}]


def test_a_value_of_none_of_the_types_of_a_union_is_rejected(tmp_path):
    with pytest.raises(RecordFormatError, match="does not fit any type of its union"):
        round_trip(schema_of(value=["int", "string"]), [{"value": [1]}], tmp_path)
