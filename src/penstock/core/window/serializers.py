"""Serializers of windows for programs that write windows themselves. State holds pickled windows."""

from __future__ import annotations

import struct
from typing import BinaryIO, TypeVar

from penstock.common.serializer import PickleSerializer, TypeSerializer
from penstock.core.window.windows import CountWindow, GlobalWindow, TimeWindow, Window

__all__ = ["CountWindowSerializer", "GlobalWindowSerializer", "PickledWindowSerializer", "TimeWindowSerializer"]

W = TypeVar("W", bound=Window)


class PickledWindowSerializer(PickleSerializer[W]):
    """Windows of any class."""


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Start and end, eight bytes each.

    >>> from io import BytesIO
    >>> stream = BytesIO()
    >>> TimeWindowSerializer().serialize(TimeWindow(-5, 10), stream)
    >>> TimeWindowSerializer().deserialize(BytesIO(stream.getvalue()))
    TimeWindow(start=-5, end=10)
    """

    def serialize(self, element: TimeWindow, stream: BinaryIO) -> None:
        stream.write(struct.pack(">qq", element.start, element.end))

    def deserialize(self, stream: BinaryIO) -> TimeWindow:
        return TimeWindow(*struct.unpack(">qq", stream.read(16)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """The window's number in eight bytes."""

    def serialize(self, element: CountWindow, stream: BinaryIO) -> None:
        stream.write(struct.pack(">q", element.id))

    def deserialize(self, stream: BinaryIO) -> CountWindow:
        return CountWindow(*struct.unpack(">q", stream.read(8)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """There is only one global window: a single byte."""

    def serialize(self, element: GlobalWindow, stream: BinaryIO) -> None:
        stream.write(b"\0")

    def deserialize(self, stream: BinaryIO) -> GlobalWindow:
        stream.read(1)
        return GlobalWindow.get()
