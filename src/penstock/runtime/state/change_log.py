"""The changed keys that keyed operators report between two checkpoints, for engines that store changes of single keys.

All stored data carries a *mark*, the number of its checkpoint. A page contains all changes up to the moment when it was
written. Therefore changes in the log with a lower mark than the page are already in it, and all others are applied when
state is loaded. Applying a change twice does no harm, because it is the whole new state of a key.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ChangeLog", "LoggedChanges", "changes_page", "is_changes_page"]


def changes_page(operator_id: str, number: int) -> str:
    """Return the name of a stored page of loaded changes, which exists until they are applied to their pages."""
    return f"{operator_id}/d{number}"


def is_changes_page(name: str) -> bool:
    """Whether this is the name of a page of loaded changes.

    >>> is_changes_page(changes_page("counts", 1)), is_changes_page("counts/p1")
    (True, False)
    """
    return name.rpartition("/")[2].startswith("d")


@dataclass(frozen=True, slots=True)
class LoggedChanges:
    """The result of `ChangeLog.take`: all changes since the last call."""

    mark: int
    changes: list[tuple[str, bytes]]
    """Operator ids, and the new state of some keys, encoded as a page."""
    floors: dict[str, int]
    """By operator id: changes with this mark or a lower one are on pages."""


@dataclass(slots=True)
class ChangeLog:
    """The log of one stage in one channel.

    >>> log = ChangeLog()
    >>> log.add("counts", b"one")
    >>> log.take()
    LoggedChanges(mark=1, changes=[('counts', b'one')], floors={})
    >>> log.drop_until("counts", 1)
    >>> log.take()
    LoggedChanges(mark=2, changes=[], floors={'counts': 1})
    """

    mark: int = 1
    """The mark of changes that are written from now on."""
    page_marks: dict[str, int] = field(default_factory=dict)
    """The mark of the loaded pages."""
    loaded: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """By operator id: marks of the loaded changes, and their page names in the store."""
    floors: dict[str, int] = field(default_factory=dict)
    least_bytes: int = 4 << 20
    """Up to this size, an operator keeps its changes in the log, however small its pages are."""
    _changes: list[tuple[str, bytes]] = field(default_factory=list)

    def add(self, operator_id: str, blob: bytes) -> None:
        """Log the new state of some keys."""
        self._changes.append((operator_id, blob))

    def drop_until(self, operator_id: str, mark: int) -> None:
        """Record that the changes up to this mark are on pages."""
        self.floors[operator_id] = mark

    def take(self) -> LoggedChanges:
        """Return the changes since the last call, and begin the next mark."""
        taken = LoggedChanges(self.mark, self._changes, dict(self.floors))
        self.mark += 1
        self._changes = []
        return taken

    def pages_of(self, operator_id: str) -> list[str]:
        """Return the page names of an operator's loaded changes."""
        return [name for _, name in self.loaded.get(operator_id, ())]
