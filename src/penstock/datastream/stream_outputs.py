"""Outputs of a stream: sinks, the caller, DataFrames, caches.

This module imports one module for each output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from penstock.common.errors import InvalidProgramError, shorten
from penstock.connectors.base import SupportsPreprocessing
from penstock.connectors.sinks import PrintSink
from penstock.core.functions import SinkFunction
from penstock.core.sink import Sink
from penstock.datastream.function_checks import checked_function
from penstock.datastream.sink import DataStreamSink
from penstock.datastream.stream_settings import StreamSettings
from penstock.graph.transformation import SinkTransformation
from penstock.runtime.operators.operator import StreamOperator
from penstock.runtime.operators.sink import SinkOperator
from penstock.runtime.operators.sink_function import SinkFunctionOperator
from penstock.runtime.operators.transactional_sinks import transactional_sink

if TYPE_CHECKING:
    from penstock.datastream.cached import CachedDataStream
    from penstock.datastream.collect import CloseableIterator
    from penstock.datastream.data_stream import DataStream

__all__ = ["StreamOutputs"]

T = TypeVar("T")


class StreamOutputs(StreamSettings, Generic[T]):
    """The methods of a stream that take its records out of the job."""

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print the records on the driver as ``n> value``; at parallelism 1, without ``n> ``."""
        sink = PrintSink(sink_identifier, type_info=self._transformation.output_type)
        return self.sink_to(sink).name("Print to Std. Out")

    def print_to_err(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print the records to standard error on the driver."""
        sink = PrintSink(sink_identifier, to_std_err=True, type_info=self._transformation.output_type)
        return self.sink_to(sink).name("Print to Std. Err")

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write the records to a sink."""
        if not isinstance(sink, Sink):
            raise InvalidProgramError(f"sink_to() takes a Sink, got {shorten(sink)}; for a SinkFunction use add_sink()")
        return self._write_to(sink)

    def _write_to(self, sink: Sink, *, as_function: bool = False) -> DataStreamSink:
        stream: StreamOutputs[Any] = self
        if isinstance(sink, SupportsPreprocessing):
            transformer = sink.get_transformer()
            stream = self if transformer is None else transformer.apply(cast("DataStream[T]", self))
        return stream.attach_sink(type(sink).__name__, SinkOperator(sink, as_function=as_function))

    def add_sink(self, sink_func: SinkFunction | Sink | Callable[[Any], Any]) -> DataStreamSink:
        """Call a SinkFunction or a plain function for each record.

        A TwoPhaseCommitSinkFunction or a GenericWriteAheadSink commits with the checkpoints.
        """
        if isinstance(sink_func, Sink):  # StreamingFileSink and JdbcSink are used with both methods in PyFlink
            return self._write_to(sink_func, as_function=True)
        transactional = transactional_sink(sink_func)
        if transactional is not None:
            return self.attach_sink("Unnamed", SinkOperator(transactional))
        return self.attach_sink("Unnamed", SinkFunctionOperator(checked_function(sink_func, SinkFunction, "add_sink")))

    def attach_sink(self, name: str, operator: StreamOperator) -> DataStreamSink:
        self._env.check_open()
        sink = SinkTransformation(name=f"Sink: {name}", input=self._transformation, operator=operator)
        self._env.register_sink(sink)
        return DataStreamSink(self._env, sink)

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: None = None
    ) -> CloseableIterator[T]: ...
    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, *, limit: int) -> list[T]: ...
    @overload
    def execute_and_collect(self, job_execution_name: str | None, limit: int) -> list[T]: ...
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator[T] | list[T]:
        """Run the job and iterate over the records of this stream. With a limit, return a list of the first ones."""
        from penstock.datastream.collect import execute_and_collect

        return execute_and_collect(cast("DataStream[T]", self), job_execution_name, limit)

    def collect(self) -> CloseableIterator[T]:
        """Run the job and iterate over the records of this stream as they arrive, with ``for`` or ``async for``.

        If you may stop early, use it in a ``with`` block: leaving the block cancels the job.
        """
        return self.execute_and_collect()

    def show(self, n: int = 10) -> None:
        """Run the job until this stream has ``n`` records, and print them as a table."""
        from penstock.datastream.show import text_table

        print(text_table(self.execute_and_collect(limit=n)) or "(no records)")  # noqa: T201 - it is what the method is for

    def collect_async(self) -> Iterator[T]:
        """Return the records of this stream for the next execution. Iterate after ``env.execute_async()``."""
        from penstock.datastream.collect import collect_async

        return collect_async(cast("DataStream[T]", self))

    def to_dataframe(self, schema: Any = None) -> Any:
        """Return the records as a Spark DataFrame; a streaming one unless the job runs in BATCH mode."""
        from penstock.spark.interop import stream_to_dataframe

        self._env.check_open()
        settings = self._env.job_settings(None)
        return stream_to_dataframe(self._env.spark_session(settings), self._transformation, settings, schema)

    def _repr_html_(self) -> str:
        """Return a picture of the operators that compute the stream, for notebooks."""
        from penstock.datastream.notebook import stream_html

        return stream_html(cast("DataStream[T]", self))

    def cache(self) -> CachedDataStream[T]:
        """Cache the records of this stream for later jobs; see CachedDataStream."""
        from penstock.datastream.cached import CachedDataStream

        self._operators("cache")
        return CachedDataStream(self._env, self._transformation)
