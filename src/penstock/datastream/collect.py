"""Reads the records of a running job in the driver program."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from penstock.common.job_client import JobClient
from penstock.connectors.sinks import END, CollectSink
from penstock.datastream.data_stream import DataStream
from penstock.datastream.function_checks import check_limit
from penstock.graph.transformation import PartitionTransformation, SideOutputTransformation, UnionTransformation

__all__ = ["CloseableIterator", "collect_async", "execute_and_collect"]

T = TypeVar("T")


class CloseableIterator(Generic[T]):
    """Iterates over the records of a stream while its job runs. ``async for`` works too. Closing it cancels the job.

    Unless you read it to the end, use it in a ``with`` or ``async with`` block, or call :meth:`close`.
    """

    def __init__(self, sink: CollectSink, client: JobClient | None = None) -> None:
        self._sink = sink
        self._records = sink.records
        self._client: JobClient | None = None
        self._batch: Iterator[T] = iter(())
        self._closed = False
        if client is not None:
            self.attach(client)

    def attach(self, client: JobClient) -> None:
        """Set the job. The records end when the job ends."""
        self._client = client
        client.get_job_execution_result().add_done_callback(lambda _: self._records.put(END))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        while not self._closed:
            for record in self._batch:
                return record
            batch = self._records.get()
            if batch is END:
                self._finish()
                break
            self._batch = iter(batch)
        raise StopIteration

    next = __next__

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """Return the next record. It waits in a thread so that it does not block the event loop."""
        if not self._closed:
            for record in self._batch:
                return record
            try:
                record = await asyncio.to_thread(next, self, END)
            except asyncio.CancelledError:
                self.close()  # the end of the job also ends the thread
                raise
            if record is not END:
                return record
        raise StopAsyncIteration

    def _finish(self) -> None:
        self._closed = True
        self._sink.release()
        if self._client is not None:
            self._client.get_job_execution_result().result()  # raises if the job failed

    def close(self) -> None:
        """Cancel the job if it is still running."""
        if not self._closed:
            self._closed = True
            self._sink.release()
            if self._client is not None and not self._client.get_job_execution_result().done():
                self._client.cancel().result()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.close()


def execute_and_collect(
    stream: DataStream, job_name: str | None, limit: int | None
) -> CloseableIterator[Any] | list[Any]:
    """Run the job of a stream and return its records."""
    check_limit(limit)
    sink = _collected(stream)
    client = stream.get_execution_environment().execute_async(job_name or "DataStream Collect")
    records: CloseableIterator[Any] = CloseableIterator(sink, client)
    if limit is None:
        return records
    with records:
        return [record for _, record in zip(range(limit), records, strict=False)]


def collect_async(stream: DataStream) -> CloseableIterator[Any]:
    """Return an iterator whose records arrive with the next execution of the environment."""
    sink = _collected(stream)
    records: CloseableIterator[Any] = CloseableIterator(sink)
    stream.get_execution_environment().on_next_job(records.attach)
    return records


def _collected(stream: DataStream) -> CollectSink:
    """Return a sink with the parallelism of the stream: its records need no shuffle and keep their order."""
    sink = CollectSink()
    transformation = stream.get_transformation()
    while isinstance(transformation, (PartitionTransformation, SideOutputTransformation)):
        transformation = transformation.input
    parallelism = 1 if isinstance(transformation, UnionTransformation) else transformation.parallelism
    stream.sink_to(sink).name("Collect").get_transformation().parallelism = parallelism
    return sink
