from io import BytesIO

import pytest

from penstock.common import ByteArraySchema, Encoder, Row, SimpleStringSchema, Types
from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError
from penstock.common.io import InputFormat
from penstock.common.serialization import (
    BulkWriter,
    BulkWriterFactory,
    DeserializationSchema,
    RowDataBulkWriterFactory,
    RowFieldExtractorSchema,
    SerializationSchema,
)
from penstock.common.serializer import PickleSerializer, VoidNamespaceSerializer


@pytest.mark.parametrize("charset", ["UTF-8", "UTF-16", "ISO-8859-1"])
def test_strings_round_trip_in_their_character_set(charset):
    schema = SimpleStringSchema(charset)
    schema.open()
    assert schema.deserialize(schema.serialize("café")) == "café"
    assert schema.serialize("é") == "é".encode(charset)
    assert schema.get_produced_type() == Types.STRING()
    assert not schema.is_end_of_stream("café")


def test_unknown_character_sets_are_refused():
    with pytest.raises(InvalidProgramError, match="klingon"):
        SimpleStringSchema("klingon")


def test_bytes_stay_as_they_are():
    schema = ByteArraySchema()
    schema.open()
    assert schema.deserialize(schema.serialize(bytearray(b"\x00\xff"))) == b"\x00\xff"
    assert schema.get_produced_type() == Types.PRIMITIVE_ARRAY(Types.BYTE())


def test_a_field_of_a_row_is_extracted():
    assert RowFieldExtractorSchema(0).serialize(Row(b"key", "value")) == b"key"
    assert RowFieldExtractorSchema(1).serialize(Row(b"key", "value")) == b"value"
    assert RowFieldExtractorSchema(0).serialize(Row(None)) == b""
    with pytest.raises(InvalidProgramError, match="negative"):
        RowFieldExtractorSchema(-1)


def test_own_schemas_need_one_method():
    class Shout(SerializationSchema):
        def serialize(self, value):
            return value.upper().encode()

    class Whisper(DeserializationSchema):
        def deserialize(self, message):
            return message.decode().lower()

    shout, whisper = Shout(), Whisper()
    shout.open()
    whisper.open()
    assert whisper.deserialize(shout.serialize("hey")) == "hey"
    assert whisper.get_produced_type() == Types.PICKLED_BYTE_ARRAY()
    assert not whisper.is_end_of_stream("hey")


def test_string_encoder_writes_lines():
    stream = BytesIO()
    encoder = Encoder.simple_string_encoder("UTF-8")
    encoder.encode("é", stream)
    encoder.encode(1, stream)
    assert stream.getvalue() == "é\n1\n".encode()


def test_bulk_writers_are_made_per_file():
    class Reversed(BulkWriter):
        def __init__(self, stream):
            self.stream, self.elements = stream, []

        def add_element(self, element):
            self.elements.append(element)

        def finish(self):
            self.stream.write(b"".join(reversed(self.elements)))

    class ReversedFactory(RowDataBulkWriterFactory):
        def create(self, stream):
            return Reversed(stream)

    factory = ReversedFactory(Types.ROW([Types.INT()]))
    assert isinstance(factory, BulkWriterFactory)
    assert factory.get_row_type() == Types.ROW([Types.INT()])
    stream = BytesIO()
    writer = factory.create(stream)
    for element in (b"a", b"b"):
        writer.add_element(element)
    writer.flush()
    writer.finish()
    assert stream.getvalue() == b"ba"


def test_serializers_write_and_read_streams():
    stream = BytesIO()
    PickleSerializer().serialize([1], stream)
    VoidNamespaceSerializer().serialize(None, stream)
    PickleSerializer().serialize("end", stream)
    stream.seek(0)
    assert PickleSerializer().deserialize(stream) == [1]
    assert VoidNamespaceSerializer().deserialize(stream) is None
    assert PickleSerializer().deserialize(stream) == "end"


def test_wrappers_of_java_objects_are_refused():
    with pytest.raises(UnsupportedFeatureError, match="InputFormat"):
        InputFormat(object())
