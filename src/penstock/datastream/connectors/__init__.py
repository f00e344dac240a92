"""Sources and sinks."""

from __future__ import annotations

from penstock.common.unsupported import refuse_missing_names
from penstock.datastream.connectors.base import (
    DeliveryGuarantee,
    Sink,
    Source,
    StreamTransformer,
    SupportsPreprocessing,
)
from penstock.datastream.connectors.collection import CollectionSource
from penstock.datastream.connectors.datagen import DataGeneratorSource, GeneratorFunction
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.connectors.rate_limit import RateLimitedSource, RateLimiterStrategy
from penstock.datastream.connectors.sinks import CollectSink, DiscardingSink, PrintSink
from penstock.datastream.connectors.text_file import TextFileSource

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

__getattr__ = refuse_missing_names(__name__)
