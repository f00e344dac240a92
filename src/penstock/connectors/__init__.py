"""Sources and sinks. `base.py` has the contracts. Connectors that need a client library have their own modules."""

from __future__ import annotations

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
