"""Lines of text files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.core.source import Source, SourceReader, SourceSplit, SplitEnumerator

__all__ = ["TextFileSource"]

_SPLIT_BYTES = 64 << 20
_BYTES_PER_LINE = 64  # a guess, to turn a number of records into a number of bytes
_LINES_AT_ONCE = 4_096


@dataclass(frozen=True)
class _FileSplit(SourceSplit):
    """The lines of a file that start at one of the bytes from `start` to `end`, end excluded."""

    path: str = ""
    start: int = 0
    end: int = 0


class TextFileSource(Source):
    """The lines of a file, or of all files below a directory, as they are when the job starts.

    Names that begin with ``.`` or ``_`` are left out. Large files are read in several splits. An offset is a byte
    position; a range of bytes gives the lines that start in it, so any position will do.
    """

    def __init__(self, *paths: str | os.PathLike[str], encoding: str = "UTF-8") -> None:
        if not paths:
            raise InvalidProgramError("a text file source needs the path of a file or a directory")
        self._paths = [local_path(path) for path in paths]
        self._encoding = encoding
        "".encode(encoding)  # an unknown encoding is refused here
        for path in self._paths:
            if not Path(path).exists():
                raise InvalidProgramError(f"there is no file or directory {path!r}")

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """One split per file, or per part of a large one."""
        return _FileEnumerator(self._paths)

    def create_reader(self) -> SourceReader:
        """Reads lines."""
        return _LineReader(self._encoding)

    def initial_offset(self, split: SourceSplit) -> int:
        """The first byte of the split."""
        assert isinstance(split, _FileSplit)
        return split.start


def local_path(path: str | os.PathLike[str]) -> str:
    """A path of the local file system, also when written as an address.

    >>> local_path("file:///tmp/a.txt"), local_path("/tmp/a.txt")
    ('/tmp/a.txt', '/tmp/a.txt')
    """
    text = os.fspath(path)
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    if "://" in text:
        raise InvalidProgramError(
            f"{text!r} is not on a local (or mounted) file system: read it by Spark and use env.from_dataframe()"
        )
    return text


class _FileEnumerator(SplitEnumerator):
    def __init__(self, paths: list[str]) -> None:
        self._paths = paths
        self._splits: list[_FileSplit] | None = None

    def discover_splits(self) -> Sequence[SourceSplit]:
        if self._splits is None:
            self._splits = [split for path in self._files() for split in self._parts(path)]
        return self._splits

    def _files(self) -> list[Path]:
        files: list[Path] = []
        for name in self._paths:
            path = Path(name)
            if path.is_file():
                files.append(path)
                continue
            below = sorted(path.rglob("*"))
            files += [file for file in below if file.is_file() and not _hidden(file.relative_to(path))]
        return files

    def _parts(self, path: Path) -> Iterator[_FileSplit]:
        size = path.stat().st_size
        for start in range(0, size, _SPLIT_BYTES):
            end = min(start + _SPLIT_BYTES, size)
            yield _FileSplit(f"{path}@{start}", str(path), start, end)

    def latest_offset(self, split: SourceSplit, start_offset: Any, max_records: int) -> Any:
        assert isinstance(split, _FileSplit)
        return min(split.end, start_offset + max_records * _BYTES_PER_LINE)

    def is_finished(self, split: SourceSplit, offset: Any) -> bool:
        assert isinstance(split, _FileSplit)
        return bool(offset >= split.end)


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


class _LineReader(SourceReader):
    def __init__(self, encoding: str) -> None:
        self._encoding = encoding

    def read(
        self, split: SourceSplit, start_offset: Any, end_offset: Any
    ) -> Iterator[tuple[list[Any], list[int] | None]]:
        assert isinstance(split, _FileSplit)
        encoding = self._encoding
        with Path(split.path).open("rb") as file:
            if start_offset > 0:
                file.seek(start_offset - 1)
                file.readline()  # the line that began before belongs to the range before
            lines: list[str] = []
            while file.tell() < end_offset:
                line = file.readline()
                if not line:
                    break
                lines.append(line.removesuffix(b"\n").removesuffix(b"\r").decode(encoding))
                if len(lines) >= _LINES_AT_ONCE:
                    yield lines, None
                    lines = []
        if lines:
            yield lines, None
