"""Writes documents to Elasticsearch or OpenSearch with their bulk API, over HTTP without a client package."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from penstock.common.errors import InvalidProgramError, JobExecutionError, shorten
from penstock.common.types import Row
from penstock.connectors.upsert import Change, RetryLaterError, UpsertClient, UpsertSink, UpsertWriter
from penstock.core.sink import DeliveryGuarantee, SinkWriter, WriterInitContext
from penstock.formats.conversion import plain_value

__all__ = [
    "Elasticsearch6SinkBuilder",
    "Elasticsearch7SinkBuilder",
    "ElasticsearchEmitter",
    "ElasticsearchSink",
    "ElasticsearchSinkBuilderBase",
    "FlushBackoffType",
    "OpenSearchSinkBuilder",
]

_BUSY = {429, 502, 503, 504}


class FlushBackoffType(Enum):
    """The growth of the delay between retries."""

    CONSTANT = "constant"
    EXPONENTIAL = "exponential"
    NONE = "none"


class ElasticsearchEmitter:
    """Chooses the index and id of a record's document. Records are mappings or named rows.

    Without a key field, the id consists of job, checkpoint, subtask and position: a batch that is repeated after a
    failure writes the same documents again.
    """

    def __init__(self, index: Callable[[Mapping[str, Any]], str], key_field: str | None) -> None:
        self.index = index
        self.key_field = key_field

    @staticmethod
    def static_index(index: str, key_field: str | None = None, doc_type: str | None = None) -> ElasticsearchEmitter:
        """Write all documents to one index."""
        return ElasticsearchEmitter(lambda document: index, key_field)

    @staticmethod
    def dynamic_index(
        index_field: str, key_field: str | None = None, doc_type: str | None = None
    ) -> ElasticsearchEmitter:
        """Write each document to the index that a field of the record names."""
        return ElasticsearchEmitter(lambda document: str(document[index_field]), key_field)


class ElasticsearchSink(UpsertSink):
    """Writes documents. Create it with a builder."""

    def __init__(self, hosts: list[str], emitter: ElasticsearchEmitter, settings: dict[str, Any]) -> None:
        super().__init__(
            key=lambda record: None,
            batch_size=settings["max_actions"],
            max_retries=settings["max_retries"],
            retry_backoff_ms=settings["backoff_ms"],
            backoff_growth=settings["backoff_growth"],
            flush_interval_ms=settings["flush_interval_ms"],
        )
        self.emitter = emitter
        self._hosts = hosts
        self._settings = settings

    def connect(self, context: WriterInitContext) -> UpsertClient:
        return _BulkClient(self._hosts[context.subtask_id % len(self._hosts) :] + self._hosts, self._settings)

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        return _DocumentWriter(self, self.connect(context), context)


class _DocumentWriter(UpsertWriter):
    def __init__(self, sink: ElasticsearchSink, client: UpsertClient, context: WriterInitContext) -> None:
        super().__init__(sink, client)
        self._emitter = sink.emitter
        self._name = f"{context.job_id}-{context.sink_id}-{context.subtask_id}"
        self._checkpoint_id = context.checkpoint_id
        self._position = 0

    def begin(self, checkpoint_id: int) -> None:
        self._checkpoint_id, self._position = checkpoint_id, 0

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        emitter = self._emitter
        for record in values:
            document = record.as_dict() if isinstance(record, Row) else record
            if not isinstance(document, Mapping):
                raise InvalidProgramError(f"a document must be a mapping or a row with names, got {shorten(record)}")
            if emitter.key_field is None:
                self._position += 1
                key = f"{self._name}-{self._checkpoint_id}-{self._position}"
            else:
                key = str(document[emitter.key_field])
            self.put((emitter.index(document), key), document)


class _BulkClient(UpsertClient):
    """Uses the bulk protocol, and switches to the next host if one is unavailable."""

    def __init__(self, hosts: list[str], settings: dict[str, Any]) -> None:
        self._hosts = hosts
        self._settings = settings
        self._connection: http.client.HTTPConnection | None = None
        self._path = settings["path_prefix"].rstrip("/") + "/_bulk"
        self._headers = {"Content-Type": "application/x-ndjson"}
        if settings["user"] is not None:
            pair = f"{settings['user']}:{settings['password'] or ''}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()

    def apply(self, changes: Sequence[Change]) -> None:
        lines = [_action(change) for change in changes]
        limit, low = self._settings["max_bytes"], 0
        while low < len(lines):
            high, size = low, 0
            while high < len(lines) and (high == low or size + len(lines[high]) <= limit):
                size += len(lines[high])
                high += 1
            rest = self._send(lines[low:high], changes[low:high])
            if rest:
                raise RetryLaterError(f"{len(rest)} documents were rejected temporarily", [*rest, *changes[high:]])
            low = high

    def _send(self, lines: list[bytes], changes: Sequence[Change]) -> list[Change]:
        """Send one request and return the actions to retry later."""
        try:
            connection = self._connected()
            connection.request("POST", self._path, b"".join(lines), self._headers)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            host = self._hosts[0]
            self.close()
            self._hosts = self._hosts[1:] + self._hosts[:1]
            raise RetryLaterError(f"{host} is away: {error}", None) from error
        if response.status in _BUSY:
            return list(changes)
        if response.status >= 300:
            raise JobExecutionError(
                f"{self._hosts[0]} rejected documents with status {response.status}: {body[:300]!r}"
            )
        return _refused(json.loads(body), changes)

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            parts = urlsplit(self._hosts[0])
            seconds = self._settings["timeout_ms"] / 1000
            if parts.scheme == "https":
                self._connection = http.client.HTTPSConnection(
                    parts.netloc, timeout=seconds, context=ssl.create_default_context()
                )
            else:
                self._connection = http.client.HTTPConnection(parts.netloc, timeout=seconds)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _action(change: Change) -> bytes:
    index, key = change.key
    head = json.dumps({"index": {"_index": index, "_id": key}})
    return f"{head}\n{json.dumps(plain_value(change.value), ensure_ascii=False)}\n".encode()


def _refused(answer: dict[str, Any], changes: Sequence[Change]) -> list[Change]:
    if not answer.get("errors"):
        return []
    later: list[Change] = []
    for item, change in zip(answer["items"], changes, strict=True):
        (outcome,) = item.values()
        if outcome["status"] in _BUSY:
            later.append(change)
        elif outcome["status"] >= 300:
            raise JobExecutionError(
                f"document {change.key[1]!r} was rejected by index {change.key[0]!r}: "
                f"{shorten(outcome.get('error'), 600)} [document {shorten(change.value)}]"
            )
    return later


Builder = TypeVar("Builder", bound="ElasticsearchSinkBuilderBase")


class ElasticsearchSinkBuilderBase:
    """Collects the settings."""

    def __init__(self) -> None:
        self._hosts: list[str] = []
        self._emitter: ElasticsearchEmitter | None = None
        self._settings: dict[str, Any] = {
            "max_actions": 1_000,
            "max_bytes": 5 << 20,
            "max_retries": 5,
            "backoff_ms": 100,
            "backoff_growth": 2,
            "flush_interval_ms": None,
            "user": None,
            "password": None,
            "path_prefix": "",
            "timeout_ms": 60_000,
        }

    def _with(self, **settings: Any) -> Self:
        self._settings.update(settings)
        return self

    def set_hosts(self, hosts: str | list[str]) -> Self:
        """Set addresses such as ``localhost:9200`` or ``https://search.example:9200``. HTTP is the default."""
        self._hosts = [_address(host) for host in ([hosts] if isinstance(hosts, str) else hosts)]
        return self

    def set_emitter(self, emitter: ElasticsearchEmitter) -> Self:
        """Set the emitter, which chooses the index and id of a document."""
        self._emitter = emitter
        return self

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> Self:
        """Set the guarantee: at-least-once. Documents have ids, so repeated writes change nothing."""
        if delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            raise InvalidProgramError(
                "this sink has no transactions: use at-least-once, which writes each document id once"
            )
        return self

    def set_bulk_flush_max_actions(self, num_max_actions: int) -> Self:
        return self._with(max_actions=num_max_actions)

    def set_bulk_flush_max_size_mb(self, max_size_mb: int) -> Self:
        return self._with(max_bytes=max_size_mb << 20)

    def set_bulk_flush_interval(self, interval_millis: int) -> Self:
        """Set how long documents wait before they are sent. The end of a micro-batch sends them in any case."""
        if interval_millis < -1:
            raise InvalidProgramError(f"the flush interval must be milliseconds, or -1 for none, got {interval_millis}")
        return self._with(flush_interval_ms=None if interval_millis == -1 else interval_millis)

    def set_bulk_flush_backoff_strategy(
        self, flush_backoff_type: FlushBackoffType, max_retries: int, delay_millis: int
    ) -> Self:
        """Set how often and after which delay to retry documents. An exponential delay doubles each time."""
        if flush_backoff_type is FlushBackoffType.NONE:
            return self._with(max_retries=0)
        growth = 2 if flush_backoff_type is FlushBackoffType.EXPONENTIAL else 1
        return self._with(max_retries=max_retries, backoff_ms=delay_millis, backoff_growth=growth)

    def set_connection_username(self, username: str) -> Self:
        return self._with(user=username)

    def set_connection_password(self, password: str) -> Self:
        return self._with(password=password)

    def set_connection_path_prefix(self, prefix: str) -> Self:
        return self._with(path_prefix="/" + prefix.strip("/"))

    def set_connection_request_timeout(self, timeout: int) -> Self:
        return self._with(timeout_ms=timeout)

    set_connection_timeout = set_connection_request_timeout
    set_socket_timeout = set_connection_request_timeout

    def get_http_host_class(self) -> type:
        """Return str: hosts are addresses here."""
        return str

    def build(self) -> ElasticsearchSink:
        if not self._hosts or self._emitter is None:
            raise InvalidProgramError("a document sink needs set_hosts() and set_emitter()")
        return ElasticsearchSink(self._hosts, self._emitter, dict(self._settings))


class Elasticsearch6SinkBuilder(ElasticsearchSinkBuilderBase):
    """Builds a sink for Elasticsearch 6. The bulk protocol is the same."""


class Elasticsearch7SinkBuilder(ElasticsearchSinkBuilderBase):
    """Builds a sink for Elasticsearch 7 and later."""


class OpenSearchSinkBuilder(ElasticsearchSinkBuilderBase):
    """Builds a sink for OpenSearch."""


def _address(host: str) -> str:
    """Return a host as an HTTP address.

    >>> _address("localhost:9200"), _address("https://search.example")
    ('http://localhost:9200', 'https://search.example')
    """
    scheme, separator, rest = host.partition("://")
    if not separator:
        scheme, rest = "http", host
    if scheme not in {"http", "https"} or not rest.strip("/"):
        raise InvalidProgramError(f"a host must be an address such as http://localhost:9200, got {host!r}")
    return f"{scheme}://{rest}"
