"""Idempotent upserts: a real Redis, and a server that speaks the bulk protocol of Elasticsearch and OpenSearch."""

import base64
import http.server
import json
import threading
from datetime import date

import pytest
from crashing import TROUBLE, Crashing, troublesome
from tests.connectors.servers import redis_server

from penstock.common import Row
from penstock.common.errors import InvalidProgramError, PenstockError
from penstock.connectors import upsert
from penstock.connectors.elasticsearch import (
    Elasticsearch6SinkBuilder,
    Elasticsearch7SinkBuilder,
    ElasticsearchEmitter,
    FlushBackoffType,
    OpenSearchSinkBuilder,
)
from penstock.connectors.redis import RedisSink
from penstock.connectors.upsert import Change, RetryLaterError, UpsertClient, UpsertSink
from penstock.core.sink import DeliveryGuarantee, WriterInitContext


def numbers_to(sink, prepare, records=30):
    return lambda env: env.from_sequence(1, records).map(troublesome).map(prepare).sink_to(sink)


def context(checkpoint_id=1):
    return WriterInitContext(subtask_id=0, parallelism=1, checkpoint_id=checkpoint_id, job_id="job", sink_id="sink")


# -- the base ---------------------------------------------------------------------------------------------------------


class Store(UpsertClient):
    def __init__(self):
        self.applied = []
        self.answers = []

    def apply(self, changes):
        self.applied.append(list(changes))
        if self.answers:
            raise self.answers.pop(0)


class StoreSink(UpsertSink):
    def __init__(self, store, **options):
        super().__init__(key=lambda record: record[0], value=lambda record: record[1], retry_backoff_ms=0, **options)
        self.store = store

    def connect(self, context):
        return self.store


def test_each_key_is_sent_once_per_group_with_its_last_value():
    store = Store()
    writer = StoreSink(store, batch_size=2).create_writer(context())
    writer.write_batch([("a", 1), ("a", 2), ("b", 3), ("a", 4)], None)
    writer.flush(end_of_input=False)
    writer.flush(end_of_input=True)
    assert store.applied == [[Change("a", 2), Change("b", 3)], [Change("a", 4)]]


def test_changes_that_have_waited_long_enough_are_sent_with_the_next_one(monkeypatch):
    store, now = Store(), [0.0]
    monkeypatch.setattr(upsert.time, "monotonic", lambda: now[0])
    writer = StoreSink(store, flush_interval_ms=50).create_writer(context())
    for moment in (0.0, 0.049, 0.05, 0.06, 0.1):
        now[0] = moment
        writer.write_batch([(moment, "x")], None)
    assert [[change.key for change in group] for group in store.applied] == [[0.0, 0.049, 0.05]]
    writer.flush(end_of_input=False)
    assert len(store.applied) == 2


def test_what_the_store_wants_later_is_sent_again_and_then_the_job_fails():
    store = Store()
    writer = StoreSink(store, max_retries=2).create_writer(context())
    store.answers = [RetryLaterError("busy"), RetryLaterError("busy", [Change("b", 2)])]
    writer.write_batch([("a", 1), ("b", 2)], None)
    writer.flush(end_of_input=False)
    both = [Change("a", 1), Change("b", 2)]
    assert store.applied == [both, both, [Change("b", 2)]]
    store.answers = [RetryLaterError("busy")] * 3
    writer.write_batch([("c", 1)], None)
    with pytest.raises(RetryLaterError, match="busy"):
        writer.flush(end_of_input=False)
    with pytest.raises(InvalidProgramError):
        StoreSink(store, batch_size=0)


# -- Redis ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def redis_url():
    with redis_server() as url:
        yield url


@pytest.fixture
def client(redis_url):
    import redis

    with redis.Redis.from_url(redis_url, decode_responses=True) as connection:
        connection.flushdb()
        yield connection


def test_redis_has_the_last_value_of_each_key_whatever_crashes(tmp_path, redis_url, client):
    sink = RedisSink(redis_url, key=lambda record: f"key {record % 5}", value=lambda record: record)
    TROUBLE.update(dict.fromkeys((7, 22), True))
    assert Crashing(tmp_path, numbers_to(sink, lambda n: n), max_records=3, parallelism=1).run() >= 2
    assert {key: client.get(key) for key in client.scan_iter()} == {f"key {n % 5}": str(n) for n in range(26, 31)}


def test_redis_values_are_texts_hashes_or_json_and_none_deletes(redis_url, client):
    sink = RedisSink(redis_url, key=lambda record: record[0], value=lambda record: record[1], time_to_live=100)
    writer = sink.create_writer(context())
    writer.write_batch([("text", "ä"), ("list", [1, None]), ("hash", {"a": 1, "b": True}), ("gone", 1)], None)
    writer.flush(end_of_input=False)
    writer.write_batch([("hash", {"c": "x"}), ("gone", None)], None)
    writer.flush(end_of_input=False)
    writer.close()
    assert (client.get("text"), client.get("list")) == ("ä", "[1, null]")
    assert client.hgetall("hash") == {"c": "x"}
    assert client.exists("gone") == 0
    assert 0 < client.ttl("text") <= 100
    assert 0 < client.ttl("hash") <= 100


def test_an_empty_hash_is_no_hash_at_all_in_redis(redis_url, client):
    sink = RedisSink(redis_url, key=lambda record: record[0], value=lambda record: record[1], time_to_live=100)
    writer = sink.create_writer(context())
    writer.write_batch([("emptied", {"a": 1}), ("always empty", {})], None)
    writer.flush(end_of_input=False)
    assert client.keys() == ["emptied"]
    writer.write_batch([("emptied", {}), ("other", {"b": 2})], None)
    writer.flush(end_of_input=False)
    writer.close()
    assert client.keys() == ["other"]


def test_a_redis_that_stays_away_fails_the_job_with_the_reason():
    with redis_server() as url:
        sink = RedisSink(url, key=str, value=str, max_retries=1, retry_backoff_ms=1)
        writer = sink.create_writer(context())
        writer.write_batch(["a"], None)
        writer.flush(end_of_input=False)
    writer.write_batch(["b"], None)
    with pytest.raises(RetryLaterError, match="Redis is unavailable"):
        writer.flush(end_of_input=False)
    writer.close()
    with pytest.raises(InvalidProgramError, match="redis://"):
        RedisSink("localhost", key=str, value=str)


# -- Elasticsearch and OpenSearch -------------------------------------------------------------------------------------


class BulkServer(http.server.ThreadingHTTPServer):
    """Keeps documents in memory: index -> id -> document."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), BulkHandler)
        self.indices = {}
        self.requests = []
        self.answers = []
        self.versions = {}

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class BulkHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, self.headers, body))
        status, refuse = self.server.answers.pop(0) if self.server.answers else (200, {})
        lines = [json.loads(line) for line in body.splitlines()]
        items = []
        for head, document in zip(lines[::2], lines[1::2], strict=True):
            where = head["index"]
            outcome = refuse.get(where["_id"], 201)
            items.append({"index": {**where, "status": outcome, **({"error": "no"} if outcome >= 300 else {})}})
            if status == 200 and outcome == 201:
                self.server.indices.setdefault(where["_index"], {})[where["_id"]] = document
        errors = any(item["index"]["status"] >= 300 for item in items)
        answer = json.dumps({"errors": errors, "items": items}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


@pytest.fixture
def server():
    with BulkServer() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def documents(server, emitter, builder=Elasticsearch7SinkBuilder):
    made = builder().set_hosts([server.url]).set_emitter(emitter)
    return made.set_bulk_flush_backoff_strategy(FlushBackoffType.CONSTANT, 3, 1)


@pytest.mark.parametrize("key_field", ["id", None])
@pytest.mark.parametrize("builder", [Elasticsearch6SinkBuilder, Elasticsearch7SinkBuilder, OpenSearchSinkBuilder])
def test_every_document_is_there_once_with_or_without_a_key_of_its_own(tmp_path, server, key_field, builder):
    sink = documents(server, ElasticsearchEmitter.static_index("numbers", key_field), builder).build()
    TROUBLE.update(dict.fromkeys((7, 22), True))
    build = numbers_to(sink, lambda n: {"id": n, "text": f"ä{n}"})
    assert Crashing(tmp_path, build, max_records=3, cold=True).run() >= 2
    found = server.indices["numbers"]
    assert sorted(document["id"] for document in found.values()) == list(range(1, 31))
    if key_field:
        assert found["7"] == {"id": 7, "text": "ä7"}


def test_a_host_needs_no_scheme(server):
    builder = Elasticsearch7SinkBuilder().set_hosts([server.url.removeprefix("http://")])
    writer = builder.set_emitter(ElasticsearchEmitter.static_index("i", "id")).build().create_writer(context())
    writer.write_batch([{"id": 1}], None)
    writer.flush(end_of_input=True)
    assert set(server.indices["i"]) == {"1"}


@pytest.mark.parametrize(("interval", "requests"), [(0, 3), (-1, 1), (3_600_000, 1)])
def test_documents_are_sent_after_the_flush_interval(server, interval, requests):
    builder = Elasticsearch7SinkBuilder().set_hosts(server.url).set_bulk_flush_interval(interval)
    writer = builder.set_emitter(ElasticsearchEmitter.static_index("i", "id")).build().create_writer(context())
    for number in range(3):
        writer.write_batch([{"id": number}], None)
    writer.flush(end_of_input=True)
    assert set(server.indices["i"]) == {"0", "1", "2"}
    assert len(server.requests) == requests
    with pytest.raises(InvalidProgramError, match="or -1 for none, got -2"):
        builder.set_bulk_flush_interval(-2)


def test_the_index_can_be_a_field_and_rows_are_documents(server):
    sink = documents(server, ElasticsearchEmitter.dynamic_index("where", "id")).build()
    writer = sink.create_writer(context())
    writer.write_batch([Row(id=1, where="a", day=date(2020, 1, 2)), {"id": 2, "where": "b"}], None)
    writer.flush(end_of_input=True)
    assert server.indices == {
        "a": {"1": {"id": 1, "where": "a", "day": "2020-01-02"}},
        "b": {"2": {"id": 2, "where": "b"}},
    }
    with pytest.raises(InvalidProgramError, match="mapping"):
        writer.write_batch([7], None)
    writer.close()


def test_busy_servers_and_busy_documents_are_tried_again(server):
    sink = documents(server, ElasticsearchEmitter.static_index("i", "id")).build()
    server.answers = [(429, {}), (200, {"2": 429})]
    writer = sink.create_writer(context())
    writer.write_batch([{"id": 1}, {"id": 2}], None)
    writer.flush(end_of_input=True)
    writer.close()
    assert set(server.indices["i"]) == {"1", "2"}
    assert [body.count(b'"index"') for _, _, body in server.requests] == [2, 2, 1]


def test_a_document_that_the_index_refuses_fails_the_job_and_is_named(tmp_path, server):
    server.answers = [(200, {"3": 400})]
    sink = documents(server, ElasticsearchEmitter.static_index("i", "id")).build()
    with pytest.raises(PenstockError, match="document '3' was rejected by index 'i': 'no'"):
        Crashing(tmp_path, numbers_to(sink, lambda n: {"id": n}, 5), max_records=10, parallelism=1).start().run()
    server.answers = [(403, {})]
    with pytest.raises(PenstockError, match="status 403"):
        Crashing(tmp_path / "b", numbers_to(sink, lambda n: {"id": n}, 5), max_records=10).start().run()


def test_requests_are_cut_by_bytes_and_carry_prefix_and_credentials(server):
    builder = documents(server, ElasticsearchEmitter.static_index("i", "id")).set_connection_path_prefix("es")
    builder.set_connection_username("u").set_connection_password("p").set_bulk_flush_max_size_mb(1)
    builder.set_bulk_flush_max_actions(100).set_bulk_flush_interval(5).set_socket_timeout(5_000)
    writer = builder.build().create_writer(context())
    writer.write_batch([{"id": n, "text": "x" * 600_000} for n in range(3)], None)
    writer.flush(end_of_input=True)
    writer.close()
    assert len(server.requests) == 3
    path, headers, _ = server.requests[0]
    assert path == "/es/_bulk"
    assert headers["Authorization"] == "Basic " + base64.b64encode(b"u:p").decode()


def test_another_host_is_asked_if_one_is_away(server):
    from tests.connectors.servers import free_port

    builder = documents(server, ElasticsearchEmitter.static_index("i", "id"))
    builder.set_hosts([f"http://127.0.0.1:{free_port()}", server.url])
    writer = builder.build().create_writer(context())
    writer.write_batch([{"id": 1}], None)
    writer.flush(end_of_input=True)
    writer.close()
    assert set(server.indices["i"]) == {"1"}


def test_wrong_settings_of_document_sinks_are_refused():
    for wrong in (
        lambda: Elasticsearch7SinkBuilder().build(),
        lambda: Elasticsearch7SinkBuilder().set_hosts("ftp://localhost:9200"),
        lambda: Elasticsearch7SinkBuilder().set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE),
    ):
        with pytest.raises(InvalidProgramError):
            wrong()
    assert (
        Elasticsearch7SinkBuilder().set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE).get_http_host_class() is str
    )
