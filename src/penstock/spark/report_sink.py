"""Delivers a batch's rows to the job master: with Penstock's Spark sink if its class exists, else with foreachBatch."""

from __future__ import annotations

import contextlib
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.spark.jvm_classes import REPORT_SINK

__all__ = ["OnBatch", "start_query"]

OnBatch = Callable[[list[bytes], int], None]
"""Called with the frames that reached the driver and Spark's batch id. An exception fails the batch."""

_LENGTH = struct.Struct(">i")


@contextlib.contextmanager
def start_query(spark: SparkSession, writer: DataStreamWriter, on_batch: OnBatch) -> Iterator[StreamingQuery]:
    """Start a query whose batches go to ``on_batch``. It should have stopped at the end of the block."""
    sink = _sink_class(spark)
    if sink is None:
        yield writer.foreachBatch(lambda frame, batch_id: on_batch(_collected(frame), batch_id)).start()
        return
    gateway = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    name = uuid4().hex
    with tempfile.TemporaryDirectory(prefix="penstock-batches-", ignore_cleanup_errors=True) as directory:
        sink.register(name, _Listener(on_batch), directory)
        try:
            yield writer.format(REPORT_SINK).option("listener", name).start()
        finally:
            with contextlib.suppress(Py4JError, OSError):
                sink.forget(name)


class _Listener:
    """The Python side of ``ReportSink.Listener``."""

    def __init__(self, on_batch: OnBatch) -> None:
        self._on_batch = on_batch

    def stored(self, batch_id: int, path: str) -> None:
        """Handle a large batch. Called by Spark's stream thread."""
        self.batch(batch_id, Path(path).read_bytes())

    def batch(self, batch_id: int, data: bytes) -> None:
        """Handle a batch. Called by Spark's stream thread."""
        frames = []
        position = 0
        while position < len(data):
            (length,) = _LENGTH.unpack_from(data, position)
            position += _LENGTH.size + length
            frames.append(data[position - length : position])
        self._on_batch(frames, batch_id)

    class Java:
        """Required by py4j."""

        implements = (f"{REPORT_SINK}$Listener",)


def _sink_class(spark: SparkSession) -> Any | None:
    """Return the sink's class in Spark's JVM, or None in a JVM that Penstock did not start."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    try:
        jvm.java.lang.Class.forName(REPORT_SINK)
    except Py4JError:
        return None
    return jvm.penstock.spark.ReportSink


def _collected(frame: DataFrame) -> list[bytes]:
    return [bytes(row.frame) for row in frame.collect()]
