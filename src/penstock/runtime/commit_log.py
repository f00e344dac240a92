"""The commit log: what sinks have prepared for a checkpoint, kept until it is committed in the outer system.

An entry is one file, `<checkpoint id>.log`: the committables of one sink. It is written while the batch can still
fail; then a replay writes it again, so that in the end it belongs to the run whose state is in the checkpoint. It is
committed when the checkpoint is complete, and removed when the commit has returned (spec: ch. 8, pending
transactions).
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from penstock.runtime.checked_file import make_directory, read_checked, write_checked
from penstock.runtime.serialization import dumps


class CommitLog:
    """The entries of one sink; without a directory they live as long as the process.

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
        self.uncertain: set[int] = set()
        """Entries that may be committed: somebody was at it, another process or this one, and did not come back."""
        if self._directory is not None:
            make_directory(self._directory)
            for path in self._directory.glob("*.log"):
                self._entries[int(path.stem)] = pickle.loads(read_checked(path))
            self.uncertain.update(self._entries)

    def put(self, checkpoint_id: int, committables: list[Any]) -> None:
        """Keep what is to be committed with a checkpoint, instead of anything kept for it before."""
        if self._directory is not None:
            write_checked(self._path(checkpoint_id), dumps(committables, "a committable"))
        self._entries[checkpoint_id] = committables
        self.uncertain.discard(checkpoint_id)

    def entries(self) -> list[tuple[int, list[Any]]]:
        """What is not committed yet, oldest first."""
        return sorted(self._entries.items(), key=lambda entry: entry[0])

    def remove(self, checkpoint_id: int) -> None:
        """The entry is committed, or belongs to a run of a batch that does not count."""
        if self._entries.pop(checkpoint_id, None) is not None and self._directory is not None:
            self._path(checkpoint_id).unlink(missing_ok=True)

    def _path(self, checkpoint_id: int) -> Path:
        assert self._directory is not None
        return self._directory / f"{checkpoint_id}.log"
