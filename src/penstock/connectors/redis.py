"""RedisSink: writes the last value of each key, with the package redis (extra ``redis``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.connectors.upsert import Change, RetryLaterError, UpsertClient, UpsertSink
from penstock.core.sink import WriterInitContext
from penstock.formats.conversion import plain_value

__all__ = ["RedisSink"]


class RedisSink(UpsertSink):
    """Sets a string, or the fields of a hash, for each record.

    :param url: ``redis://host:port/database``
    :param key: the key of a record
    :param value: its value: text, number or bytes unchanged, a mapping as a hash, other values as JSON; ``None`` or an
        empty mapping deletes the key
    :param time_to_live: seconds after which a key expires unless it is written again
    """

    def __init__(
        self,
        url: str,
        *,
        key: Callable[[Any], str],
        value: Callable[[Any], Any],
        time_to_live: int | None = None,
        batch_size: int = 1_000,
        max_retries: int = 5,
        retry_backoff_ms: int = 100,
    ) -> None:
        super().__init__(
            key=key, value=value, batch_size=batch_size, max_retries=max_retries, retry_backoff_ms=retry_backoff_ms
        )
        if not url.startswith(("redis://", "rediss://", "unix://")):
            raise InvalidProgramError(f"the URL of Redis must be like redis://localhost:6379/0, got {url!r}")
        self._url = url
        self._time_to_live = time_to_live

    def connect(self, context: WriterInitContext) -> UpsertClient:
        return _RedisClient(self._url, self._time_to_live)


class _RedisClient(UpsertClient):
    def __init__(self, url: str, time_to_live: int | None) -> None:
        try:
            import redis
        except ImportError:
            raise InvalidProgramError("Redis needs the package redis: pip install 'penstock[redis]'") from None
        self._redis: Any = redis
        self._client: Any = redis.Redis.from_url(url)
        self._time_to_live = time_to_live

    def apply(self, changes: Sequence[Change]) -> None:
        """Apply changes in one atomic round trip. A hash is replaced, not extended."""
        pipeline = self._client.pipeline(transaction=True)
        for change in changes:
            if change.value is None:
                pipeline.delete(change.key)
            elif isinstance(change.value, Mapping):
                pipeline.delete(change.key)
                if change.value:  # Redis has no empty hashes
                    pipeline.hset(change.key, mapping={str(k): _scalar(v) for k, v in change.value.items()})
                if self._time_to_live is not None:
                    pipeline.expire(change.key, self._time_to_live)
            else:
                pipeline.set(change.key, _scalar(change.value), ex=self._time_to_live)
        try:
            pipeline.execute()
        except (self._redis.ConnectionError, self._redis.TimeoutError, self._redis.BusyLoadingError) as error:
            raise RetryLaterError(f"Redis is unavailable: {error}") from error

    def close(self) -> None:
        self._client.close()


def _scalar(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (str, bytes, int, float)):
        return json.dumps(plain_value(value), ensure_ascii=False)
    return value
