"""Which row kinds a changelog has (T112)."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ChangelogMode"]


@dataclass(frozen=True, slots=True)
class ChangelogMode:
    """The row kinds of a stream: made by :meth:`insert_only`, :meth:`upsert` or :meth:`all`."""

    name: str

    @staticmethod
    def insert_only() -> ChangelogMode:
        """Only inserts."""
        return ChangelogMode("insert_only")

    @staticmethod
    def upsert() -> ChangelogMode:
        """Changes by primary key, without `-U`."""
        return ChangelogMode("upsert")

    @staticmethod
    def all() -> ChangelogMode:
        """All row kinds."""
        return ChangelogMode("all")
