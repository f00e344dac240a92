"""Block files: the format of the data files of a savepoint.

``magic | block ... | index | index offset, index length, checksum of the index, magic``. A block has a tag (a key group
or the number of an operator state), a count of values and a checksum. The index lists all blocks, so that a reader
finds the blocks of its key groups without reading the others. All numbers are little-endian.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from penstock.common.errors import SavepointError
from penstock.runtime.savepoint.storage import Directory

MAGIC = b"PNSTKSP1"
_INDEX = struct.Struct("<IQIIII")  # tag, offset, bytes stored, bytes as encoded, values, checksum
_TAIL = struct.Struct("<QII8s")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Block:
    """The position of a block, and its expected content."""

    tag: int
    offset: int
    stored: int
    encoded: int
    count: int
    checksum: int


class BlockWriter:
    """Writes a block file from front to back."""

    def __init__(self, stream: IO[bytes], *, compress: bool = False) -> None:
        self._stream = stream
        self._compress = compress
        self._blocks: list[bytes] = []
        self.size = 0
        self.checksum = 0
        self._write(MAGIC)

    def _write(self, data: bytes) -> None:
        self._stream.write(data)
        self.size += len(data)
        self.checksum = zlib.crc32(data, self.checksum)

    def add(self, tag: int, data: bytes, count: int) -> None:
        """Append a block."""
        stored = zlib.compress(data, 1) if self._compress else data
        if len(stored) >= len(data):
            stored = data  # so equal lengths mean: not compressed
        self._blocks.append(_INDEX.pack(tag, self.size, len(stored), len(data), count, zlib.crc32(stored)))
        self._write(stored)

    def finish(self) -> dict[str, int]:
        """Write the index, and return the description of the file for the manifest."""
        index = b"".join(self._blocks)
        offset = self.size
        self._write(index)
        self._write(_TAIL.pack(offset, len(index), zlib.crc32(index), MAGIC))
        return {"size": self.size, "crc32": self.checksum, "blocks": len(self._blocks), "index": zlib.crc32(index)}


class BlockFile:
    """Reads blocks of a file. Data that does not match its checksum is rejected."""

    def __init__(self, directory: Directory, description: dict[str, Any]) -> None:
        self._directory = directory
        self._name: str = description["path"]
        self._size: int = description["size"]
        self._checksum: int = description["crc32"]
        self._index: int | None = description.get("index")  # missing in older savepoints

    def _damaged(self, why: str) -> SavepointError:
        return SavepointError(
            f"file {self._name} of the savepoint in {self._directory.location} is damaged ({why}): "
            "restore from another savepoint"
        )

    def index(self) -> list[Block]:
        """Return all blocks in the order in which they were written."""
        size = self._directory.size(self._name)
        if size is None:
            raise SavepointError(
                f"file {self._name} of the savepoint in {self._directory.location} is missing: copy the whole directory"
            )
        if size != self._size:
            raise self._damaged(f"it has {size} bytes instead of {self._size}")
        with self._directory.open(self._name) as stream:
            stream.seek(size - _TAIL.size)
            offset, length, checksum, magic = _TAIL.unpack(stream.read(_TAIL.size))
            if magic != MAGIC or offset + length + _TAIL.size != size:
                raise self._damaged("it does not end like a block file")
            stream.seek(offset)
            index = stream.read(length)
        if zlib.crc32(index) != checksum:
            raise self._damaged("the index does not match its checksum")
        # The index contains the checksums of all blocks, so it identifies the content.
        if self._index not in (None, checksum):
            raise self._damaged("it is another file than the one that was written")
        return [Block(*parts) for parts in _INDEX.iter_unpack(index)]

    def read(self, tags: range | None = None) -> Iterator[tuple[Block, bytes]]:
        """Yield the blocks with these tags (all if None), one at a time."""
        wanted = [block for block in self.index() if tags is None or block.tag in tags]
        if not wanted:
            return
        with self._directory.open(self._name) as stream:
            for block in wanted:
                stream.seek(block.offset)
                data = stream.read(block.stored)
                if len(data) != block.stored or zlib.crc32(data) != block.checksum:
                    raise self._damaged(f"the block at {block.offset} does not match its checksum")
                yield block, data if block.stored == block.encoded else _inflated(data, self._damaged)

    def verify(self) -> None:
        """Read the whole file and compare checksums."""
        self.index()
        checksum = 0
        with self._directory.open(self._name) as stream:
            while chunk := stream.read(_CHUNK):
                checksum = zlib.crc32(chunk, checksum)
        if checksum != self._checksum:
            raise self._damaged("it does not match its checksum")


def _inflated(data: bytes, damaged: Any) -> bytes:
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise damaged(str(error)) from None
