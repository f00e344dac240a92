"""Hadoop's local file system without a process per file."""

from __future__ import annotations

__all__ = ["settings"]


def settings() -> dict[str, str]:
    """Spark settings that put the file system in place; none if it cannot be had."""
    return {}
