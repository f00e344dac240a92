"""A stage with state: one transformWithState, with one call per channel and batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.spark.failures import TaskFailureError, raise_encoded
from penstock.spark.page_store import PAGE_SCHEMA, PAGES, SparkPageStore
from penstock.spark.stage_host import run_stage
from penstock.spark.worker_tuning import tune_worker


class StageProcessor(StatefulProcessor):
    """Runs the tasks of one level. Spark's grouping key is the channel."""

    def __init__(self, job_file: str, level: int, channel_keys: list[str]) -> None:
        self._job_file = job_file
        self._level = level
        self._keys = channel_keys

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the only state variable: each costs milliseconds. Spark also calls this on the driver for the schema."""
        handle.getValueState(PAGES, PAGE_SCHEMA)
        self._client = handle._statefulProcessorApiClient

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N803
        """Run one batch of one channel."""
        tune_worker()
        try:
            channel = self._keys.index(key[0])
            store = SparkPageStore(self._client, f"{self._level}/{channel}")
            frames = [bytes(row.frame) for row in rows]
            out = run_stage(self._job_file, self._level, channel, store, frames)
            store.flush()
            for target, frame in out:
                yield Row(channel=self._keys[target], frame=frame)
        except TaskFailureError:
            raise
        except BaseException as error:
            raise_encoded(error)

    def close(self) -> None:
        """Release nothing: live tasks stay for the next batch."""
