"""Facts that an engine knows about the processes that run its tasks."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ExecutorFacts"]


@dataclass(frozen=True, slots=True)
class ExecutorFacts:
    """One process. Sizes are in bytes. Spark reports the maximum so far."""

    executor_id: str
    host: str
    port: int
    cores: int
    started: int
    """In epoch milliseconds."""
    heap_used: int = 0
    heap_max: int = 0
    non_heap_used: int = 0
    managed: int = 0
    """The memory that Spark may use for execution and storage."""
    direct_used: int = 0
    mapped_used: int = 0
    collections: tuple[tuple[str, int, int], ...] = ()
    """Garbage collectors: name, number of collections, total milliseconds."""
