"""Avro with a schema registry: a real HTTP server that speaks the registry's REST interface."""

import http.server
import json
import pickle
import re
import struct
import threading

import pytest

from penstock.common import Row
from penstock.common.errors import InvalidProgramError, JobExecutionError, PenstockError, RecordFormatError
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.formats import schema_registry
from penstock.formats.decoding import decode
from penstock.formats.schema_registry import (
    ConfluentRegistryAvroDeserializationSchema,
    ConfluentRegistryAvroSerializationSchema,
    SchemaRegistry,
)
from penstock.testing import MiniCluster


def schema(*fields):
    return json.dumps({"type": "record", "name": "Reading", "fields": list(fields)})


OLD = schema({"name": "id", "type": "string"}, {"name": "value", "type": "int"})
NEW = schema(
    {"name": "id", "type": "string"},
    {"name": "value", "type": "double"},
    {"name": "unit", "type": "string", "default": "C"},
)
OTHER = schema({"name": "id", "type": "string"}, {"name": "value", "type": ["null", "bytes"]})


class Registry(http.server.ThreadingHTTPServer):
    """Subjects with versions; ids count all schemas. A subject takes only schemas with the fields it had."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.schemas, self.subjects, self.requests, self.trouble = [], {}, [], []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        known = re.fullmatch(r"/schemas/ids/(\d+)", self.path)
        number = int(known.group(1)) if known else 0
        if 0 < number <= len(self.server.schemas):
            self.answer(200, {"schema": self.server.schemas[number - 1]})
        else:
            self.answer(404, {"error_code": 40403, "message": "Schema not found"})

    def do_POST(self):
        subject = re.fullmatch(r"/subjects/([^/]+)/versions", self.path).group(1)
        text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["schema"]
        names = {field["name"] for field in json.loads(text)["fields"]}
        versions = self.server.subjects.setdefault(subject, [])
        if versions and not {field["name"] for field in json.loads(versions[-1])["fields"]} <= names:
            self.answer(409, {"error_code": 409, "message": "incompatible with an earlier schema"})
            return
        if text not in self.server.schemas:
            self.server.schemas.append(text)
        if text not in versions:
            versions.append(text)
        self.answer(200, {"id": self.server.schemas.index(text) + 1})

    def answer(self, status, content):
        self.server.requests.append((self.command, self.path, self.headers.get("Authorization")))
        if self.server.trouble:
            status, content = self.server.trouble.pop(0), {"message": "trouble"}
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def registry():
    with Registry() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def written(registry, text, *records, subject="readings-value"):
    writer = ConfluentRegistryAvroSerializationSchema.for_generic(subject, text, registry.url)
    writer.open()
    return [writer.serialize(record) for record in records]


def test_a_message_begins_with_a_zero_byte_and_the_id_of_its_schema(registry):
    written(registry, OTHER, {"id": "x", "value": None}, subject="something else")
    (message,) = written(registry, OLD, Row(id="a", value=3))
    assert struct.unpack(">bI", message[:5]) == (0, 2)
    assert message[5:] == b"\x02a\x06"
    reader = ConfluentRegistryAvroDeserializationSchema(registry.url)
    assert reader.deserialize(message) == Row(id="a", value=3)


def test_records_are_read_with_the_schema_of_the_reader_by_avros_rules(registry):
    old, new = *written(registry, OLD, ("a", 3)), *written(registry, NEW, ("b", 1.5, "F"))
    reader = ConfluentRegistryAvroDeserializationSchema.for_generic(NEW, registry.url)
    assert reader.deserialize(old) == Row(id="a", value=3.0, unit="C")
    assert reader.deserialize(new) == Row(id="b", value=1.5, unit="F")
    as_written = ConfluentRegistryAvroDeserializationSchema(registry.url)
    assert [as_written.deserialize(one) for one in (old, new)] == [
        Row(id="a", value=3),
        Row(id="b", value=1.5, unit="F"),
    ]


def test_the_registry_is_asked_once_for_a_schema_and_schemas_travel_without_what_they_know(registry):
    messages = written(registry, OLD, *[("a", number) for number in range(50)])
    reader = ConfluentRegistryAvroDeserializationSchema(registry.url)
    assert [reader.deserialize(message).value for message in messages] == list(range(50))
    assert [request[0] for request in registry.requests] == ["POST", "GET"]
    assert pickle.loads(pickle.dumps(reader)).deserialize(messages[7]) == Row(id="a", value=7)
    assert len(registry.requests) == 3


def test_a_schema_that_the_registry_refuses_fails_the_job_before_a_record_is_written(registry):
    written(registry, NEW, ("a", 1.0, "C"))
    with pytest.raises(JobExecutionError, match=r"rejected .*409.*incompatible with an earlier schema"):
        written(registry, OLD, ("a", 1))


@pytest.fixture
def pauses(monkeypatch):
    """How long a client that asks again has waited, without waiting."""
    found = []
    monkeypatch.setattr(schema_registry, "sleep", found.append)
    return found


def test_a_busy_registry_is_asked_again_and_another_address_is_tried(registry, pauses):
    registry.trouble = [503, 500, 429]
    (message,) = written(registry, OLD, ("a", 1))
    assert pauses == [0.05, 0.1, 0.2]
    with Registry() as gone:
        address = gone.url
    reader = ConfluentRegistryAvroDeserializationSchema(SchemaRegistry(f"{address},{registry.url}", ("user", "word")))
    assert reader.deserialize(message).value == 1
    assert registry.requests[-1][2] == "Basic dXNlcjp3b3Jk"
    pauses.clear()
    with pytest.raises(JobExecutionError, match=f"{address} does not answer /schemas/ids/1"):
        ConfluentRegistryAvroDeserializationSchema(address).deserialize(message)
    assert pauses == [0.05, 0.1, 0.2, 0.4]  # between five attempts, and none behind the last one
    with pytest.raises(InvalidProgramError, match="http://localhost:8081"):
        SchemaRegistry("localhost:8081")


def test_of_many_addresses_the_last_one_is_tried_too_before_a_pause(registry, pauses):
    (message,) = written(registry, OLD, ("a", 1))
    with Registry() as gone:
        addresses = [gone.url] * 6
    reader = ConfluentRegistryAvroDeserializationSchema(",".join([*addresses, registry.url]))
    assert reader.deserialize(message).value == 1
    assert pauses == []


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda message: b"", "lacks the frame"),
        (lambda message: b"\x01" + message[1:], "lacks the frame"),
        (lambda message: message[:4] + b"\x63" + message[5:], "has no schema 99"),
        (lambda message: message[:-1], "not an Avro record of schema 1"),
        (lambda message: message + b"\x00", "extra bytes follow a record of schema 1"),
    ],
)
def test_poison_fails_is_skipped_or_put_aside(registry, spoil, reason):
    good, other = written(registry, OLD, ("a", 1), ("b", 2))
    poison, reader = spoil(good), ConfluentRegistryAvroDeserializationSchema(registry.url)
    with pytest.raises(RecordFormatError, match=reason):
        reader.deserialize(poison)
    assert (
        ConfluentRegistryAvroDeserializationSchema(registry.url, ignore_parse_errors=True).deserialize(poison) is None
    )

    def decoded(on_error):
        env = StreamExecutionEnvironment(executor=MiniCluster())
        return decode(env.from_collection([good, poison, other]), reader, on_error=on_error)

    with pytest.raises(PenstockError, match=reason):
        list(decoded("fail").execute_and_collect())
    assert sorted(row.id for row in decoded("skip").execute_and_collect()) == ["a", "b"]
    dead = OutputTag("dead")
    (letter,) = decoded(dead).get_side_output(dead).execute_and_collect()
    assert (letter.message, reason in letter.error) == (poison, True)


def test_a_reader_that_cannot_be_made_of_what_was_written_is_poison_and_not_a_crash(registry):
    (message,) = written(registry, OTHER, ("a", b"x"))
    reader = ConfluentRegistryAvroDeserializationSchema(registry.url, OLD)
    with pytest.raises(RecordFormatError, match=r"read as AvroSchema\(Reading: id, value\)"):
        reader.deserialize(message)


def test_a_record_that_does_not_fit_is_named(registry):
    with pytest.raises(RecordFormatError, match="not a record of AvroSchema"):
        written(registry, OLD, {"id": "a", "value": "x"})
