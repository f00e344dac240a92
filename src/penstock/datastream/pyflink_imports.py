"""Names that programs import from a PyFlink module which itself only imports them.

For example, ``from pyflink.datastream.functions import ValueStateDescriptor`` works in PyFlink. If programs use the
counterpart of a module this way, the module has ``__getattr__ = imported_names(__name__)``. Names load on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from penstock.common.unsupported import refuse_missing_names

__all__ = ["IMPORTED", "imported_names"]

_STATE = """
    AggregatingState AggregatingStateDescriptor BroadcastState ListState ListStateDescriptor MapState
    MapStateDescriptor ReadOnlyBroadcastState ReducingState ReducingStateDescriptor ValueState ValueStateDescriptor
"""
_FUNCTIONS = """
    AggregateFunction AllWindowFunction BroadcastProcessFunction CoFlatMapFunction CoMapFunction CoProcessFunction
    FilterFunction FlatMapFunction KeyedBroadcastProcessFunction KeyedCoProcessFunction KeyedProcessFunction
    KeySelector MapFunction Partitioner ProcessAllWindowFunction ProcessFunction ProcessWindowFunction ReduceFunction
    RuntimeContext SinkFunction WindowFunction
"""
_STREAMS = """
    AllWindowedStream BroadcastConnectedStream BroadcastStream CachedDataStream CloseableIterator ConnectedStreams
    DataStream
    DataStreamSink KeyedStream OutputTag SlotSharingGroup WindowedStream
"""
_WINDOWS = """
    CountSlidingWindowAssigner CountTumblingWindowAssigner CountWindowSerializer GlobalWindowSerializer
    MergingWindowAssigner TimeWindowSerializer Trigger WindowAssigner
"""
_TYPES = "Row Types TypeInformation RowTypeInfo"

IMPORTED: dict[str, dict[str, str]] = {
    "penstock.datastream.functions": {
        "penstock.datastream.state": _STATE,
        "penstock.datastream": "TimeDomain TimerService",
        "penstock.metrics": "MetricGroup",
    },
    "penstock.datastream.state": {
        "penstock.common.time": "Duration Time",
        "penstock.common.typeinfo": "Types TypeInformation",
    },
    "penstock.datastream.window": {
        "penstock.common": "Time Types",
        "penstock.common.constants": "MAX_LONG_VALUE MIN_LONG_VALUE",
        "penstock.common.serializer": "TypeSerializer",
        "penstock.datastream": "OutputTag ReduceFunction RuntimeContext",
        "penstock.datastream.state": "ReducingState ReducingStateDescriptor State StateDescriptor ValueStateDescriptor",
        "penstock.metrics": "MetricGroup",
    },
    "penstock.datastream.output_tag": {"penstock.common.typeinfo": "RowTypeInfo TypeInformation Types"},
    "penstock.datastream.data_stream": {
        "penstock.common": "ExecutionConfig Row WatermarkStrategy",
        "penstock.common.typeinfo": "RowTypeInfo TypeInformation Types",
        "penstock.common.watermark_strategy": "TimestampAssigner",
        "penstock.datastream": _STREAMS,
        "penstock.datastream.functions": _FUNCTIONS,
        "penstock.datastream.state": f"{_STATE} StateDescriptor",
        "penstock.datastream.window": _WINDOWS,
    },
    "penstock.datastream.stream_execution_environment": {
        "penstock.common": "Configuration ExecutionConfig JobClient JobExecutionResult Types WatermarkStrategy",
        "penstock.common.io": "InputFormat",
        "penstock.common.serializer": "TypeSerializer",
        "penstock.common.typeinfo": "TypeInformation",
        "penstock.datastream": """
            CheckpointConfig CheckpointingMode DataStream RuntimeExecutionMode SlotSharingGroup SourceFunction
        """,
        "penstock.datastream.connectors": "Source",
    },
    "penstock.datastream.connectors.file_system": {
        "penstock.common": "Duration",
        "penstock.common.serialization": "BulkWriterFactory Encoder RowDataBulkWriterFactory",
        "penstock.datastream.connectors.base": "Sink Source StreamTransformer SupportsPreprocessing",
        "penstock.datastream.functions": "SinkFunction",
    },
    "penstock.datastream.connectors.kafka": {
        "penstock.common": "DeserializationSchema Row SerializationSchema Types",
        "penstock.common.typeinfo": "TypeInformation",
        "penstock.datastream.connectors.base": """
            DeliveryGuarantee Sink Source StreamTransformer SupportsPreprocessing
        """,
        "penstock.datastream.functions": "SinkFunction SourceFunction",
    },
}
"""For each module, the names it takes from other modules, by origin."""


def imported_names(module: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module: names from other modules, and advice for missing names."""
    home = {name: origin for origin, names in IMPORTED[module].items() for name in names.split()}
    refuse = refuse_missing_names(module)

    def load(name: str) -> Any:
        return getattr(import_module(home[name]), name) if name in home else refuse(name)

    return load
