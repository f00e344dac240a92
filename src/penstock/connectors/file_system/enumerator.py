"""Lists files and plans which parts of them to read next. Runs on the driver."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.common.errors import CheckpointError
from penstock.connectors.file_system.file_log import FileLog
from penstock.core.source import SourceSplit, SplitEnumerator
from penstock.formats.file_format import FileFormat

_SPLITS_PER_TASK = 16
_ID = re.compile(r"(.*)@(-?\d+)@(\d+)-(\d+)", re.DOTALL)


@dataclass(frozen=True)
class FileSplit(SourceSplit):
    """The units from `start` to `end` of a file."""

    path: str = ""
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file in a listing."""

    modified: int
    path: str


def visible_files(paths: Sequence[str]) -> list[FoundFile]:
    """Return all visible files below the paths, ordered by modification time (rules O01 to O11)."""
    found: list[FoundFile] = []
    for name in paths:
        path = Path(name)
        below = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in below:
            if file != path and any(part.startswith((".", "_")) for part in file.relative_to(path).parts):
                continue
            try:
                status = file.stat()
            except FileNotFoundError:
                continue  # deleted since it was listed
            if file.is_file():
                found.append(FoundFile(status.st_mtime_ns, str(file)))
    return sorted(found, key=lambda file: (file.modified, file.path))


class FileEnumerator(SplitEnumerator):
    """Lists the splits of files, oldest files first. If it can remember the rest, it lists only the next few."""

    def __init__(
        self,
        paths: list[str],
        file_format: FileFormat,
        parallelism: int,
        *,
        interval: float | None,
        splittable: bool = True,
        reread_modified: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._paths = paths
        self._format = file_format
        self._interval = interval  # seconds between listings; None lists once, at the start
        self._splittable = splittable
        self._reread_modified = reread_modified
        self._clock = clock
        self._log = FileLog(None)
        self._active: dict[str, FileSplit] = {}
        self._waiting: deque[FileSplit] = deque()
        self._next_listing: float | None = 0.0
        self._window = parallelism * _SPLITS_PER_TASK

    @property
    def reads_in_order(self) -> bool:
        return True

    def use_directory(self, directory: str) -> None:
        self._log = FileLog(directory)

    # -- splits -------------------------------------------------------------------------------------------------

    def discover_splits(self) -> Sequence[SourceSplit]:
        self._list_files()
        while self._waiting and (not self._log.durable or len(self._active) < self._window):
            split = self._waiting.popleft()
            if split.split_id not in self._log.files[split.path].done:  # a replayed batch may have been ahead
                self._active[split.split_id] = split
        return list(self._active.values())

    def has_more_splits(self) -> bool:
        return self._next_listing == 0.0 or bool(self._waiting)

    def _list_files(self) -> None:
        if self._next_listing is None or self._clock() < self._next_listing:
            return
        first = self._next_listing == 0.0
        self._next_listing = None if self._interval is None else self._clock() + self._interval
        if self._interval is None and self._log.listed:  # before the job restarted
            for path in self._log.files:
                self._waiting.extend(self._rest_of(path))
            return
        files = visible_files(self._paths)
        for file in files:
            taken = self._log.files.get(file.path)
            if taken is None or (self._reread_modified and taken.modified != file.modified):
                self._take(file)
            elif first:
                self._waiting.extend(self._rest_of(file.path))
        listed = {file.path for file in files}
        gone = [path for path in self._log.files if path not in listed and not Path(path).exists()]
        if gone:
            busy = {split.path for split in (*self._active.values(), *self._waiting)}
            self._log.drop([path for path in gone if path not in busy])
        if self._interval is None:
            self._log.all_listed()

    def _take(self, file: FoundFile) -> None:
        try:
            length = self._format.length(file.path)
        except FileNotFoundError:
            return
        self._log.take(file.path, file.modified, length)
        self._waiting.extend(self._splits_of(file.path))

    def _rest_of(self, path: str) -> list[FileSplit]:
        """Return the splits that, after a restart, are neither finished nor in the checkpoint."""
        done = self._log.files[path].done
        return [split for split in self._splits_of(path) if split.split_id not in done | self._active.keys()]

    def _splits_of(self, path: str) -> list[FileSplit]:
        file = self._log.files[path]
        size = self._format.split_units if self._splittable else None
        step = size or max(file.length, 1)
        ranges = [(start, min(start + step, file.length)) for start in range(0, file.length, step)]
        return [FileSplit(f"{path}@{file.modified}@{start}-{end}", path, start, end) for start, end in ranges]

    # -- progress -----------------------------------------------------------------------------------------------

    def latest_offset(self, split: SourceSplit, start_offset: Any, max_records: int) -> Any:
        assert isinstance(split, FileSplit)
        if start_offset >= split.end:
            return start_offset
        return self._format.advance(split.path, start_offset, split.end, max_records)

    def record_count(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> int:
        assert isinstance(split, FileSplit)
        try:
            return self._format.record_count(split.path, start_offset, end_offset)
        except FileNotFoundError:
            return 1  # the task that reads it reports that

    def is_finished(self, split: SourceSplit, offset: Any) -> bool:
        assert isinstance(split, FileSplit)
        return bool(offset >= split.end)

    def forget(self, split_ids: Sequence[str]) -> bool:
        """Record that splits are finished. Without a directory, the checkpoint must keep them."""
        finished: dict[str, list[str]] = {}
        for split_id in split_ids:
            self._active.pop(split_id, None)
            path = split_id.rsplit("@", 2)[0]
            file = self._log.files.get(path)
            if file is not None and split_id not in file.done:
                finished.setdefault(path, []).append(split_id)
        if finished:
            self._log.finish(finished)
        return self._log.durable

    def remembered(self) -> Sequence[str]:
        return [split_id for file in self._log.files.values() for split_id in sorted(file.done)]

    # -- after a restart ----------------------------------------------------------------------------------------

    def restore_split(self, split_id: str) -> SourceSplit:
        path, _, start, end = _parsed(split_id)
        return FileSplit(split_id, path, start, end)

    def restore(self, finished: Mapping[str, bool]) -> None:
        for split_id, done in finished.items():
            split = self.restore_split(split_id)
            assert isinstance(split, FileSplit)
            modified = _parsed(split_id)[1]
            if split.path not in self._log.files:  # only the checkpoint is durable
                try:
                    length = max(self._format.length(split.path), split.end)
                except OSError:  # it may be deleted by now; then reading the rest of it fails
                    length = split.end
                self._log.take(split.path, modified, length)
            if done:
                self._log.finish({split.path: [split_id]})
            else:
                self._active[split_id] = split


def _parsed(split_id: str) -> tuple[str, int, int, int]:
    """Return path, modification time, start and end."""
    found = _ID.fullmatch(split_id)
    if found is None:  # read_text_file() once had a different format of positions
        raise CheckpointError(
            f"the position {split_id!r} of a text file was written by an earlier version, which read such files "
            "differently: finish the job with that version, or start it without the checkpoint"
        )
    path, modified, start, end = found.groups()
    return path, int(modified), int(start), int(end)
