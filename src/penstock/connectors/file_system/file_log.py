"""The log of the files that a file source has taken. It is durable and beside the checkpoint, so that the checkpoint
need not contain all files ever read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from penstock.runtime.storage.checked_file import checkpoint_writes, make_directory

_LISTED = ""  # no path
_COMPACT_AFTER = 10_000  # obsolete lines


@dataclass(slots=True)
class TakenFile:
    """A file whose splits were assigned, with its properties at that time."""

    modified: int
    length: int
    done: set[str] = field(default_factory=set)  # ids of finished splits


class FileLog:
    """The taken files and finished splits, as JSON lines that are written ahead of use.

    >>> log = FileLog(None)
    >>> log.take("/in/a", 1, 100)
    >>> log.finish({"/in/a": ["a split"]})
    >>> log.files["/in/a"].done
    {'a split'}
    """

    def __init__(self, directory: str | None) -> None:
        self.files: dict[str, TakenFile] = {}
        self.durable = directory is not None
        self.listed = False
        self._path = None if directory is None else Path(directory) / "files.log"
        self._lines = 0
        if self._path is not None:
            make_directory(self._path.parent)
            if self._path.exists():
                self._load(self._path.read_bytes())

    def _load(self, data: bytes) -> None:
        good = 0
        for line in data.splitlines(keepends=True):
            try:
                path, *rest = json.loads(line)
            except ValueError:
                break
            if not line.endswith(b"\n"):
                break
            good += len(line)
            self._lines += 1
            if path == _LISTED:
                self.listed = True
            elif rest == []:
                self.files.pop(path, None)
            elif isinstance(rest[0], str):
                self.files[path].done.update(rest)
            else:
                self.files[path] = TakenFile(*rest)
        if good < len(data):  # a crash truncated the last line, on which nothing depends yet: overwrite it
            assert self._path is not None
            os.truncate(self._path, good)

    def all_listed(self) -> None:
        """Record that all files present at the start are taken. Later files are ignored."""
        self.listed = True
        self._append([[_LISTED]])

    def take(self, path: str, modified: int, length: int) -> None:
        """Record a file before its splits are assigned."""
        self.files[path] = TakenFile(modified, length)
        self._append([[path, modified, length]])

    def finish(self, splits: dict[str, list[str]]) -> None:
        """Record that splits were read to their end."""
        for path, split_ids in splits.items():
            self.files[path].done.update(split_ids)
        self._append([path, *split_ids] for path, split_ids in splits.items())

    def drop(self, paths: list[str]) -> None:
        """Forget files that no longer exist."""
        for path in paths:
            del self.files[path]
        self._append([path] for path in paths)
        live = len(self.files) + sum(1 for file in self.files.values() if file.done)
        if self._path is not None and self._lines > live + _COMPACT_AFTER:
            self._compact()

    def _append(self, entries: Iterable[list[object]]) -> None:
        lines = [json.dumps(entry) + "\n" for entry in entries]
        if self._path is None or not lines:
            return
        self._lines += len(lines)
        with checkpoint_writes(self._path.parent), self._path.open("a", encoding="utf-8") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())

    def _compact(self) -> None:
        assert self._path is not None
        entries: list[list[object]] = [[_LISTED]] if self.listed else []
        for path, file in self.files.items():
            entries.append([path, file.modified, file.length])
            if file.done:
                entries.append([path, *sorted(file.done)])
        temporary = self._path.with_suffix(".tmp")
        with checkpoint_writes(self._path.parent):
            with temporary.open("w", encoding="utf-8") as out:
                out.writelines(json.dumps(entry) + "\n" for entry in entries)
                out.flush()
                os.fsync(out.fileno())
            temporary.replace(self._path)
        self._lines = len(entries)
