"""Sources and sinks. Modules load on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.common.unsupported import refuse_missing_names
from penstock.connectors.base import (
    DeliveryGuarantee,
    Sink,
    Source,
    StreamTransformer,
    SupportsPreprocessing,
)
from penstock.connectors.collection import CollectionSource
from penstock.connectors.datagen import DataGeneratorSource, GeneratorFunction
from penstock.connectors.number_seq import NumberSequenceSource
from penstock.connectors.rate_limit import RateLimitedSource, RateLimiterStrategy
from penstock.connectors.sinks import CollectSink, DiscardingSink, PrintSink
from penstock.connectors.text_file import TextFileSource

__all__ = [
    "CollectSink",
    "CollectionSource",
    "DataGeneratorSource",
    "DeliveryGuarantee",
    "DiscardingSink",
    "GeneratorFunction",
    "NumberSequenceSource",
    "PrintSink",
    "RateLimitedSource",
    "RateLimiterStrategy",
    "Sink",
    "Source",
    "StreamTransformer",
    "SupportsPreprocessing",
    "TextFileSource",
]

# PyFlink exports these names from here, too.
_MODULES = {
    "dynamic_kafka": """
        DynamicKafkaSource DynamicKafkaSourceBuilder KafkaMetadataService KafkaRecordDeserializationSchema
        KafkaStreamSetSubscriber KafkaStreamSubscriber SingleClusterTopicMetadataService StreamPatternSubscriber
    """,
    "file_system": """
        BucketAssigner FileEnumeratorProvider FileSink FileSource FileSourceBuilder FileSplitAssignerProvider
        OutputFileConfig RollingPolicy StreamFormat StreamingFileSink
    """,
    "jdbc": "JdbcConnectionOptions JdbcExecutionOptions JdbcSink",
    "kafka": "FlinkKafkaConsumer FlinkKafkaProducer KafkaSink KafkaSource Semantic",
    "rabbitmq": "RMQConnectionConfig RMQSink RMQSource",
}
_HOME = {name: f"penstock.connectors.{module}" for module, names in _MODULES.items() for name in names.split()}
_refuse = refuse_missing_names(__name__)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        return getattr(import_module(_HOME[name]), name) if name in _HOME else _refuse(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
