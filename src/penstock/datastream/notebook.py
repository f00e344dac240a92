"""Streams and environments in a notebook: a picture of what would run."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from penstock.common.errors import PenstockError
from penstock.connectors.sinks import DiscardingSink
from penstock.graph.job_graph import translate
from penstock.graph.picture import svg
from penstock.graph.transformation import SinkTransformation, Transformation
from penstock.runtime.operators.sink import SinkOperator

if TYPE_CHECKING:
    from penstock.datastream.data_stream import DataStream
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["environment_html", "stream_html"]


def stream_html(stream: DataStream[Any]) -> str:
    """Show a stream, its type and the operators that compute it."""
    end = SinkTransformation(
        name="(no sink yet)", input=stream.get_transformation(), operator=SinkOperator(DiscardingSink())
    )
    declared = stream.get_transformation().output_type
    kind = f"{type(stream).__name__}{'' if declared is None else f' of {declared!r}'}"
    return _titled(kind, _picture(stream.get_execution_environment(), [end]))


def environment_html(env: StreamExecutionEnvironment) -> str:
    """Show the job that ``execute()`` would run."""
    if not env.sinks:
        return _titled("StreamExecutionEnvironment", "<p>no sinks yet</p>")
    return _titled("StreamExecutionEnvironment", _picture(env, list(env.sinks)))


def _titled(title: str, body: str) -> str:
    return f'<div class="penstock-plan"><p><b>{escape(title)}</b></p>{body}</div>'


def _picture(env: StreamExecutionEnvironment, sinks: list[Transformation]) -> str:
    try:
        return svg(translate(sinks, env.job_settings(None)))
    except PenstockError as error:  # an unfinished program may not be valid yet
        return f"<p>{escape(str(error))}</p>"
