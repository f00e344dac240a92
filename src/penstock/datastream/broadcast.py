"""A stream connected to one that every subtask receives in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.typeinfo import TypeInformation
from penstock.core.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from penstock.core.state import MapStateDescriptor
from penstock.datastream.connected_streams import connect_inputs
from penstock.datastream.data_stream import DataStream
from penstock.datastream.keyed_stream import KeyedStream
from penstock.runtime.operators.broadcast import BroadcastProcessOperator, KeyedBroadcastProcessOperator

__all__ = ["BroadcastConnectedStream", "BroadcastStream"]


class BroadcastStream:
    """A stream that every subtask receives in full, and the descriptors of its broadcast state.

    Connect another stream to it.
    """

    def __init__(self, input_stream: DataStream, broadcast_state_descriptors: Sequence[MapStateDescriptor]) -> None:
        for descriptor in broadcast_state_descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                raise InvalidProgramError(f"broadcast() takes MapStateDescriptors, got {shorten(descriptor)}")
        names = [descriptor.name for descriptor in broadcast_state_descriptors]
        if len(set(names)) < len(names):
            raise InvalidProgramError(f"broadcast states need different names, got {', '.join(names)}")
        self.input_stream = input_stream
        self.broadcast_state_descriptors = list(broadcast_state_descriptors)


class BroadcastConnectedStream:
    """A stream, keyed or not, connected to a broadcast stream."""

    def __init__(
        self,
        non_broadcast_stream: DataStream,
        broadcast_stream: BroadcastStream,
        broadcast_state_descriptors: Sequence[MapStateDescriptor],
    ) -> None:
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = list(broadcast_state_descriptors)

    def process(
        self,
        func: Any,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Apply a BroadcastProcessFunction, or a KeyedBroadcastProcessFunction if the stream is keyed."""
        stream, descriptors = self.non_broadcast_stream, self.broadcast_state_descriptors
        if isinstance(stream, KeyedStream):
            _check(func, KeyedBroadcastProcessFunction, "on a keyed stream")
            keyed_operator = KeyedBroadcastProcessOperator(func, stream.get_key_selector(), descriptors)
            return self._connect("Co-Process-Broadcast-Keyed", keyed_operator, output_type)
        _check(func, BroadcastProcessFunction, "on a stream without keys")
        return self._connect("Co-Process-Broadcast", BroadcastProcessOperator(func, descriptors), output_type)

    def _connect(
        self,
        name: str,
        operator: BroadcastProcessOperator | KeyedBroadcastProcessOperator,
        output_type: TypeInformation | None,
    ) -> DataStream:
        second = self.broadcast_stream.input_stream
        return connect_inputs(self.non_broadcast_stream, second, name, operator, output_type)


def _check(func: Any, kind: type, where: str) -> None:
    if not isinstance(func, kind):
        raise InvalidProgramError(f"process() {where} takes a {kind.__name__}, got {shorten(func)}")
