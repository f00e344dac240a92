"""A stage with state: one transformWithState, one call per channel and batch."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from penstock.spark import worker
from penstock.spark.failures import raise_encoded
from penstock.spark.worker_tuning import tune_worker

_PAGE_KEY = StructType([StructField("id", StringType())])
_PAGE_VALUE = StructType([StructField("blob", BinaryType())])
_META = "meta"
_TOKEN_BYTES = 12


class SparkPageStore:
    """Pages in a Spark MapState: one round trip a call."""

    __slots__ = ("_pages",)

    def __init__(self, pages: Any) -> None:
        self._pages = pages

    def get(self, page_id: str) -> bytes | None:
        """Read a page."""
        value = self._pages.getValue((page_id,))
        return None if value is None else bytes(value[0])

    def put(self, page_id: str, blob: bytes) -> None:
        """Write a page."""
        self._pages.updateValue((page_id,), (blob,))

    def remove(self, page_id: str) -> None:
        """Remove a page."""
        self._pages.removeKey((page_id,))


class StageProcessor(StatefulProcessor):
    """Runs the tasks of one level; Spark's grouping key is the channel."""

    def __init__(self, job_file: str, level: int, channel_keys: list[int]) -> None:
        self._job_file = job_file
        self._level = level
        self._keys = channel_keys

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the one state variable; each costs milliseconds. Spark also calls this on the driver, for the schema."""
        self._pages = handle.getMapState("pages", _PAGE_KEY, _PAGE_VALUE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N803
        """One batch of one channel."""
        tune_worker()
        try:
            yield from self._run(self._keys.index(key[0]), rows)
        except BaseException as error:
            raise_encoded(error)

    def _run(self, channel: int, rows: Iterator[Row]) -> Iterator[Row]:
        store = SparkPageStore(self._pages)
        stored = store.get(_META)  # a random token, then the small part of the state
        token = None if stored is None else stored[:_TOKEN_BYTES]
        live = worker.take_stage(self._job_file, self._level, channel, token)
        if live is None:
            snapshots = {} if stored is None else pickle.loads(stored[_TOKEN_BYTES:])
            live = worker.new_stage(self._job_file, self._level, channel, store, snapshots)
        live.store.target = store
        out = [
            Row(channel=self._keys[target], frame=frame)
            for target, frame in live.stage.run(bytes(row.frame) for row in rows)
        ]
        live.token = os.urandom(_TOKEN_BYTES)
        store.put(_META, live.token + pickle.dumps(live.stage.snapshots, 5))
        worker.keep_stage(self._job_file, self._level, channel, live)
        yield from out

    def close(self) -> None:
        """Nothing to release: live tasks stay for the next batch."""
