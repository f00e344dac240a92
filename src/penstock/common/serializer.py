"""Serializers: write values to byte streams and read them back."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from typing import BinaryIO, Generic, TypeVar

__all__ = ["PickleSerializer", "TypeSerializer", "VoidNamespaceSerializer"]

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Writes values to a byte stream and reads them back."""

    @abstractmethod
    def serialize(self, element: T, stream: BinaryIO) -> None:
        """Write one value."""

    @abstractmethod
    def deserialize(self, stream: BinaryIO) -> T:
        """Read one value."""


class PickleSerializer(TypeSerializer[T]):
    """Serializes any picklable value.

    >>> from io import BytesIO
    >>> stream = BytesIO()
    >>> PickleSerializer().serialize({"a": 1}, stream)
    >>> PickleSerializer().deserialize(BytesIO(stream.getvalue()))
    {'a': 1}
    """

    def serialize(self, element: T, stream: BinaryIO) -> None:
        pickle.dump(element, stream, protocol=5)

    def deserialize(self, stream: BinaryIO) -> T:
        element: T = pickle.load(stream)
        return element


class VoidNamespaceSerializer(TypeSerializer[None]):
    """Serializes the void namespace as a single byte."""

    def serialize(self, element: None, stream: BinaryIO) -> None:
        stream.write(b"\0")

    def deserialize(self, stream: BinaryIO) -> None:
        stream.read(1)
