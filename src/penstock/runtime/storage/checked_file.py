"""Small files of a checkpoint that are written atomically and verified when they are read."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from penstock.common.errors import CheckpointError
from penstock.common.storage import storage_errors

__all__ = ["checkpoint_writes", "make_directory", "read_checked", "seal", "sync_directory", "unseal", "write_checked"]

_ADVICE = "Make it writable or free some space, then restart the program: it resumes from its last checkpoint"

_MAGIC = b"PNSTKF1\n"
_HEAD = struct.Struct("<8sQI")  # magic, length, checksum


def seal(content: bytes) -> bytes:
    """Add a header to the content that shows whether it has changed.

    >>> unseal(seal(b"content"), "a file")
    b'content'
    """
    return _HEAD.pack(_MAGIC, len(content), zlib.crc32(content)) + content


def unseal(data: bytes, label: str) -> bytes:
    """Return the content of sealed bytes, and reject changed ones."""
    content = data[_HEAD.size :]
    if len(data) < _HEAD.size or not data.startswith(_MAGIC):
        raise _damaged(label, "it does not begin like such a file")
    _, length, checksum = _HEAD.unpack_from(data)
    if len(content) != length:
        raise _damaged(label, f"it has {len(content)} bytes instead of {length}")
    if zlib.crc32(content) != checksum:
        raise _damaged(label, "it does not match its checksum")
    return content


def whole_parts(data: bytes) -> Iterator[bytes]:
    """Return the contents of sealed parts that were appended to a file, up to the first incomplete one.

    >>> list(whole_parts(seal(b"a") + seal(b"b") + seal(b"torn")[:-1]))
    [b'a', b'b']
    """
    at = 0
    while len(data) - at >= _HEAD.size:
        magic, length, checksum = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        content = data[at : at + length]
        if magic != _MAGIC or len(content) < length or zlib.crc32(content) != checksum:
            return
        yield content
        at += length


def write_checked(path: Path, content: bytes) -> None:
    """Write a file atomically and durably: after a crash, there is either the new file or the old one."""
    temporary = path.with_suffix(".tmp")
    with checkpoint_writes(path.parent):
        with temporary.open("wb") as file:
            file.write(seal(content))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)


def make_directory(directory: Path) -> None:
    """Create a directory for such files, if necessary."""
    with checkpoint_writes(directory):
        directory.mkdir(parents=True, exist_ok=True)


def checkpoint_writes(directory: Path) -> AbstractContextManager[None]:
    """Wrap writes into a checkpoint: an error names the directory and says what to do."""
    return storage_errors(directory, _ADVICE)


def read_checked(path: Path) -> bytes:
    """Read a file; raise an error if it has changed since it was written."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error}") from error
    return unseal(data, f"the file {path}")


def _damaged(label: str, why: str) -> CheckpointError:
    return CheckpointError(
        f"{label} is damaged ({why}): restore it, or start from a savepoint with an empty checkpoint directory"
    )


def sync_directory(directory: Path) -> None:
    """Sync a directory: a new name is durable only with its directory."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
