"""The files to which a task writes its state.

With each checkpoint, a task writes what has changed: some pages, and the state of some keys (see `change_log`). Small
files, and files with few records that are still needed, are copied into the new one. File sizes decrease geometrically
from the oldest to the newest file, so there are few of them, and every byte is copied only a few times.

A file is a sequence of records: a kind, a name, a mark and a blob. The order of records does not matter. The manifest
of the checkpoint has the size and the checksum of every file.
"""

from __future__ import annotations

import pickle
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.common.errors import CheckpointError, SavepointError
from penstock.runtime.savepoint.storage import Directory, directory_at
from penstock.runtime.state.change_log import ChangeLog, LoggedChanges, changes_page
from penstock.spark.continuous.local_pages import LocalPages

__all__ = ["LevelChanges", "LoadedLevel", "StateFile", "StateFiles"]

_HEAD = struct.Struct("<BiHQQ")  # kind, level, length of the name, mark, length of the blob
_PAGE, _REMOVED, _CHANGES, _STAGE = range(4)
_FILE_BYTES = 64 << 20  # larger files are not copied only because they are small or the last one


@dataclass(frozen=True, slots=True)
class StateFile:
    """The description of a file in a manifest."""

    name: str
    size: int
    checksum: int


@dataclass(slots=True)
class LevelChanges:
    """The changes that a stage delivers at a checkpoint, and in portions before it."""

    snapshot: bytes = b""
    mark: int = 0
    """The mark of the last portion. All other data has its own mark."""
    pages: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    changes: list[tuple[str, int, bytes]] = field(default_factory=list)
    floors: dict[str, int] = field(default_factory=dict)

    def add(self, pages: dict[str, bytes], removed: set[str], logged: LoggedChanges) -> None:
        """Add another portion."""
        mark = self.mark = logged.mark
        for name, blob in pages.items():
            self.pages[name] = mark, blob
            self.removed.pop(name, None)
        for name in removed:
            self.removed[name] = mark
            self.pages.pop(name, None)
        self.changes += [(operator, mark, blob) for operator, blob in logged.changes]
        self.floors = logged.floors


@dataclass(slots=True)
class LoadedLevel:
    """The state of a stage at a checkpoint."""

    pages: LocalPages = field(default_factory=LocalPages)
    log: ChangeLog = field(default_factory=ChangeLog)
    snapshot: bytes = b""


_Key = tuple[int, str]
"""A level, and a page or an operator."""


class _Record(NamedTuple):
    kind: int
    level: int
    name: str
    mark: int
    blob: bytes

    @property
    def key(self) -> _Key:
        return self.level, self.name

    @property
    def size(self) -> int:
        return _HEAD.size + len(self.name) + len(self.blob)


@dataclass(slots=True)
class _Contents:
    """The content of a file."""

    file: StateFile
    pages: dict[_Key, int] = field(default_factory=dict)
    """Sizes of pages, including outdated ones."""
    removed: set[_Key] = field(default_factory=set)
    changes: list[tuple[_Key, int, int]] = field(default_factory=list)
    """Operator, mark and size."""
    stages: int = 0
    """Bytes of the snapshots of stages. Only the newest snapshots are needed."""
    live: int = 0
    """Bytes that are still needed."""

    def add(self, record: _Record) -> None:
        """Add a record."""
        if record.kind == _PAGE:
            self.pages[record.key] = record.size
        elif record.kind == _REMOVED:
            self.removed.add(record.key)
        elif record.kind == _CHANGES:
            self.changes.append((record.key, record.mark, record.size))
        else:
            self.stages += record.size


class StateFiles:
    """The files of one task. One thread loads them, and later another one writes them.

    :param attempt: part of the names of all files
    """

    def __init__(self, location: str, attempt: str, task: int, file_bytes: int = _FILE_BYTES) -> None:
        self._location = location
        self._attempt = attempt
        self._task = task
        self._file_bytes = file_bytes
        self._directory: Directory | None = None
        self._files: list[_Contents] = []
        self._where: dict[_Key, _Contents] = {}  # the file with the current page
        self._floors: dict[_Key, int] = {}
        self._number = 0

    # -- loading ------------------------------------------------------------------------------------------------

    def load(self, files: Iterable[StateFile]) -> dict[int, LoadedLevel]:
        """Return the state in the files of a checkpoint, by level."""
        levels: dict[int, LoadedLevel] = {}
        marks: dict[_Key, int] = {}
        last: dict[int, int] = {}
        for file in files:
            contents = _Contents(file)
            self._files.append(contents)
            for record in self._read(file):
                contents.add(record)
                level = levels.setdefault(record.level, LoadedLevel())
                if record.kind == _STAGE:
                    if record.mark > last.get(record.level, 0):
                        last[record.level] = record.mark
                        level.snapshot, level.log.floors = pickle.loads(record.blob)
                elif record.kind == _CHANGES:
                    names = level.log.loaded.setdefault(record.name, [])
                    names.append((record.mark, changes_page(record.name, len(names))))
                    level.pages.load(names[-1][1], record.blob)
                elif record.mark > marks.get(record.key, 0):
                    marks[record.key] = record.mark
                    self._note_page(level, record, contents)
        for number, level in levels.items():
            level.log.mark = last.get(number, 0) + 1
            level.log.page_marks = {name: mark for (of, name), mark in marks.items() if of == number}
            self._drop_old_changes(number, level)
            level.pages.take()
        for contents in self._files:
            contents.live = sum(size for key, size in contents.pages.items() if self._where.get(key) is contents)
            contents.live += sum(size for key, mark, size in contents.changes if mark > self._floors[key])
            contents.stages = 0  # the next file contains new ones
        return levels

    def _drop_old_changes(self, number: int, level: LoadedLevel) -> None:
        """Drop changes that pages already contain."""
        for operator, names in level.log.loaded.items():
            floor = self._floors[number, operator] = level.log.floors.get(operator, 0)
            for mark, name in names:
                if mark <= floor:
                    level.pages.remove(name)
            level.log.loaded[operator] = [each for each in names if each[0] > floor]

    def _note_page(self, level: LoadedLevel, record: _Record, contents: _Contents) -> None:
        if record.kind == _PAGE:
            self._where[record.key] = contents
            level.pages.load(record.name, record.blob)
        else:
            self._where.pop(record.key, None)
            level.pages.remove(record.name)

    def _read(self, file: StateFile) -> Iterator[_Record]:
        try:
            with self._at_location().open(file.name) as stream:
                data = stream.read()
        except (SavepointError, OSError) as error:
            raise CheckpointError(
                f"cannot read the file {file.name} of checkpoint {self._location} ({error}): restore it, or start "
                "from a savepoint with an empty checkpoint directory"
            ) from error
        if len(data) != file.size or zlib.crc32(data) != file.checksum:
            raise CheckpointError(
                f"the file {file.name} in checkpoint {self._location} is damaged (it does not match its checksum): "
                "restore it, or start from a savepoint with an empty checkpoint directory"
            )
        position = 0
        while position < len(data):
            kind, level, name_length, mark, length = _HEAD.unpack_from(data, position)
            position += _HEAD.size
            name = data[position : position + name_length].decode()
            position += name_length
            yield _Record(kind, level, name, mark, data[position : position + length])
            position += length

    def _at_location(self) -> Directory:
        if self._directory is None:
            self._directory = directory_at(self._location)
        return self._directory

    # -- writing ------------------------------------------------------------------------------------------------

    def write(self, checkpoint_id: int, levels: dict[int, LevelChanges]) -> list[StateFile]:
        """Write changes. Return all files that now contain the state, oldest first."""
        records = [record for level, changes in levels.items() for record in _records(level, changes)]
        for contents in self._files:
            contents.live -= contents.stages
            contents.stages = 0
        for level, changes in levels.items():
            self._supersede(level, changes)
        copied = self._choose(sum(record.size for record in records))
        self._files = [contents for contents in self._files if contents not in copied]
        for contents in copied:
            if contents.live or contents.removed:
                records += self._needed(contents)
        records = self._without_old_removals(records)
        try:
            for piece in self._pieces(records):
                self._write_file(checkpoint_id, piece)
        except (SavepointError, OSError) as error:
            raise CheckpointError(f"task {self._task} cannot write checkpoint {checkpoint_id}: {error}") from error
        return [contents.file for contents in self._files]

    def _without_old_removals(self, records: list[_Record]) -> list[_Record]:
        """Drop removals that no longer matter: no file contains the page or older changes of its keys."""
        if not any(record.kind == _REMOVED for record in records):
            return records
        present: set[_Key] = set().union(*(contents.pages for contents in self._files))
        changes = [(record.key, record.mark) for record in records if record.kind == _CHANGES]
        changes += [(key, mark) for contents in self._files for key, mark, _ in contents.changes]
        oldest: dict[_Key, int] = {}
        for key, mark in changes:
            if self._floors.get(key, 0) < mark < oldest.get(key, mark + 1):
                oldest[key] = mark

        def matters(record: _Record) -> bool:
            operator = record.level, record.name.rpartition("/")[0]
            return record.key in present or oldest.get(operator, record.mark + 1) <= record.mark

        return [record for record in records if record.kind != _REMOVED or matters(record)]

    def _supersede(self, level: int, changes: LevelChanges) -> None:
        """Find the parts of older files that are no longer needed."""
        for name in (*changes.pages, *changes.removed):
            old = self._where.pop((level, name), None)
            if old is not None:
                old.live -= old.pages[level, name]
        for operator, floor in changes.floors.items():
            key = level, operator
            before = self._floors.get(key, 0)
            if floor > before:
                self._floors[key] = floor
                for contents in self._files:
                    contents.live -= sum(s for k, mark, s in contents.changes if k == key and before < mark <= floor)

    def _choose(self, size: int) -> list[_Contents]:
        """Choose the files to copy into the new one, which has this size without them."""
        chosen = [contents for contents in self._files if not contents.live]
        used = [contents for contents in self._files if contents.live]
        while used and used[-1].live <= size <= self._file_bytes - used[-1].live:
            size += used[-1].live
            chosen.append(used.pop())
        worst = min(used, key=lambda contents: contents.live / contents.file.size, default=None)
        if worst is not None and 2 * worst.live < worst.file.size:
            chosen.append(worst)
        return chosen

    def _needed(self, contents: _Contents) -> Iterator[_Record]:
        """Yield the records of a file that must be copied."""
        for record in self._read(contents.file):
            if record.kind == _PAGE:
                needed = self._where.get(record.key) is contents
            elif record.kind == _REMOVED:
                needed = record.key not in self._where
            else:
                needed = record.kind == _CHANGES and record.mark > self._floors.get(record.key, 0)
            if needed:
                yield record

    def _pieces(self, records: list[_Record]) -> Iterator[list[_Record]]:
        piece: list[_Record] = []
        size = 0
        for record in records:
            if size + record.size > self._file_bytes and piece:
                yield piece
                piece, size = [], 0
            piece.append(record)
            size += record.size
        yield piece

    def _write_file(self, checkpoint_id: int, records: list[_Record]) -> None:
        self._number += 1
        name = f"{checkpoint_id}-{self._attempt}-{self._task}-{self._number}.state"
        size = checksum = 0
        with self._at_location().create(name) as stream:
            for record in records:
                encoded = record.name.encode()
                head = _HEAD.pack(record.kind, record.level, len(encoded), record.mark, len(record.blob)) + encoded
                for part in (head, record.blob):
                    stream.write(part)
                    checksum = zlib.crc32(part, checksum)
                    size += len(part)
        contents = _Contents(StateFile(name, size, checksum))
        for record in records:
            contents.add(record)
            if record.kind == _PAGE:
                self._where[record.key] = contents
        contents.live = sum(contents.pages.values()) + sum(size for _, _, size in contents.changes) + contents.stages
        self._files.append(contents)


def _records(level: int, changes: LevelChanges) -> Iterator[_Record]:
    for name, (mark, blob) in changes.pages.items():
        yield _Record(_PAGE, level, name, mark, blob)
    for name, mark in changes.removed.items():
        yield _Record(_REMOVED, level, name, mark, b"")
    for operator, mark, blob in changes.changes:
        yield _Record(_CHANGES, level, operator, mark, blob)
    yield _Record(_STAGE, level, "", changes.mark, pickle.dumps((changes.snapshot, changes.floors), 5))
