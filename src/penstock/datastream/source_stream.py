"""The stream of a source with a watermark strategy: two operators that look like one to the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from penstock.common.checks import require_name
from penstock.common.watermark import NoWatermarksGenerator
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream.data_stream import DataStream
from penstock.graph.transformation import OneInputTransformation, Transformation
from penstock.runtime.operators.split_watermarks import SplitWatermarksOperator
from penstock.runtime.operators.timestamps import TimestampsAndWatermarksOperator

if TYPE_CHECKING:
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment


class SourceStream(DataStream[Any]):
    """Applies settings both to the source and to the operator that generates its watermarks."""

    def __init__(self, env: StreamExecutionEnvironment, source: Transformation, last: Transformation) -> None:
        super().__init__(env, last)
        self._source = source
        env.note_default_parallelism(source)

    def _operators(self, method: str) -> list[Transformation]:
        self._env.check_open()
        return [self._source] if self._source is self._transformation else [self._source, self._transformation]

    def get_name(self) -> str:
        return self._source.name.removeprefix("Source: ")

    def name(self, name: str) -> Self:
        """Set the source's name."""
        self._operators("name")
        self._source.name = f"Source: {require_name(name, 'the name of a source')}"
        return self

    def uid(self, uid: str) -> Self:
        """Set the source's uid."""
        for transformation in self._operators("uid"):
            suffix = "" if transformation is self._source else "-watermarks"
            transformation.uid = require_name(uid, "the uid of a source") + suffix
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Set the source's id."""
        DataStream(self._env, self._source).set_uid_hash(uid_hash)
        return self

    def start_new_chain(self) -> Self:
        """Do nothing: a source always starts a chain."""
        self._operators("start_new_chain")
        return self


def source_stream(
    env: StreamExecutionEnvironment, source: Transformation, strategy: WatermarkStrategy | None
) -> SourceStream:
    """Return the stream of a source, with timestamps and watermarks if the strategy has them."""
    if strategy is None or not _does_something(strategy):
        return SourceStream(env, source, source)
    stamping = TimestampsAndWatermarksOperator(strategy, env.get_config().get_auto_watermark_interval())
    watermarks = OneInputTransformation(
        name="Timestamps/Watermarks",
        input=source,
        operator=SplitWatermarksOperator(stamping) if stamping.stateful else stamping,
        output_type=source.output_type,
        parallelism=source.parallelism,
        force_non_parallel=source.force_non_parallel,
    )
    return SourceStream(env, source, watermarks)


def _does_something(strategy: WatermarkStrategy) -> bool:
    no_watermarks = type(strategy.create_generator()) is NoWatermarksGenerator
    return strategy.timestamp_assigner is not None or strategy.idle_timeout is not None or not no_watermarks
