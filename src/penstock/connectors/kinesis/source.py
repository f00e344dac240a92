"""The Kinesis source."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.serialization import DeserializationSchema
from penstock.common.typeinfo import TypeInformation
from penstock.common.watermark import Watermark, WatermarkGenerator, WatermarkOutput
from penstock.common.watermark_strategy import WatermarkGeneratorContext, WatermarkStrategy
from penstock.connectors.kinesis.alignment import Alignment, WatermarkTracker
from penstock.connectors.kinesis.client import boto3_package, check_properties
from penstock.connectors.kinesis.deserialization import KinesisDeserializationSchema, kinesis_schema
from penstock.connectors.kinesis.enumerator import KinesisEnumerator
from penstock.connectors.kinesis.reader import KinesisReader
from penstock.connectors.kinesis.settings import ConsumerSettings
from penstock.connectors.kinesis.shards import KinesisShardAssigner
from penstock.core.source import Boundedness, Source, SourceReader, SourceSplit, SplitEnumerator

__all__ = ["FlinkKinesisConsumer"]


class FlinkKinesisConsumer(Source):
    """Reads streams of Kinesis, for ``env.add_source``. Sequence numbers are part of the job's checkpoint.

    Each shard is a split with its own watermarks. A shard that is split or merged is read to its end before its
    successors. The timestamp of a record is its arrival time in Kinesis, unless there is a watermark assigner.

    >>> from penstock.common.serialization import SimpleStringSchema
    >>> consumer = FlinkKinesisConsumer(
    ...     "readings", SimpleStringSchema(), {"aws.region": "eu-west-1", "flink.stream.initpos": "TRIM_HORIZON"}
    ... )
    >>> consumer.is_bounded
    False
    """

    def __init__(
        self,
        streams: str | Sequence[str],
        deserializer: DeserializationSchema | KinesisDeserializationSchema,
        config_props: Mapping[str, Any],
    ) -> None:
        boto3_package()
        self._streams = [streams] if isinstance(streams, str) else list(dict.fromkeys(streams))
        if not self._streams or not all(type(stream) is str and stream for stream in self._streams):
            raise InvalidProgramError(f"a FlinkKinesisConsumer needs names of streams, got {shorten(streams)}")
        self._schema = kinesis_schema(deserializer)
        self._properties = check_properties(config_props)
        self._settings = ConsumerSettings.of(self._properties)
        self._assigner = KinesisShardAssigner.default_shard_assigner()
        self._strategy: WatermarkStrategy | None = None
        self._tracker: WatermarkTracker | None = None

    def set_shard_assigner(self, shard_assigner: KinesisShardAssigner) -> Self:
        """Set the assigner that chooses the subtask of a shard."""
        if not isinstance(shard_assigner, KinesisShardAssigner):
            raise InvalidProgramError(f"expected a KinesisShardAssigner, got {shorten(shard_assigner)}")
        self._assigner = shard_assigner
        return self

    def set_periodic_watermark_assigner(self, periodic_watermark_assigner: Any) -> Self:
        """Set the assigner of timestamps and of each shard's watermarks.

        It is a :class:`WatermarkStrategy`, or an object with ``extract_timestamp(element, previous_timestamp)`` and
        ``get_current_watermark()``, which is copied for each shard.
        """
        self._strategy = _strategy_of(periodic_watermark_assigner)
        return self

    def set_watermark_tracker(self, watermark_tracker: WatermarkTracker) -> Self:
        """Align shards in event time: none is read further ahead than flink.watermark.lookahead.millis."""
        if not isinstance(watermark_tracker, WatermarkTracker):
            raise InvalidProgramError(f"expected a WatermarkTracker, got {shorten(watermark_tracker)}")
        self._tracker = watermark_tracker
        return self

    @property
    def watermark_strategy(self) -> WatermarkStrategy | None:
        """The watermark strategy that ``env.add_source`` gives the stream."""
        if self._strategy is None or self._settings.idle_ms <= 0 or self._strategy.idle_timeout is not None:
            return self._strategy
        return self._strategy.with_idleness(self._settings.idle_ms)

    def get_boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the schema."""
        return self._schema.get_produced_type()

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        alignment = None
        if self._tracker is not None:
            if self._strategy is None:
                raise InvalidProgramError(
                    "set_watermark_tracker() aligns shards by event time: call set_periodic_watermark_assigner(), too"
                )
            alignment = Alignment(self._tracker, self._settings.lookahead_ms, self._schema, self._strategy)
        return KinesisEnumerator(self._streams, self._properties, self._settings, self._assigner, alignment)

    def create_reader(self) -> SourceReader:
        return KinesisReader(self._properties, self._settings, self._schema)

    def initial_offset(self, split: SourceSplit) -> Any:
        raise AssertionError("the enumerator knows where a shard begins")


def _strategy_of(assigner: Any) -> WatermarkStrategy:
    if isinstance(assigner, WatermarkStrategy):
        return assigner
    if not callable(getattr(assigner, "extract_timestamp", None)) or not callable(
        getattr(assigner, "get_current_watermark", None)
    ):
        raise InvalidProgramError(
            "a periodic watermark assigner must be a WatermarkStrategy, or have the methods extract_timestamp() and "
            f"get_current_watermark(); got {shorten(assigner)}"
        )
    stamps = copy.deepcopy(assigner)
    return WatermarkStrategy.for_generator(_AssignerFactory(assigner)).with_timestamp_assigner(stamps.extract_timestamp)


class _AssignerFactory:
    """Creates a generator for each shard from a copy of the user's assigner."""

    def __init__(self, assigner: Any) -> None:
        self._assigner = assigner

    def __call__(self, context: WatermarkGeneratorContext) -> WatermarkGenerator:
        return _AssignersWatermarks(copy.deepcopy(self._assigner))


class _AssignersWatermarks(WatermarkGenerator):
    def __init__(self, assigner: Any) -> None:
        self._assigner = assigner

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self._assigner.extract_timestamp(event, event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        current = self._assigner.get_current_watermark()
        if current is not None:
            output.emit_watermark(current if isinstance(current, Watermark) else Watermark(int(current)))
