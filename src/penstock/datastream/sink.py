"""The end of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.datastream.stream_settings import StreamSettings
from penstock.graph.transformation import SinkTransformation

if TYPE_CHECKING:
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["DataStreamSink"]


class DataStreamSink(StreamSettings):
    """A sink of the job. Set its name, uid and parallelism on it."""

    def __init__(self, env: StreamExecutionEnvironment, transformation: SinkTransformation) -> None:
        self._env = env
        self._transformation = transformation

    def get_transformation(self) -> SinkTransformation:
        """Return the node of the graph."""
        assert isinstance(self._transformation, SinkTransformation)
        return self._transformation

    def _shown_name(self, name: str) -> str:
        return f"Sink: {name}"
