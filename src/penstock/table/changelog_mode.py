"""The row kinds of a changelog (T112)."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ChangelogMode"]


@dataclass(frozen=True, slots=True)
class ChangelogMode:
    """The row kinds of a stream. Create it with :meth:`insert_only`, :meth:`upsert` or :meth:`all`."""

    name: str

    @staticmethod
    def insert_only() -> ChangelogMode:
        """Return a mode with inserts only."""
        return ChangelogMode("insert_only")

    @staticmethod
    def upsert() -> ChangelogMode:
        """Return a mode with changes by primary key, without `-U`."""
        return ChangelogMode("upsert")

    @staticmethod
    def all() -> ChangelogMode:
        """Return a mode with all row kinds."""
        return ChangelogMode("all")
