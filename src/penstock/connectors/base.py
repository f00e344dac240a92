"""Base classes of connectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from penstock.core.sink import Committer, DeliveryGuarantee, Sink, SinkWriter, SinkWriterContext, WriterInitContext
from penstock.core.source import Boundedness, Source, SourceReader, SourceSplit, SplitEnumerator

if TYPE_CHECKING:
    from penstock.datastream.data_stream import DataStream

__all__ = [
    "Boundedness",
    "Committer",
    "DeliveryGuarantee",
    "Sink",
    "SinkWriter",
    "SinkWriterContext",
    "Source",
    "SourceReader",
    "SourceSplit",
    "SplitEnumerator",
    "StreamTransformer",
    "SupportsPreprocessing",
    "WriterInitContext",
]


class StreamTransformer(ABC):
    """Changes a stream before it reaches a sink."""

    @abstractmethod
    def apply(self, ds: DataStream) -> DataStream:
        """Return the stream that the sink reads."""


class SupportsPreprocessing(ABC):
    """For sinks whose input must be transformed first; ``sink_to`` does this."""

    @abstractmethod
    def get_transformer(self) -> StreamTransformer | None:
        """Return the transformer of the stream, or None."""
