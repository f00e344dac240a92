"""Protocol buffers: rows and messages, presence, evolution, poison."""

import pickle

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.duration_pb2 import Duration
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Row
from penstock.common.errors import InvalidProgramError, PenstockError, RecordFormatError
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.formats.decoding import decode
from penstock.formats.protobuf import ProtobufRowDeserializationSchema, ProtobufRowSerializationSchema
from penstock.testing import MiniCluster

FIELD = descriptor_pb2.FieldDescriptorProto


def order_class(*, newer=False):
    """What protoc would make of a small file; the newer version has one field and one value of the enum more."""
    file = descriptor_pb2.FileDescriptorProto(name="orders.proto", package="shop", syntax="proto3")
    state = file.enum_type.add(name="State")
    for number, name in enumerate(["OPEN", "PAID", *(["SENT"] if newer else [])]):
        state.value.add(name=name, number=number)
    item = file.message_type.add(name="Item")
    item.field.add(name="name", number=1, type=FIELD.TYPE_STRING, label=FIELD.LABEL_OPTIONAL)
    item.field.add(name="price", number=2, type=FIELD.TYPE_DOUBLE, label=FIELD.LABEL_OPTIONAL)
    order = file.message_type.add(name="Order")
    order.field.add(name="id", number=1, type=FIELD.TYPE_INT64, label=FIELD.LABEL_OPTIONAL)
    order.field.add(name="state", number=2, type=FIELD.TYPE_ENUM, type_name=".shop.State", label=FIELD.LABEL_OPTIONAL)
    order.field.add(name="items", number=3, type=FIELD.TYPE_MESSAGE, type_name=".shop.Item", label=FIELD.LABEL_REPEATED)
    entry = order.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=FIELD.TYPE_STRING, label=FIELD.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=FIELD.TYPE_INT32, label=FIELD.LABEL_OPTIONAL)
    order.field.add(
        name="tags", number=4, type=FIELD.TYPE_MESSAGE, type_name=".shop.Order.TagsEntry", label=FIELD.LABEL_REPEATED
    )
    order.oneof_decl.add(name="_note")
    order.field.add(
        name="note", number=5, type=FIELD.TYPE_STRING, label=FIELD.LABEL_OPTIONAL, oneof_index=0, proto3_optional=True
    )
    order.field.add(name="gift", number=6, type=FIELD.TYPE_MESSAGE, type_name=".shop.Item", label=FIELD.LABEL_OPTIONAL)
    if newer:
        order.field.add(name="weight", number=7, type=FIELD.TYPE_INT32, label=FIELD.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


ORDER, NEWER = order_class(), order_class(newer=True)
ROW = Row(id=7, state="PAID", items=[Row(name="tea", price=2.5)], tags={"a": 1}, note=None, gift=None)


def test_a_row_becomes_a_message_and_a_row_again():
    message = ProtobufRowSerializationSchema(ORDER).serialize(ROW)
    assert ProtobufRowDeserializationSchema(ORDER).deserialize(message) == ROW
    parsed = ORDER.FromString(message)
    assert (parsed.id, parsed.state, parsed.items[0].name, dict(parsed.tags)) == (7, 1, "tea", {"a": 1})


def test_dicts_tuples_and_messages_are_taken_too():
    write = ProtobufRowSerializationSchema(ORDER).serialize
    as_dict = {"id": 7, "state": 1, "items": [{"name": "tea", "price": 2.5}], "tags": {"a": 1}}
    parsed = ORDER.FromString(write(ROW))
    assert write(as_dict) == write(ROW) == write(parsed)
    assert write((7, "PAID", [("tea", 2.5)], {"a": 1}, None, None)) == write(ROW)
    assert ProtobufRowDeserializationSchema(ORDER, as_messages=True).deserialize(write(ROW)) == parsed


def test_a_field_with_presence_is_none_if_it_is_not_set_and_others_have_their_default():
    empty = ProtobufRowDeserializationSchema(ORDER).deserialize(b"")
    assert empty == Row(id=0, state="OPEN", items=[], tags={}, note=None, gift=None)
    set_to_empty = ProtobufRowSerializationSchema(ORDER).serialize({"note": "", "gift": {}})
    found = ProtobufRowDeserializationSchema(ORDER).deserialize(set_to_empty)
    assert (found.note, found.gift) == ("", Row(name="", price=0.0))


def test_older_and_newer_versions_read_each_other():
    newer = ProtobufRowSerializationSchema(NEWER).serialize({"id": 1, "state": "SENT", "weight": 5})
    read = ProtobufRowDeserializationSchema(ORDER).deserialize(newer)
    assert (read.id, read.state) == (1, 2)  # a value without a name here
    older = ProtobufRowSerializationSchema(ORDER).serialize({"id": 1})
    assert ProtobufRowDeserializationSchema(NEWER).deserialize(older).weight == 0


@given(
    st.builds(
        lambda number, state, items, tags, note: Row(
            id=number, state=state, items=items, tags=tags, note=note, gift=None
        ),
        st.integers(-(2**63), 2**63 - 1),
        st.sampled_from(["OPEN", "PAID"]),
        st.lists(st.builds(lambda n, p: Row(name=n, price=p), st.text(), st.floats(allow_nan=False)), max_size=3),
        st.dictionaries(st.text(), st.integers(-(2**31), 2**31 - 1), max_size=3),
        st.none() | st.text(),
    )
)
def test_values_of_every_type_are_kept(row):
    message = ProtobufRowSerializationSchema(ORDER).serialize(row)
    assert ProtobufRowDeserializationSchema(ORDER).deserialize(message) == row


def test_schemas_travel_to_tasks_also_of_classes_made_at_run_time():
    schemas = ProtobufRowSerializationSchema(ORDER), ProtobufRowDeserializationSchema(ORDER)
    write, read = pickle.loads(pickle.dumps(schemas))
    assert read.deserialize(write.serialize(ROW)) == ROW
    generated = pickle.loads(pickle.dumps(ProtobufRowDeserializationSchema("google.protobuf.duration_pb2.Duration")))
    assert generated.deserialize(Duration(seconds=3).SerializeToString()) == Row(seconds=3, nanos=0)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"id": "x"}, "TypeError"),
        ({"nope": 1}, "the field 'nope' does not exist"),
        ({"state": "LOST"}, "'LOST' is not a value of shop.State"),
        ({"id": 2**70}, "ValueError"),
        (17, "a row, a dict or a message"),
        ((1, 2), "ValueError"),
    ],
)
def test_a_record_that_is_no_message_is_named_with_the_reason(value, reason):
    with pytest.raises(RecordFormatError, match=f"not a message of shop.Order: .*{reason}"):
        ProtobufRowSerializationSchema(ORDER).serialize(value)


def test_what_is_no_generated_class_is_refused():
    for wrong in (int, "nope_pb2.Order", "google.protobuf.duration_pb2.Nope", 5):
        with pytest.raises(InvalidProgramError):
            ProtobufRowDeserializationSchema(wrong)


POISON = b"\x0a\xff"


def messages(env):
    write = ProtobufRowSerializationSchema(ORDER).serialize
    return env.from_collection([write({"id": 1}), POISON, write({"id": 2})])


@pytest.fixture
def env():
    return StreamExecutionEnvironment(executor=MiniCluster())


def test_poison_fails_the_job_and_is_named(env):
    with pytest.raises(PenstockError, match=r"'Decode' cannot read a message: not a message of shop.Order"):
        list(decode(messages(env), ProtobufRowDeserializationSchema(ORDER)).execute_and_collect())


@pytest.mark.parametrize(("ignore", "on_error"), [(True, "fail"), (False, "skip")])
def test_poison_can_be_skipped(env, ignore, on_error):
    schema = ProtobufRowDeserializationSchema(ORDER, ignore_parse_errors=ignore)
    rows = decode(messages(env), schema, on_error=on_error).execute_and_collect()
    assert sorted(row.id for row in rows) == [1, 2]


def test_poison_can_be_put_aside(env):
    dead = OutputTag("dead")
    rows = decode(messages(env), ProtobufRowDeserializationSchema(ORDER), on_error=dead)
    assert [letter.message for letter in rows.get_side_output(dead).execute_and_collect()] == [POISON]
