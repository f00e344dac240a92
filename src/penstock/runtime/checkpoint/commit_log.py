"""The commit log: the committables of sinks for a checkpoint, kept until they are committed in the external system.

An entry is one file, `<checkpoint id>.log`, with the committables of one sink. It is written while the batch can still
fail. A replay writes it again, so that the entry belongs to the run whose state is in the checkpoint. It is committed
when the checkpoint is complete, and removed when the commit has returned (rule U09).

A driver that takes over finds the entry of an incomplete batch, and runs the batch again. The previous driver may be
paused just before it completes the batch. If it then completes it, its run counts, although this driver has prepared
its own. The previous entry is therefore kept as `<checkpoint id>.former` until the batch is complete.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.runtime.records.serialization import dumps
from penstock.runtime.records.stored_classes import load_stored
from penstock.runtime.storage.checked_file import make_directory, read_checked, write_checked


class CommitLog:
    """The entries of one sink. Without a directory, they live as long as the process.

    >>> log = CommitLog(None)
    >>> log.put(7, ["a transaction"])
    >>> log.entries()
    [(7, ['a transaction'])]
    >>> log.remove(7)
    >>> log.entries()
    []
    """

    def __init__(self, directory: str | None) -> None:
        self._directory = None if directory is None else Path(directory)
        self._entries: dict[int, list[Any]] = {}
        self._former: dict[int, list[Any]] = {}
        self.uncertain: set[int] = set()
        """Entries that may have been committed: an earlier attempt, of this process or another, did not finish."""
        if self._directory is not None:
            make_directory(self._directory)
            self._entries = self._load("log")
            former = self._load("former")
            self._former = {number: former[number] for number in former.keys() & self._entries.keys()}
            self._entries |= {number: former[number] for number in former.keys() - self._entries.keys()}
            self.uncertain.update(self._entries)

    def _load(self, kind: str) -> dict[int, list[Any]]:
        assert self._directory is not None
        return {int(path.stem): load_stored(read_checked(path)) for path in self._directory.glob(f"*.{kind}")}

    def put(self, checkpoint_id: int, committables: list[Any]) -> None:
        """Store the committables of a checkpoint, replacing earlier ones."""
        self.set_aside(checkpoint_id)
        if self._directory is not None:
            write_checked(self._path(checkpoint_id), dumps(committables, "a committable"))
        self._entries[checkpoint_id] = committables

    def set_aside(self, checkpoint_id: int) -> None:
        """Set an entry aside, because the batch runs again. An entry of the previous driver counts only if that driver
        completes the batch after all. An entry of a failed run of this driver does not count.
        """
        entry = self._entries.pop(checkpoint_id, None)
        if entry is None:
            return
        if checkpoint_id in self.uncertain:
            self.uncertain.discard(checkpoint_id)
            self._former[checkpoint_id] = entry
            self._rename(checkpoint_id, "log", "former")
        else:
            self._unlink(checkpoint_id, "log")

    def completed_by_the_driver_before(self, checkpoint_id: int) -> None:
        """Use the entry of the previous driver, which has completed the checkpoint."""
        self.remove(checkpoint_id)
        if checkpoint_id in self._former:
            self._entries[checkpoint_id] = self._former.pop(checkpoint_id)
            self.uncertain.add(checkpoint_id)
            self._rename(checkpoint_id, "former", "log")

    def forget_former(self) -> None:
        """Drop former entries: this driver's own runs have completed all batches so far."""
        for checkpoint_id in list(self._former):
            del self._former[checkpoint_id]
            self._unlink(checkpoint_id, "former")

    def entries(self) -> list[tuple[int, list[Any]]]:
        """Return the uncommitted entries, oldest first."""
        return sorted(self._entries.items(), key=lambda entry: entry[0])

    def remove(self, checkpoint_id: int) -> None:
        """Remove a committed entry."""
        if self._entries.pop(checkpoint_id, None) is not None:
            self._unlink(checkpoint_id, "log")
            if checkpoint_id in self.uncertain and checkpoint_id not in self._former:
                self._unlink(checkpoint_id, "former")  # a crash may have left it there
            self.uncertain.discard(checkpoint_id)

    def _unlink(self, checkpoint_id: int, kind: str) -> None:
        if self._directory is not None:
            self._path(checkpoint_id, kind).unlink(missing_ok=True)

    def _rename(self, checkpoint_id: int, kind: str, other: str) -> None:
        if self._directory is not None:
            with suppress(FileNotFoundError):  # a crash may have happened after the rename
                self._path(checkpoint_id, kind).rename(self._path(checkpoint_id, other))

    def _path(self, checkpoint_id: int, kind: str = "log") -> Path:
        assert self._directory is not None
        return self._directory / f"{checkpoint_id}.{kind}"
