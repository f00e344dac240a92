"""What keyed operators say about changed keys between two checkpoints, for engines that store changes of single keys.

Everything that is stored carries a *mark*, the number of the checkpoint it belongs to. A page has the changes up to the
moment when it was written. So of the changes in the log, those with a lower mark than the page are in it, and all
others are applied to it when state is loaded. A change that the page has already does no harm when it is applied again:
it is the whole new state of a key.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ChangeLog", "LoggedChanges", "changes_page", "is_changes_page"]


def changes_page(operator_id: str, number: int) -> str:
    """Under which name changes that were loaded are in the store, until they are on their pages."""
    return f"{operator_id}/d{number}"


def is_changes_page(name: str) -> bool:
    """Whether this is such a name.

    >>> is_changes_page(changes_page("counts", 1)), is_changes_page("counts/p1")
    (True, False)
    """
    return name.rpartition("/")[2].startswith("d")


@dataclass(frozen=True, slots=True)
class LoggedChanges:
    """What `ChangeLog.take` returns: everything since the last call."""

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
    """Of what is written from now on."""
    page_marks: dict[str, int] = field(default_factory=dict)
    """Of the pages that were loaded."""
    loaded: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """By operator id: marks of the changes that were loaded, and the names under which they are in the store."""
    floors: dict[str, int] = field(default_factory=dict)
    least_bytes: int = 4 << 20
    """An operator's changes are worth keeping up to this size, however small the pages are."""
    _changes: list[tuple[str, bytes]] = field(default_factory=list)

    def add(self, operator_id: str, blob: bytes) -> None:
        """Log the new state of some keys."""
        self._changes.append((operator_id, blob))

    def drop_until(self, operator_id: str, mark: int) -> None:
        """The changes up to this mark are on pages."""
        self.floors[operator_id] = mark

    def take(self) -> LoggedChanges:
        """What was logged since the last call. The next mark begins."""
        taken = LoggedChanges(self.mark, self._changes, dict(self.floors))
        self.mark += 1
        self._changes = []
        return taken

    def pages_of(self, operator_id: str) -> list[str]:
        """The names of an operator's loaded changes."""
        return [name for _, name in self.loaded.get(operator_id, ())]
