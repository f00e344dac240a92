"""Decoding as an operator: unreadable messages fail the job, are skipped, or go to a side output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from penstock.common.errors import InvalidProgramError, RecordFormatError, shorten
from penstock.common.serialization import DeserializationSchema
from penstock.core.functions import ProcessFunction, RuntimeContext
from penstock.core.output_tag import OutputTag

if TYPE_CHECKING:
    from penstock.datastream.data_stream import DataStream

__all__ = ["DeadLetter", "decode"]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An unreadable message, unchanged, and the reason."""

    message: Any
    error: str
    timestamp: int | None = None


def decode(
    stream: DataStream, schema: DeserializationSchema, *, on_error: Literal["fail", "skip"] | OutputTag = "fail"
) -> DataStream:
    """Decode the records in a stream of messages (bytes or text).

    ``on_error`` decides about messages that the schema cannot read. "fail" fails the job with an error that contains
    the message. "skip" skips it and counts it in the metric ``numRecordsSkipped``. An :class:`OutputTag` sends it to
    that side output as a :class:`DeadLetter`. If the schema returns ``None``, the message has no record and nothing is
    emitted.

    >>> from penstock.datastream import OutputTag, StreamExecutionEnvironment
    >>> from penstock.formats.json import JsonRowDeserializationSchema
    >>> from penstock.common import Types
    >>> from penstock.testing import MiniCluster
    >>> env = StreamExecutionEnvironment(executor=MiniCluster())
    >>> messages = env.from_collection(['{"a": 1}', "no JSON", '{"a": 2}'])
    >>> schema = JsonRowDeserializationSchema.builder().type_info(Types.ROW_NAMED(["a"], [Types.INT()])).build()
    >>> dead = OutputTag("dead letters")
    >>> rows = decode(messages, schema, on_error=dead)
    >>> [letter.message for letter in rows.get_side_output(dead).execute_and_collect()]
    ['no JSON']
    """
    if not isinstance(schema, DeserializationSchema):
        raise InvalidProgramError(f"decode() takes a DeserializationSchema, got {shorten(schema)}")
    if on_error not in ("fail", "skip") and not isinstance(on_error, OutputTag):
        raise InvalidProgramError(f"on_error must be 'fail', 'skip' or an OutputTag, got {on_error!r}")
    return stream.process(_Decode(schema, on_error), schema.get_produced_type()).name("Decode")


class _Decode(ProcessFunction):
    def __init__(self, schema: DeserializationSchema, on_error: str | OutputTag) -> None:
        self._schema = schema
        self._on_error = on_error

    def open(self, runtime_context: RuntimeContext) -> None:
        self._schema.open()
        self._skipped = runtime_context.get_metrics_group().counter("numRecordsSkipped")

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        message = value.encode() if isinstance(value, str) else value
        try:
            record = self._schema.deserialize(message)
        except Exception as error:
            reason = error.reason if isinstance(error, RecordFormatError) else f"{type(error).__name__}: {error}"
            if self._on_error == "fail":
                name = self.get_runtime_context().get_task_name()
                raise RecordFormatError(f"operator '{name}' cannot read a message: {reason}", message=value) from None
            self._skipped.inc()
            if isinstance(self._on_error, OutputTag):
                yield self._on_error, DeadLetter(value, reason, ctx.timestamp())
            return
        if record is not None:
            yield record
