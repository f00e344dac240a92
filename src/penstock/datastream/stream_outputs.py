"""Where the records of a stream end: sinks, the caller, DataFrames, caches.

It imports one module per way out of a stream.
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
    """The methods of a stream after which its records leave the job."""

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Prints the records on the driver: ``n> value``, without the ``n> `` at parallelism 1."""
        sink = PrintSink(sink_identifier, type_info=self._transformation.output_type)
        return self.sink_to(sink).name("Print to Std. Out")

    def print_to_err(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Like print, to the error output."""
        sink = PrintSink(sink_identifier, to_std_err=True, type_info=self._transformation.output_type)
        return self.sink_to(sink).name("Print to Std. Err")

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Writes the records to a sink."""
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
        """Calls a SinkFunction, or a plain function, for every record.

        A TwoPhaseCommitSinkFunction or a GenericWriteAheadSink delivers with the checkpoints.
        """
        if isinstance(sink_func, Sink):  # StreamingFileSink and JdbcSink are sinks of either kind in PyFlink
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
        """Runs the job and iterates over the records of this stream; with a limit, a list of at most so many."""
        from penstock.datastream.collect import execute_and_collect

        return execute_and_collect(cast("DataStream[T]", self), job_execution_name, limit)

    def collect(self) -> CloseableIterator[T]:
        """Runs the job and iterates over the records of this stream, with ``for`` or ``async for``, as they come.

        Use it in a ``with`` block if you may stop before the end: leaving the block cancels the job.
        """
        return self.execute_and_collect()

    def show(self, n: int = 10) -> None:
        """Runs the job until there are ``n`` records of this stream and prints them as a table."""
        from penstock.datastream.show import text_table

        print(text_table(self.execute_and_collect(limit=n)))  # noqa: T201 - it is what the method is for

    def collect_async(self) -> Iterator[T]:
        """The records of this stream once the job is executed: iterate after ``env.execute_async()``."""
        from penstock.datastream.collect import collect_async

        return collect_async(cast("DataStream[T]", self))

    def to_dataframe(self, schema: Any = None) -> Any:
        """The records as a Spark DataFrame, streaming unless the job runs in BATCH mode."""
        from penstock.spark.interop import stream_to_dataframe

        self._env.check_open()
        settings = self._env.job_settings(None)
        return stream_to_dataframe(self._env.spark_session(settings), self._transformation, settings, schema)

    def _repr_html_(self) -> str:
        """In a notebook: a picture of the operators that make the stream."""
        from penstock.datastream.notebook import stream_html

        return stream_html(cast("DataStream[T]", self))

    def cache(self) -> CachedDataStream[T]:
        """Keeps the records of this stream for later jobs; see CachedDataStream."""
        from penstock.datastream.cached import CachedDataStream

        self._operators("cache")
        return CachedDataStream(self._env, self._transformation)
