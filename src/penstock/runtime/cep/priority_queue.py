"""A binary heap that moves its items exactly as java.util.PriorityQueue does.

With a skip strategy, the first of several matches that began with the same event drops the others. Flink keeps runs and
matches in such heaps, ordered only by their first event, so the way the heap moves equal items decides which one is
first. Python's heapq moves them differently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["discard", "poll", "push"]

Item = tuple[Any, ...]
"""Items are ordered by the first part."""


def push(heap: list[Any], item: Item) -> None:
    """Add an item. It rises while it is smaller than its parent."""
    order = item[0]
    position = len(heap)
    heap.append(item)
    while position:
        parent = (position - 1) >> 1
        above = heap[parent]
        if order >= above[0]:
            break
        heap[position] = above
        position = parent
    heap[position] = item


def poll(heap: list[Any]) -> Any:
    """Remove and return the first item. The last one takes its place and sinks."""
    first = heap[0]
    last = heap.pop()
    if heap:
        _sink(heap, 0, last)
    return first


def discard(heap: list[Any], unwanted: Callable[[Any], bool]) -> bool:
    """Remove items, and restore the heap from the last parent up. Return whether any were removed."""
    kept = [item for item in heap if not unwanted(item)]
    if len(kept) == len(heap):
        return False
    heap[:] = kept
    for position in range((len(heap) >> 1) - 1, -1, -1):
        _sink(heap, position, heap[position])
    return True


def _sink(heap: list[Any], position: int, item: Item) -> None:
    order, size = item[0], len(heap)
    half = size >> 1
    while position < half:
        child = 2 * position + 1
        right = child + 1
        if right < size and heap[child][0] > heap[right][0]:
            child = right
        if order <= heap[child][0]:
            break
        heap[position] = heap[child]
        position = child
    heap[position] = item
