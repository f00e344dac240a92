"""The DataStream API, under the names of ``pyflink.datastream``.

Names load on first use, so importing the package is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from penstock.common.unsupported import install_missing_modules

if TYPE_CHECKING:
    from penstock.core.functions import (
        AggregateFunction,
        AllWindowFunction,
        AsyncFunction,
        AsyncRetryPredicate,
        AsyncRetryStrategy,
        BroadcastProcessFunction,
        CheckpointedFunction,
        CheckpointListener,
        CoFlatMapFunction,
        CoGroupFunction,
        CoMapFunction,
        CoProcessFunction,
        FilterFunction,
        FlatJoinFunction,
        FlatMapFunction,
        JoinFunction,
        KeyedBroadcastProcessFunction,
        KeyedCoProcessFunction,
        KeyedProcessFunction,
        KeySelector,
        MapFunction,
        ParallelSourceFunction,
        Partitioner,
        ProcessAllWindowFunction,
        ProcessFunction,
        ProcessJoinFunction,
        ProcessWindowFunction,
        ReduceFunction,
        RuntimeContext,
        SinkFunction,
        SourceFunction,
        WindowFunction,
    )
    from penstock.core.output_tag import OutputTag
    from penstock.core.time_domain import TimeDomain
    from penstock.core.timerservice import TimerService
    from penstock.core.window import (
        CountWindow,
        GlobalWindow,
        MergingWindowAssigner,
        TimeWindow,
        Trigger,
        TriggerResult,
        Window,
        WindowAssigner,
    )
    from penstock.datastream.async_data_stream import AsyncDataStream
    from penstock.datastream.broadcast import BroadcastConnectedStream, BroadcastStream
    from penstock.datastream.cached import CachedDataStream
    from penstock.datastream.checkpoint_config import CheckpointConfig
    from penstock.datastream.checkpoint_storage import (
        CheckpointStorage,
        CustomCheckpointStorage,
        FileSystemCheckpointStorage,
        JobManagerCheckpointStorage,
    )
    from penstock.datastream.checkpointing_mode import CheckpointingMode
    from penstock.datastream.collect import CloseableIterator
    from penstock.datastream.connected_streams import ConnectedStreams
    from penstock.datastream.data_stream import DataStream
    from penstock.datastream.execution_mode import RuntimeExecutionMode
    from penstock.datastream.externalized_checkpoint_retention import (
        ExternalizedCheckpointCleanup,
        ExternalizedCheckpointRetention,
    )
    from penstock.datastream.joined_streams import CoGroupedStreams, IntervalJoin, JoinedStreams
    from penstock.datastream.keyed_stream import KeyedStream
    from penstock.datastream.sink import DataStreamSink
    from penstock.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
    from penstock.datastream.state_backend import (
        CustomStateBackend,
        EmbeddedRocksDBStateBackend,
        HashMapStateBackend,
        PredefinedOptions,
        StateBackend,
    )
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
    from penstock.datastream.windowed_stream import AllWindowedStream, WindowedStream

_MODULES = {
    "penstock.core.functions": [
        "AggregateFunction", "AllWindowFunction", "AsyncFunction", "AsyncRetryPredicate", "AsyncRetryStrategy",
        "BroadcastProcessFunction", "CheckpointListener", "CheckpointedFunction", "CoFlatMapFunction",
        "CoGroupFunction", "CoMapFunction", "CoProcessFunction", "FilterFunction", "FlatJoinFunction",
        "FlatMapFunction", "JoinFunction", "KeySelector", "KeyedBroadcastProcessFunction", "KeyedCoProcessFunction",
        "KeyedProcessFunction", "MapFunction", "ParallelSourceFunction", "Partitioner", "ProcessAllWindowFunction",
        "ProcessFunction", "ProcessJoinFunction", "ProcessWindowFunction", "ReduceFunction", "RuntimeContext",
        "SinkFunction", "SourceFunction", "WindowFunction",
    ],
    "penstock.core.output_tag": ["OutputTag"],
    "penstock.core.time_domain": ["TimeDomain"],
    "penstock.core.timerservice": ["TimerService"],
    "penstock.core.window": [
        "CountWindow", "GlobalWindow", "MergingWindowAssigner", "TimeWindow", "Trigger", "TriggerResult", "Window",
        "WindowAssigner",
    ],
    "penstock.datastream.async_data_stream": ["AsyncDataStream"],
    "penstock.datastream.broadcast": ["BroadcastConnectedStream", "BroadcastStream"],
    "penstock.datastream.cached": ["CachedDataStream"],
    "penstock.datastream.checkpoint_config": ["CheckpointConfig"],
    "penstock.datastream.checkpoint_storage": [
        "CheckpointStorage", "CustomCheckpointStorage", "FileSystemCheckpointStorage", "JobManagerCheckpointStorage",
    ],
    "penstock.datastream.checkpointing_mode": ["CheckpointingMode"],
    "penstock.datastream.collect": ["CloseableIterator"],
    "penstock.datastream.connected_streams": ["ConnectedStreams"],
    "penstock.datastream.data_stream": ["DataStream"],
    "penstock.datastream.execution_mode": ["RuntimeExecutionMode"],
    "penstock.datastream.externalized_checkpoint_retention": [
        "ExternalizedCheckpointCleanup", "ExternalizedCheckpointRetention",
    ],
    "penstock.datastream.joined_streams": ["CoGroupedStreams", "IntervalJoin", "JoinedStreams"],
    "penstock.datastream.keyed_stream": ["KeyedStream"],
    "penstock.datastream.sink": ["DataStreamSink"],
    "penstock.datastream.slot_sharing_group": ["MemorySize", "SlotSharingGroup"],
    "penstock.datastream.state_backend": [
        "CustomStateBackend", "EmbeddedRocksDBStateBackend", "HashMapStateBackend", "PredefinedOptions",
        "StateBackend",
    ],
    "penstock.datastream.stream_execution_environment": ["StreamExecutionEnvironment"],
    "penstock.datastream.windowed_stream": ["AllWindowedStream", "WindowedStream"],
}  # fmt: skip
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
    "AllWindowedStream",
    "AsyncDataStream",
    "AsyncFunction",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BroadcastConnectedStream",
    "BroadcastProcessFunction",
    "BroadcastStream",
    "CachedDataStream",
    "CheckpointConfig",
    "CheckpointListener",
    "CheckpointStorage",
    "CheckpointedFunction",
    "CheckpointingMode",
    "CloseableIterator",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoGroupedStreams",
    "CoMapFunction",
    "CoProcessFunction",
    "ConnectedStreams",
    "CountWindow",
    "CustomCheckpointStorage",
    "CustomStateBackend",
    "DataStream",
    "DataStreamSink",
    "EmbeddedRocksDBStateBackend",
    "ExternalizedCheckpointCleanup",
    "ExternalizedCheckpointRetention",
    "FileSystemCheckpointStorage",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "GlobalWindow",
    "HashMapStateBackend",
    "IntervalJoin",
    "JobManagerCheckpointStorage",
    "JoinFunction",
    "JoinedStreams",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStream",
    "MapFunction",
    "MemorySize",
    "MergingWindowAssigner",
    "OutputTag",
    "ParallelSourceFunction",
    "Partitioner",
    "PredefinedOptions",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RuntimeContext",
    "RuntimeExecutionMode",
    "SinkFunction",
    "SlotSharingGroup",
    "SourceFunction",
    "StateBackend",
    "StreamExecutionEnvironment",
    "TimeDomain",
    "TimeWindow",
    "TimerService",
    "Trigger",
    "TriggerResult",
    "Window",
    "WindowAssigner",
    "WindowFunction",
    "WindowedStream",
]


install_missing_modules()


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
