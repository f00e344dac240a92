"""Unpacks records that the Kinesis Producer Library aggregated: a marker, a Protobuf message, and its MD5."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

__all__ = ["unpack"]

_MAGIC = b"\xf3\x89\x9a\xc2"
_DIGEST = 16
_VARINT, _BYTES = 0, 2


def unpack(partition_key: str, data: bytes) -> list[tuple[str, bytes]]:
    """Return the user's records in a record of a stream, each with its partition key, or the record itself."""
    if not data.startswith(_MAGIC) or len(data) <= len(_MAGIC) + _DIGEST:
        return [(partition_key, data)]
    message, digest = data[len(_MAGIC) : -_DIGEST], data[-_DIGEST:]
    if hashlib.md5(message, usedforsecurity=False).digest() != digest:
        return [(partition_key, data)]
    keys: list[str] = []
    records: list[tuple[int, bytes]] = []
    for number, value in _fields(message):
        if number == 1 and isinstance(value, bytes):
            keys.append(value.decode())
        elif number == 3 and isinstance(value, bytes):
            parts = dict(_fields(value))
            index, payload = parts.get(1, 0), parts.get(3, b"")
            assert isinstance(index, int)
            assert isinstance(payload, bytes)
            records.append((index, payload))
    return [(keys[index], payload) for index, payload in records]


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Return the fields of a Protobuf message. These messages contain only numbers and strings."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        value, position = _varint(message, position)
        if tag & 7 == _BYTES:
            yield tag >> 3, message[position : position + value]
            position += value
        elif tag & 7 == _VARINT:
            yield tag >> 3, value
        else:
            raise ValueError(f"unknown field type {tag & 7} in an aggregated record")


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
