"""Typed rows as Avro records."""

import json

import pytest

from penstock.common import Row, Types
from penstock.common.errors import RecordFormatError
from penstock.datastream import StreamExecutionEnvironment
from penstock.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from penstock.testing import MiniCluster

pytest.importorskip("fastavro")

INNER = {"type": "record", "name": "inner", "fields": [{"name": "a", "type": "int"}]}


def through_avro(row_type, row, **fields):
    """What a message holds that was made of a row of a typed stream."""
    schema = json.dumps(
        {"type": "record", "name": "outer", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}
    )
    env = StreamExecutionEnvironment(executor=MiniCluster())
    (typed,) = env.from_collection([row], type_info=row_type).execute_and_collect()
    message = AvroRowSerializationSchema(avro_schema_string=schema).serialize(typed)
    return AvroRowDeserializationSchema(avro_schema_string=schema).deserialize(message)


def test_fields_without_names_are_written_by_position():
    row_type = Types.ROW([Types.INT(), Types.STRING()])
    assert through_avro(row_type, Row(1, "a"), id="int", name="string") == Row(id=1, name="a")


def test_fields_with_the_names_of_the_schema_are_written_by_name():
    row_type = Types.ROW_NAMED(["name", "id"], [Types.STRING(), Types.INT()])
    assert through_avro(row_type, Row("a", 1), id="int", name="string") == Row(id=1, name="a")


def test_fields_with_names_of_the_schema_in_other_places_are_refused():
    row_type = Types.ROW_NAMED(["name", "number"], [Types.STRING(), Types.INT()])
    with pytest.raises(RecordFormatError, match="the row has the fields name, number, expected id, name"):
        through_avro(row_type, Row("a", 1), id=["null", "int"], name=["null", "string"])


@pytest.mark.parametrize(
    ("row_type", "value", "kind", "expected"),
    [
        (Types.STRING(), None, ["null", "string"], None),
        (Types.STRING(), None, "null", None),
        (Types.DOUBLE(), 2.0, ["int", "double", "null"], 2.0),
        (Types.INT(), 7, ["null", "long"], 7),
        (Types.ROW([Types.INT()]), Row(2), ["null", INNER], Row(a=2)),
        (Types.ROW([Types.INT()]), None, ["null", INNER], None),
        (
            Types.LIST(Types.ROW([Types.INT()])),
            [Row(1), None],
            {"type": "array", "items": ["null", INNER]},
            [Row(a=1), None],
        ),
        (
            Types.MAP(Types.STRING(), Types.LONG()),
            {"x": None},
            {"type": "map", "values": ["null", "long"]},
            {"x": None},
        ),
    ],
)
@pytest.mark.parametrize("names", [None, ["field"]], ids=["unnamed", "named"])
def test_nulls_and_unions_of_typed_rows(names, row_type, value, kind, expected):
    assert through_avro(
        Types.ROW([row_type]) if names is None else Types.ROW_NAMED(names, [row_type]), Row(value), field=kind
    ) == Row(field=expected)
