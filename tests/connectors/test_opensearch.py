"""Documents into a real OpenSearch: ids, bulk requests, a busy node, documents that an index refuses."""

import threading

import pytest
from crashing import TROUBLE, Crashing, troublesome
from tests.connectors.opensearch import opensearch

from penstock.common.errors import PenstockError
from penstock.connectors.elasticsearch import (
    Elasticsearch7SinkBuilder,
    ElasticsearchEmitter,
    FlushBackoffType,
    OpenSearchSinkBuilder,
)
from penstock.core.sink import WriterInitContext

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def server():
    with opensearch() as node:
        yield node


def documents(server, emitter, builder=Elasticsearch7SinkBuilder, retries=3, wait=1):
    made = builder().set_hosts([server.url]).set_emitter(emitter)
    return made.set_bulk_flush_backoff_strategy(FlushBackoffType.CONSTANT, retries, wait).build()


def writer_of(sink, checkpoint_id=1):
    context = WriterInitContext(subtask_id=0, parallelism=1, checkpoint_id=checkpoint_id, job_id="job", sink_id="sink")
    return sink.create_writer(context)


@pytest.mark.parametrize("builder", [Elasticsearch7SinkBuilder, OpenSearchSinkBuilder])
@pytest.mark.parametrize("key_field", ["id", None])
def test_every_document_is_there_once_whatever_crashes(tmp_path, server, builder, key_field):
    index = f"numbers-{builder.__name__}-{key_field}".lower()
    sink = documents(server, ElasticsearchEmitter.static_index(index, key_field), builder)
    TROUBLE.update(dict.fromkeys((7, 22), True))

    def build(env):
        env.from_sequence(1, 30).map(lambda n: {"id": n, "text": f"ä{n}"}).map(
            lambda d: troublesome(d["id"]) and d
        ).sink_to(sink)

    assert Crashing(tmp_path, build, max_records=3, cold=True).run() == 2
    found = server.documents(index)
    assert sorted(document["id"] for document in found.values()) == list(range(1, 31))
    if key_field:
        assert found["7"] == {"id": 7, "text": "ä7"}


def test_a_document_that_comes_again_takes_the_place_of_the_one_before(server):
    sink = documents(server, ElasticsearchEmitter.static_index("upserts", "id"))
    writer = writer_of(sink)
    for value in ("old", "new"):
        writer.write_batch([{"id": "a", "value": value}], None)
        writer.flush(end_of_input=False)
    writer.close()
    assert server.documents("upserts") == {"a": {"id": "a", "value": "new"}}
    assert server.version("upserts", "a") == 2


def test_a_batch_that_is_repeated_writes_the_same_ids_again(server):
    for _ in range(2):
        writer = writer_of(documents(server, ElasticsearchEmitter.static_index("repeated")), checkpoint_id=5)
        writer.write_batch([{"n": n} for n in range(10)], None)
        writer.flush(end_of_input=False)
        writer.close()
    assert len(server.documents("repeated")) == 10
    assert server.version("repeated", "job-sink-0-5-1") == 2


def test_documents_go_in_bulk_requests_of_the_size_that_was_set(server):
    builder = OpenSearchSinkBuilder().set_hosts(server.url).set_bulk_flush_max_actions(100)
    sink = builder.set_emitter(ElasticsearchEmitter.dynamic_index("where", "id")).build()
    writer = writer_of(sink)
    writer.write_batch([{"id": n, "where": f"bulk-{n % 2}"} for n in range(950)], None)
    writer.flush(end_of_input=True)
    writer.close()
    assert [len(server.documents(f"bulk-{part}")) for part in (0, 1)] == [475, 475]


def test_documents_that_a_busy_index_puts_off_are_sent_again_until_it_takes_them(server):
    """An index whose disk is full answers 429 for each document."""
    server.ask("PUT", "/busy")
    server.ask("PUT", "/busy/_settings", {"index.blocks.read_only_allow_delete": True})
    sink = documents(server, ElasticsearchEmitter.dynamic_index("where", "id"), retries=10_000, wait=5)
    writer = writer_of(sink)
    writer.write_batch([{"id": 1, "where": "busy"}, {"id": 2, "where": "free"}], None)
    thread = threading.Thread(target=lambda: writer.flush(end_of_input=False))
    thread.start()
    while "2" not in server.ask("GET", "/free/_doc/2")[1].get("_id", ""):
        assert thread.is_alive()  # it waits for the busy one
    assert thread.is_alive()
    server.ask("PUT", "/busy/_settings", {"index.blocks.read_only_allow_delete": None})
    thread.join(60)
    assert not thread.is_alive()
    writer.close()
    assert set(server.documents("busy")) == {"1"}
    assert server.version("free", "2") == 1  # only what was refused was sent again


def test_a_node_that_stays_busy_fails_the_job_after_the_retries(server):
    """A request larger than the node's memory for requests is answered with 429 as a whole."""
    limit = "network.breaker.inflight_requests.limit"
    assert server.ask("PUT", "/_cluster/settings", {"transient": {limit: "3kb"}})[0] == 200
    try:
        sink = documents(server, ElasticsearchEmitter.static_index("large", "id"), retries=2)
        writer = writer_of(sink)
        writer.write_batch([{"id": 1, "text": "x" * 5_000}], None)
        with pytest.raises(Exception, match="1 documents were rejected temporarily"):
            writer.flush(end_of_input=False)
        writer.close()
    finally:
        assert server.ask("PUT", "/_cluster/settings", {"transient": {limit: None}})[0] == 200


def test_a_document_that_the_index_refuses_is_named_with_its_content_and_the_reason(tmp_path, server):
    server.ask("PUT", "/typed", {"mappings": {"properties": {"number": {"type": "integer"}}}})
    sink = documents(server, ElasticsearchEmitter.static_index("typed", "id"))

    def build(env):
        rows = [{"id": 1, "number": 1}, {"id": 2, "number": "none"}, {"id": 3, "number": 3}]
        env.from_collection(rows).sink_to(sink).set_parallelism(1)

    with pytest.raises(
        PenstockError, match=r"document '2' was rejected by index 'typed': .*mapper_parsing_exception.*'number': 'none'"
    ):
        Crashing(tmp_path, build, max_records=10).start().run()


def test_without_waits_a_document_is_refused_at_once(server):
    server.ask("PUT", "/closed")
    server.ask("PUT", "/closed/_settings", {"index.blocks.read_only_allow_delete": True})
    builder = OpenSearchSinkBuilder().set_hosts(server.url)
    builder.set_emitter(ElasticsearchEmitter.static_index("closed", "id"))
    writer = writer_of(builder.set_bulk_flush_backoff_strategy(FlushBackoffType.NONE, 0, 0).build())
    writer.write_batch([{"id": 1}], None)
    with pytest.raises(Exception, match="1 documents were rejected temporarily"):
        writer.flush(end_of_input=False)
    writer.close()
