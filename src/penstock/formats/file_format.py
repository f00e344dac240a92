"""The contract of file formats, and the formats whose records are lines.

A file is read in ranges of a unit that the format chooses: bytes, rows, or the whole file. Ranges are planned on the
driver, so it must be cheap to find the length of a file in units.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar, cast

from penstock.common.errors import InvalidProgramError, RecordFormatError
from penstock.common.typeinfo import TypeInformation, Types

__all__ = ["BulkFormat", "FileFormat", "LineFormat", "StreamFormat", "open_file"]

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_BLOCK = 1 << 19  # larger blocks are slower: their records no longer fit into the cache
_BYTES_PER_LINE = 64  # an estimate, to convert a number of records to bytes
_RECORDS_AT_ONCE = 4_096
_SPLIT_BYTES = 64 << 20


def open_file(path: Path) -> BinaryIO:
    """Open a file, and decompress it if its suffix is that of a compressed file."""
    opener = _OPENERS.get(path.suffix)
    return path.open("rb") if opener is None else cast("BinaryIO", opener(path, "rb"))


def is_compressed(path: str) -> bool:
    """Whether a file can only be read from the start."""
    return Path(path).suffix in _OPENERS


def skip_byte_order_mark(file: BinaryIO) -> int:
    """Move from the beginning of a UTF-8 file to its text. Return the number of skipped bytes."""
    if file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8:
        return len(codecs.BOM_UTF8)
    file.seek(0)
    return 0


T = TypeVar("T")


class FileFormat(ABC, Generic[T]):
    """The base class of file formats."""

    split_units: int | None = None
    """Files longer than this are read in several splits; never if None."""

    @abstractmethod
    def length(self, path: str) -> int:
        """Return the length of a file in units."""

    @abstractmethod
    def advance(self, path: str, start: int, end: int, max_records: int) -> int:
        """Return the end of a range from ``start`` with about ``max_records`` records; at most ``end``."""

    def record_count(self, path: str, start: int, end: int) -> int:
        """Estimate the number of records in a range; by its bytes unless the format knows better."""
        share = (end - start) / max(1, self.length(path))
        return max(1, int(share * Path(path).stat().st_size) // _BYTES_PER_LINE)

    @abstractmethod
    def read(self, path: str, start: int, end: int) -> Iterator[list[T]]:
        """Yield the records of a range in batches. Consecutive ranges yield each record once."""

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""
        return Types.PICKLED_BYTE_ARRAY()


class StreamFormat(FileFormat[T]):
    """The base class of formats that are read record by record.

    For your own format, override :meth:`read_file`. A file is then read as a whole, in one batch.

    >>> class Words(StreamFormat):
    ...     def read_file(self, stream):
    ...         return stream.read().split()
    """

    def read_file(self, stream: BinaryIO) -> Iterable[Any]:
        """Return the records of a file, which is already decompressed."""
        raise NotImplementedError(f"{type(self).__name__} must define read_file() or read()")

    def length(self, path: str) -> int:
        return 1

    def advance(self, path: str, start: int, end: int, max_records: int) -> int:
        return end

    def read(self, path: str, start: int, end: int) -> Iterator[list[Any]]:
        with open_file(Path(path)) as stream:
            records = iter(self.read_file(stream))
            while batch := list(islice(records, _RECORDS_AT_ONCE)):
                yield batch

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8", errors: str = "strict") -> StreamFormat[str]:
        """Create a format of text lines. It decompresses ``.gz``, ``.bz2`` and ``.xz`` files.

        :param errors: what to do with bytes that are not text, as in Python's ``open``: ``strict`` fails the job,
            ``replace`` inserts a replacement character, as Flink does.
        """
        return _TextLineFormat(charset_name, errors)


class BulkFormat(FileFormat[T]):
    """The base class of formats that are read in blocks of records, such as Parquet."""


class LineFormat(StreamFormat[T]):
    """The base class of formats whose records are lines. A line belongs to the range in which it begins."""

    split_units: int | None = _SPLIT_BYTES
    lines_to_skip: int = 0
    skips_byte_order_mark: bool = False

    def __init__(self, charset: str = "UTF-8") -> None:
        try:
            "".encode(charset)
        except LookupError:
            raise InvalidProgramError(f"unknown character set {charset!r}") from None
        self.charset = charset

    @abstractmethod
    def decode_lines(self, lines: list[bytes], path: str) -> list[T]:
        """Decode the records in some lines, which are without line ends."""

    def length(self, path: str) -> int:
        return 1 if is_compressed(path) else Path(path).stat().st_size

    def advance(self, path: str, start: int, end: int, max_records: int) -> int:
        return end if is_compressed(path) else min(end, start + max_records * _BYTES_PER_LINE)

    def read(self, path: str, start: int, end: int) -> Iterator[list[Any]]:
        with open_file(Path(path)) as file:
            if start > 0:
                file.seek(start - 1)
                file.readline()  # a line that began earlier belongs to the previous range
                position = file.tell()
                first = 0 if self.lines_to_skip == 0 else self._end_of_head(path)
                if position < first:
                    file.seek(first)
                    position = first
            else:
                position = self._skip_head(file)
            whole = is_compressed(path)
            while whole or position < end:
                block = file.read(_BLOCK if whole else min(_BLOCK, end - position))
                if not block:
                    return
                if not block.endswith(b"\n"):
                    block += file.readline()
                position += len(block)
                records = self.decode_block(block, path)
                if records:
                    yield records

    def _end_of_head(self, path: str) -> int:
        with Path(path).open("rb") as file:
            return self._skip_head(file)

    def _skip_head(self, file: BinaryIO) -> int:
        """Return the position of the first line that may be a record."""
        mark = skip_byte_order_mark(file) if self.skips_byte_order_mark else 0
        return mark + sum(len(file.readline()) for _ in range(self.lines_to_skip))

    def decode_block(self, block: bytes, path: str) -> list[Any]:
        """Decode the records in a block of whole lines."""
        lines = block.removesuffix(b"\n").split(b"\n")
        if b"\r" in block:
            lines = [line.removesuffix(b"\r") for line in lines]
        return self.decode_lines(lines, path)


class _TextLineFormat(LineFormat[str]):
    def __init__(self, charset: str, errors: str) -> None:
        super().__init__(charset)
        try:
            codecs.lookup_error(errors)
        except LookupError:
            raise InvalidProgramError(f"unknown way to handle bytes that are not text: {errors!r}") from None
        self._errors = errors
        # The bytes of, for example, UTF-16 do not show where a line ends: such a file is read as a whole.
        self._cuttable = "a\n".encode(charset).endswith(b"a\n")

    def length(self, path: str) -> int:
        return super().length(path) if self._cuttable else 1

    def advance(self, path: str, start: int, end: int, max_records: int) -> int:
        return super().advance(path, start, end, max_records) if self._cuttable else end

    def read(self, path: str, start: int, end: int) -> Iterator[list[Any]]:
        if self._cuttable:
            yield from super().read(path, start, end)
            return
        with TextIOWrapper(open_file(Path(path)), self.charset, self._errors, newline="\n") as text:
            while lines := list(islice(text, _RECORDS_AT_ONCE)):
                yield [line.removesuffix("\n").removesuffix("\r") for line in lines]

    def decode_lines(self, lines: list[bytes], path: str) -> list[Any]:
        return [self._decoded(line, path) for line in lines]

    def _decoded(self, line: bytes, path: str) -> str:
        try:
            return line.decode(self.charset, self._errors)
        except UnicodeDecodeError as error:
            reason = f"{path}: a line is not {self.charset}: {error}; errors='replace' of the text format reads it"
            raise RecordFormatError(reason, message=line) from None

    def decode_block(self, block: bytes, path: str) -> list[Any]:
        """Decode thousands of lines with one call."""
        try:
            text = block.decode(self.charset, self._errors)
        except UnicodeDecodeError:
            return super().decode_block(block, path)  # which finds the broken line
        if "\r" not in text:
            return text.removesuffix("\n").split("\n")
        return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]

    def get_produced_type(self) -> TypeInformation:
        return Types.STRING()
