"""Streams, the building blocks of programs. Calls only build a graph; nothing runs before ``env.execute()``.

The other kinds of streams have their own modules. You can import them from here too, as in PyFlink.

This module imports the operators of all its methods.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.typeinfo import TypeInformation, Types
from penstock.common.typeinfo.base import checked_type
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.core.functions import (
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
)
from penstock.core.output_tag import OutputTag
from penstock.core.return_values import check_returns
from penstock.core.state import MapStateDescriptor
from penstock.datastream.event_time import Length, event_time_strategy
from penstock.datastream.function_checks import checked_function
from penstock.datastream.key_selector import key_function
from penstock.datastream.projection import Projection
from penstock.datastream.pyflink_imports import imported_names
from penstock.datastream.sink import DataStreamSink
from penstock.datastream.stream_outputs import StreamOutputs
from penstock.graph.transformation import (
    OneInputTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    SourceTransformation,
    Transformation,
    TwoInputTransformation,
    UnionTransformation,
)
from penstock.runtime.exchange import partitioner as partitioners
from penstock.runtime.operators.function_operator import FunctionOperator
from penstock.runtime.operators.operator import StreamOperator
from penstock.runtime.operators.process import ProcessOperator
from penstock.runtime.operators.stateless import FilterOperator, FlatMapOperator, MapOperator
from penstock.runtime.operators.timestamps import TimestampsAndWatermarksOperator
from penstock.runtime.operators.type_check import declare_output_type

if TYPE_CHECKING:
    from penstock.common.execution_config import ExecutionConfig
    from penstock.core.window import GlobalWindow, Window, WindowAssigner
    from penstock.datastream.broadcast import BroadcastConnectedStream, BroadcastStream
    from penstock.datastream.cached import CachedDataStream
    from penstock.datastream.collect import CloseableIterator
    from penstock.datastream.connected_streams import ConnectedStreams
    from penstock.datastream.joined_streams import CoGroupedStreams, JoinedStreams
    from penstock.datastream.keyed_stream import KeyedStream
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
    from penstock.datastream.windowed_stream import AllWindowedStream, WindowedStream

__all__ = [
    "AllWindowedStream",
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CachedDataStream",
    "CloseableIterator",
    "CoGroupedStreams",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "JoinedStreams",
    "KeyedStream",
    "WindowedStream",
]

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")
K = TypeVar("K")
W = TypeVar("W", bound="Window")

_ELSEWHERE = {
    "AllWindowedStream": "windowed_stream",
    "BroadcastConnectedStream": "broadcast",
    "BroadcastStream": "broadcast",
    "CachedDataStream": "cached",
    "CloseableIterator": "collect",
    "CoGroupedStreams": "joined_streams",
    "ConnectedStreams": "connected_streams",
    "JoinedStreams": "joined_streams",
    "KeyedStream": "keyed_stream",
    "WindowedStream": "windowed_stream",
}


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        return getattr(importlib.import_module(f"penstock.datastream.{_ELSEWHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class DataStream(StreamOutputs[T]):
    """A stream of records of one type."""

    def __init__(self, env: StreamExecutionEnvironment, transformation: Transformation) -> None:
        self._env = env
        self._transformation = transformation
        env.note_default_parallelism(transformation)

    # Name, id, type

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        return self._env

    def get_execution_config(self) -> ExecutionConfig:
        return self._env.get_config()

    def get_name(self) -> str:
        """Return the operator's name; for a source, without the prefix that plans show."""
        name = self._transformation.name
        return name.removeprefix("Source: ") if isinstance(self._transformation, SourceTransformation) else name

    def get_id(self) -> int:
        """Return the number of the node in the graph."""
        return self._transformation.id

    def get_type(self) -> TypeInformation[T]:
        """Return the declared type of the records, or the type of pickled values if none is declared."""
        return self._transformation.output_type or Types.PICKLED_BYTE_ARRAY()

    def get_parallelism(self) -> int:
        return self._transformation.stream_parallelism or self._env.get_parallelism()

    def get_transformation(self) -> Transformation:
        """Return the node of the graph."""
        return self._transformation

    def returns(self, type_info: TypeInformation[R]) -> DataStream[R]:
        """Declare the type of the records. Each record is checked against it."""
        (transformation,) = self._operators("returns")
        transformation.output_type = checked_type(type_info, "the output type")
        if isinstance(transformation, (OneInputTransformation, TwoInputTransformation)):
            declare_output_type(transformation.operator, type_info)
        return cast("DataStream[R]", self)

    # One record at a time

    def map(
        self, func: Callable[[T], R] | MapFunction[T, R], output_type: TypeInformation[Any] | None = None
    ) -> DataStream[R]:
        """Apply a function to each record; emit its result."""
        return self.apply_operator("Map", MapOperator(checked_function(func, MapFunction, "map")), output_type)

    def flat_map(
        self,
        func: Callable[[T], Iterable[R] | None] | FlatMapFunction[T, R],
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[R]:
        """Apply a function that returns an iterable, or yields; emit each of its elements."""
        return self.apply_operator(
            "Flat Map", FlatMapOperator(checked_function(func, FlatMapFunction, "flat_map")), output_type
        )

    def filter(self, func: Callable[[T], Any] | FilterFunction[T]) -> DataStream[T]:
        """Keep the records for which the function is true."""
        return self._keeping_type("Filter", FilterOperator(checked_function(func, FilterFunction, "filter")))

    def process(
        self,
        func: ProcessFunction[T, R] | KeyedProcessFunction[Any, T, R],
        output_type: TypeInformation[Any] | None = None,
    ) -> DataStream[R]:
        """Apply a function with access to timestamps, clocks and side outputs."""
        if isinstance(func, KeyedProcessFunction):
            raise InvalidProgramError("a KeyedProcessFunction needs keys: call key_by() before process()")
        return self.apply_operator(
            "Process", ProcessOperator(checked_function(func, ProcessFunction, "process")), output_type
        )

    def project(self, *field_indexes: int) -> DataStream[Any]:
        """Keep some fields of tuples or rows, in the order given."""
        projection = Projection(field_indexes)
        return self.transform(
            "Projection", MapOperator(projection), projection.type_of(self._transformation.output_type)
        )

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream[T]:
        """Assign timestamps to records and watermarks to the stream, in place of existing ones.

        It runs with the parallelism of the stream: each subtask sees the records of one subtask, in their order.
        """
        if not isinstance(watermark_strategy, WatermarkStrategy):
            raise InvalidProgramError(f"expected a WatermarkStrategy, got {shorten(watermark_strategy)}")
        interval = self._env.get_config().get_auto_watermark_interval()
        stamped = self._keeping_type(
            "Timestamps/Watermarks", TimestampsAndWatermarksOperator(watermark_strategy, interval)
        )
        stamped.get_transformation().parallelism = self._transformation.stream_parallelism
        return stamped

    def with_event_time(
        self, field: str | int | Callable[[T], Any], *, max_delay: Length = 0, idle_after: Length | None = None
    ) -> DataStream[T]:
        """Take event time from a field of the records: ms since the epoch, a datetime or an Instant.

        A record may be up to ``max_delay`` behind the latest one. A source that is silent for ``idle_after`` no longer
        holds back event time.
        """
        return self.assign_timestamps_and_watermarks(event_time_strategy(field, max_delay, idle_after))

    # Several streams

    def union(self, *streams: DataStream[T]) -> DataStream[T]:
        """Merge this stream with others of the same type."""
        for stream in streams:
            if not isinstance(stream, DataStream):
                raise InvalidProgramError(f"union() takes streams, got {shorten(stream)}")
            self._check_same_environment(stream)
        members = [stream.get_transformation() for stream in (self, *streams)]
        types = {member.output_type for member in members if member.output_type is not None}
        if len(types) > 1:
            names = ", ".join(sorted(map(repr, types)))
            raise InvalidProgramError(f"union() needs streams of the same type, got {names}: map them to one first")
        merged = UnionTransformation(name="Union", streams=members, output_type=next(iter(types), None))
        return DataStream(self._env, merged)

    @overload
    def connect(self, ds: DataStream[U]) -> ConnectedStreams[T, U]: ...
    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...
    def connect(self, ds: DataStream[Any] | BroadcastStream) -> ConnectedStreams[T, Any] | BroadcastConnectedStream:
        """Combine two streams, possibly of different types, in one operator; or a stream with a broadcast stream."""
        from penstock.datastream.broadcast import BroadcastConnectedStream, BroadcastStream
        from penstock.datastream.connected_streams import ConnectedStreams

        if isinstance(ds, BroadcastStream):
            self._check_same_environment(ds.input_stream)
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        if not isinstance(ds, DataStream):
            raise InvalidProgramError(f"connect() takes a stream or a broadcast stream, got {shorten(ds)}")
        self._check_same_environment(ds)
        return ConnectedStreams(self, ds)

    def join(self, other: DataStream[U]) -> JoinedStreams[T, U]:
        """Join records with the same key and window: ``join(other).where(..).equal_to(..).window(..).apply(..)``."""
        from penstock.datastream.joined_streams import JoinedStreams

        self._check_same_environment(other)
        return JoinedStreams(self, other)

    def co_group(self, other: DataStream[U]) -> CoGroupedStreams[T, U]:
        """Group the records of both streams by key and window; one side may be empty."""
        from penstock.datastream.joined_streams import CoGroupedStreams

        self._check_same_environment(other)
        return CoGroupedStreams(self, other)

    def get_side_output(self, output_tag: OutputTag[R]) -> DataStream[R]:
        """Return the records that this operator emits under a tag. Tags with the same id are equal."""
        if not isinstance(output_tag, OutputTag):
            raise InvalidProgramError(f"get_side_output() takes an OutputTag, got {shorten(output_tag)}")
        _check_emits_side_outputs(self._transformation, output_tag)
        known = self._env.side_output_types.setdefault(
            (self._transformation.id, output_tag.tag_id), output_tag.type_info
        )
        if known != output_tag.type_info:
            raise InvalidProgramError(
                f"the side output '{output_tag.tag_id}' of '{self._transformation.name}' is requested with two types: "
                f"{known!r} and {output_tag.type_info!r}"
            )
        side = SideOutputTransformation(
            name=f"Side Output {output_tag.tag_id}",
            input=self._transformation,
            tag_id=output_tag.tag_id,
            output_type=output_tag.type_info,
        )
        return DataStream(self._env, side)

    # Partitioning

    @overload
    def key_by(
        self, key_selector: Callable[[T], K] | KeySelector[T, K], key_type: TypeInformation[Any] | None = None
    ) -> KeyedStream[K, T]: ...
    @overload
    def key_by(
        self,
        key_selector: int | str | list[Any] | tuple[Any, ...],
        *more_keys: Any,
        key_type: TypeInformation[Any] | None = None,
    ) -> KeyedStream[Any, T]: ...
    @overload
    def key_by(
        self,
        key_selector: Callable[[T], Any] | KeySelector[T, Any],
        second_key: Callable[[T], Any] | KeySelector[T, Any] | int | str,
        /,
        *more_keys: Any,
        key_type: TypeInformation[Any] | None = None,
    ) -> KeyedStream[Any, T]: ...
    def key_by(
        self, key_selector: Any, *more_keys: Any, key_type: TypeInformation[Any] | None = None
    ) -> KeyedStream[Any, T]:
        """Partition the stream by key: records with the same key go to the same subtask and share keyed state.

        A key is a function, a KeySelector, a field position or name (``"address.zip"``), or several of these.
        """
        from penstock.datastream.keyed_stream import KeyedStream

        if more_keys and (more_keys[-1] is None or isinstance(more_keys[-1], TypeInformation)):
            *rest, key_type = more_keys  # PyFlink's second parameter
            more_keys = tuple(rest)
        if key_type is not None:
            checked_type(key_type, "the key type")
        source = self._unpartitioned()
        key = key_function(key_selector, *more_keys, record_type=source.output_type)
        return KeyedStream(self._env, source, key, key_type)

    def partition_custom(
        self,
        partitioner: Callable[[K, int], int] | Partitioner[K],
        key_selector: Callable[[T], K] | KeySelector[T, K],
    ) -> DataStream[T]:
        """Send each record to the subtask that ``partitioner(key, number_of_subtasks)`` returns."""
        partition = partitioner.partition if isinstance(partitioner, Partitioner) else partitioner
        if not callable(partition):
            raise InvalidProgramError(f"expected a Partitioner or a function, got {shorten(partitioner)}")
        check_returns(partition, "partition", "the number of a subtask")
        key = key_function(key_selector, record_type=self._transformation.output_type)
        return self._partition(partitioners.CustomPartitioner(partition, key))

    def shuffle(self) -> DataStream[T]:
        """Send records to random subtasks."""
        return self._partition(partitioners.ShufflePartitioner())

    def rebalance(self) -> DataStream[T]:
        """Send records to all subtasks in turn."""
        return self._partition(partitioners.RebalancePartitioner())

    def rescale(self) -> DataStream[T]:
        """Send records to some subtasks in turn. Cheaper than rebalance if one parallelism divides the other."""
        return self._partition(partitioners.RescalePartitioner())

    def forward(self) -> DataStream[T]:
        """Send records to the subtask with the same number."""
        return self._partition(partitioners.ForwardPartitioner())

    def global_(self) -> DataStream[T]:
        """Send all records to the first subtask. Java's name is a keyword: ``getattr(stream, "global")``."""
        return self._partition(partitioners.GlobalPartitioner())

    @overload
    def broadcast(self, broadcast_state_descriptor: None = None) -> DataStream[T]: ...
    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor[Any, Any],
        *other_broadcast_state_descriptors: MapStateDescriptor[Any, Any],
    ) -> BroadcastStream: ...
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor[Any, Any] | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor[Any, Any],
    ) -> DataStream[T] | BroadcastStream:
        """Send each record to every subtask. With state descriptors, return a BroadcastStream for ``connect()``."""
        from penstock.datastream.broadcast import BroadcastStream

        if broadcast_state_descriptor is None:
            return self._partition(partitioners.BroadcastPartitioner())
        descriptors = [broadcast_state_descriptor, *other_broadcast_state_descriptors]
        return BroadcastStream(self._partition(partitioners.BroadcastPartitioner()), descriptors)

    # Windows over the whole stream

    def window_all(self, window_assigner: WindowAssigner[Any, W]) -> AllWindowedStream[T, W]:
        """Group all records into windows, in one subtask."""
        from penstock.datastream.windowed_stream import AllWindowedStream

        return AllWindowedStream(self, window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream[T, GlobalWindow]:
        """Group all records into windows of ``size`` records, in one subtask."""
        from penstock.datastream.windowed_stream import count_window_all

        return count_window_all(self, size, slide)

    # Internals

    if not TYPE_CHECKING:  # type checkers must not see this method

        def __iter__(self) -> Any:
            """Explain how to iterate over the records."""
            raise TypeError("a stream has no records before the job runs: use 'for record in stream.collect()'")

        def __getattr__(self, name: str) -> Any:
            """Explain that a method needs a keyed stream."""
            from penstock.datastream.keyed_stream import KeyedStream

            if name.startswith("_") or not hasattr(KeyedStream, name):
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)
            instead = f", or {name}_all()" if hasattr(type(self), f"{name}_all") else ""
            raise AttributeError(f"{name}() needs keys: call key_by() before it{instead}", name=name, obj=self)

    def apply_operator(
        self, name: str, operator: FunctionOperator, output_type: TypeInformation[Any] | None
    ) -> DataStream[Any]:
        """Apply an operator whose output type is declared, by an argument or by the function itself."""
        produced = getattr(operator.function, "get_produced_type", None)
        if output_type is None and produced is not None:
            output_type = produced()
        declare_output_type(operator, output_type)
        return self.transform(name, operator, output_type)

    def _keeping_type(self, name: str, operator: StreamOperator) -> DataStream[T]:
        return self.transform(name, operator, self._transformation.output_type)

    def transform(
        self, name: str, operator: StreamOperator, output_type: TypeInformation[Any] | None
    ) -> DataStream[Any]:
        self._env.check_open()
        transformation = OneInputTransformation(
            name=name, input=self._transformation, operator=operator, output_type=output_type
        )
        return DataStream(self._env, transformation)

    def _partition(self, partitioner: partitioners.Partitioner) -> DataStream[T]:
        self._env.check_open()
        source = self._unpartitioned()
        transformation = PartitionTransformation(
            name="Partition", input=source, partitioner=partitioner, output_type=source.output_type
        )
        return DataStream(self._env, transformation)

    def _unpartitioned(self) -> Transformation:
        """Drop partitionings: only the last one before an operator has an effect."""
        transformation = self._transformation
        while isinstance(transformation, PartitionTransformation):
            transformation = transformation.input
        return transformation

    def _check_same_environment(self, other: DataStream[Any]) -> None:
        self._env.check_open()
        if not isinstance(other, DataStream):
            raise InvalidProgramError(f"expected a stream, got {shorten(other)}")
        if other._env is not self._env:
            raise InvalidProgramError("streams of different environments cannot be combined")


setattr(DataStream, "global", DataStream.global_)


def _check_emits_side_outputs(transformation: Transformation, tag: OutputTag) -> None:
    operator = getattr(transformation, "operator", None)
    silent = isinstance(transformation, SourceTransformation) or isinstance(operator, (MapOperator, FilterOperator))
    if silent:
        raise InvalidProgramError(
            f"'{transformation.name}' has no side output '{tag.tag_id}': only process, flat_map and window operators "
            "emit to side outputs"
        )


if not TYPE_CHECKING:
    __getattr__ = imported_names(__name__)
