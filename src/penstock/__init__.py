"""Penstock: Flink's programming model for Python, on Apache Spark.

``import penstock as ps`` offers the names that most programs need; each is loaded when it is first used.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.cep import (
        CEP,
        Pattern,
    )
    from penstock.common import (
        Configuration,
        DeserializationSchema,
        Duration,
        Encoder,
        JobClient,
        Row,
        RowKind,
        SerializationSchema,
        SimpleStringSchema,
        Time,
        TimestampAssigner,
        TypeInformation,
        Types,
        Watermark,
        WatermarkGenerator,
        WatermarkStrategy,
    )
    from penstock.connectors.file_system import (
        FileSink,
        FileSource,
        StreamFormat,
    )
    from penstock.connectors.hybrid_source import (
        HybridSource,
    )
    from penstock.connectors.jdbc import (
        JdbcSink,
    )
    from penstock.connectors.kafka import (
        KafkaOffsetsInitializer,
        KafkaRecordSerializationSchema,
        KafkaSink,
        KafkaSource,
    )
    from penstock.core.state import (
        AggregatingState,
        AggregatingStateDescriptor,
        ListState,
        ListStateDescriptor,
        MapState,
        MapStateDescriptor,
        ReducingState,
        ReducingStateDescriptor,
        ValueState,
        ValueStateDescriptor,
    )
    from penstock.core.state_ttl import (
        StateTtlConfig,
    )
    from penstock.core.window import (
        ContinuousEventTimeTrigger,
        ContinuousProcessingTimeTrigger,
        CountEvictor,
        CountTrigger,
        CountWindow,
        EventTimeSessionWindows,
        Evictor,
        GlobalWindow,
        GlobalWindows,
        ProcessingTimeSessionWindows,
        PurgingTrigger,
        SlidingEventTimeWindows,
        SlidingProcessingTimeWindows,
        TimeEvictor,
        TimeWindow,
        Trigger,
        TriggerResult,
        TumblingEventTimeWindows,
        TumblingProcessingTimeWindows,
        Window,
        WindowAssigner,
    )
    from penstock.core.window.shorthand import (
        sessions,
        sliding,
        tumbling,
    )
    from penstock.datastream import (
        AggregateFunction,
        AsyncDataStream,
        AsyncFunction,
        BroadcastProcessFunction,
        CheckpointingMode,
        CoFlatMapFunction,
        CoMapFunction,
        ConnectedStreams,
        CoProcessFunction,
        DataStream,
        FilterFunction,
        FlatMapFunction,
        KeyedBroadcastProcessFunction,
        KeyedCoProcessFunction,
        KeyedProcessFunction,
        KeyedStream,
        KeySelector,
        MapFunction,
        OutputTag,
        ProcessAllWindowFunction,
        ProcessFunction,
        ProcessJoinFunction,
        ProcessWindowFunction,
        ReduceFunction,
        RuntimeContext,
        RuntimeExecutionMode,
        SinkFunction,
        SourceFunction,
        StreamExecutionEnvironment,
        WindowedStream,
    )
    from penstock.datastream.aggregates import (
        Collect,
        Count,
        CountDistinct,
        Max,
        Mean,
        Min,
        Quantile,
        Sum,
        Top,
    )
    from penstock.datastream.stateful_function import (
        Timers,
    )
    from penstock.formats.records import (
        Csv,
        Json,
        Text,
    )
    from penstock.table import (
        StreamTableEnvironment,
        Table,
        TableEnvironment,
    )
    from penstock.testing import (
        MiniCluster,
    )

__version__ = "0.1.0"

_MODULES = {
    "penstock.cep": "CEP Pattern",
    "penstock.common": """
        Configuration DeserializationSchema Duration Encoder JobClient Row RowKind SerializationSchema
        SimpleStringSchema Time TimestampAssigner TypeInformation Types Watermark WatermarkGenerator
        WatermarkStrategy
    """,
    "penstock.connectors.file_system": "FileSink FileSource StreamFormat",
    "penstock.connectors.hybrid_source": "HybridSource",
    "penstock.connectors.jdbc": "JdbcSink",
    "penstock.connectors.kafka": "KafkaOffsetsInitializer KafkaRecordSerializationSchema KafkaSink KafkaSource",
    "penstock.core.state": """
        AggregatingState AggregatingStateDescriptor ListState ListStateDescriptor MapState MapStateDescriptor
        ReducingState ReducingStateDescriptor ValueState ValueStateDescriptor
    """,
    "penstock.core.state_ttl": "StateTtlConfig",
    "penstock.core.window": """
        ContinuousEventTimeTrigger ContinuousProcessingTimeTrigger CountEvictor CountTrigger CountWindow
        EventTimeSessionWindows Evictor GlobalWindow GlobalWindows ProcessingTimeSessionWindows PurgingTrigger
        SlidingEventTimeWindows SlidingProcessingTimeWindows TimeEvictor TimeWindow Trigger TriggerResult
        TumblingEventTimeWindows TumblingProcessingTimeWindows Window WindowAssigner
    """,
    "penstock.datastream": """
        AggregateFunction AsyncDataStream AsyncFunction BroadcastProcessFunction CheckpointingMode CoFlatMapFunction
        CoMapFunction CoProcessFunction ConnectedStreams DataStream FilterFunction FlatMapFunction
        KeyedBroadcastProcessFunction KeyedCoProcessFunction KeyedProcessFunction KeyedStream KeySelector
        MapFunction OutputTag ProcessAllWindowFunction ProcessFunction ProcessJoinFunction ProcessWindowFunction
        ReduceFunction RuntimeContext RuntimeExecutionMode SinkFunction SourceFunction StreamExecutionEnvironment
        WindowedStream
    """,
    "penstock.core.window.shorthand": "sessions sliding tumbling",
    "penstock.datastream.aggregates": "Collect Count CountDistinct Max Mean Min Quantile Sum Top",
    "penstock.datastream.stateful_function": "Timers",
    "penstock.formats.records": "Csv Json Text",
    "penstock.table": "StreamTableEnvironment Table TableEnvironment",
    "penstock.testing": "MiniCluster",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "CEP",
    "AggregateFunction",
    "AggregatingState",
    "AggregatingStateDescriptor",
    "AsyncDataStream",
    "AsyncFunction",
    "BroadcastProcessFunction",
    "CheckpointingMode",
    "CoFlatMapFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "Collect",
    "Configuration",
    "ConnectedStreams",
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "Count",
    "CountDistinct",
    "CountEvictor",
    "CountTrigger",
    "CountWindow",
    "Csv",
    "DataStream",
    "DeserializationSchema",
    "Duration",
    "Encoder",
    "EventTimeSessionWindows",
    "Evictor",
    "FileSink",
    "FileSource",
    "FilterFunction",
    "FlatMapFunction",
    "GlobalWindow",
    "GlobalWindows",
    "HybridSource",
    "JdbcSink",
    "JobClient",
    "Json",
    "KafkaOffsetsInitializer",
    "KafkaRecordSerializationSchema",
    "KafkaSink",
    "KafkaSource",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStream",
    "ListState",
    "ListStateDescriptor",
    "MapFunction",
    "MapState",
    "MapStateDescriptor",
    "Max",
    "Mean",
    "Min",
    "MiniCluster",
    "OutputTag",
    "Pattern",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ProcessingTimeSessionWindows",
    "PurgingTrigger",
    "Quantile",
    "ReduceFunction",
    "ReducingState",
    "ReducingStateDescriptor",
    "Row",
    "RowKind",
    "RuntimeContext",
    "RuntimeExecutionMode",
    "SerializationSchema",
    "SimpleStringSchema",
    "SinkFunction",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "SourceFunction",
    "StateTtlConfig",
    "StreamExecutionEnvironment",
    "StreamFormat",
    "StreamTableEnvironment",
    "Sum",
    "Table",
    "TableEnvironment",
    "Text",
    "Time",
    "TimeEvictor",
    "TimeWindow",
    "Timers",
    "TimestampAssigner",
    "Top",
    "Trigger",
    "TriggerResult",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "TypeInformation",
    "Types",
    "ValueState",
    "ValueStateDescriptor",
    "Watermark",
    "WatermarkGenerator",
    "WatermarkStrategy",
    "Window",
    "WindowAssigner",
    "WindowedStream",
    "__version__",
    "sessions",
    "sliding",
    "tumbling",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
