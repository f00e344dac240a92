"""Slices of a key, and how they form windows.

A window of n slices could merge all of them whenever it fires, but then the cost of a record would still grow with
size / slide. Instead, the time line is divided into blocks of the length of a window. A window touches at most two
blocks: it is a tail of the first and a head of the second. One pass from the end of a block computes all its tails, and
the head grows by one slice with each window. This takes about three merges per window, for any n.

The blocks are fixed on the time line, and they determine the order of merging. Results (including sums of floats)
therefore do not depend on when state was written and restored, and the cached tails and heads are never stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from operator import itemgetter
from typing import Any

from penstock.runtime.records.isolation import copied
from penstock.runtime.state.key_slices import MISSING, KeySlices
from penstock.runtime.windows.contents import Contents


class SliceGrid:
    """Boundaries of slices: a slice begins wherever a window begins or ends.

    >>> grid = SliceGrid(size=10, slide=4, offset=0)
    >>> [grid.after(0), grid.after(2), grid.after(4)], grid.block_of(13), grid.block_length
    ([2, 4, 6], 12, 12)
    """

    __slots__ = ("block_length", "offset", "slide", "split")

    def __init__(self, size: int, slide: int, offset: int) -> None:
        self.slide = slide
        self.offset = offset
        self.split = size % slide
        self.block_length = -(-size // slide) * slide

    def after(self, start: int) -> int:
        """Return the start of the next slice."""
        if not self.split:
            return start + self.slide
        return start + (self.split if (start - self.offset) % self.slide == 0 else self.slide - self.split)

    def block_of(self, timestamp: int) -> int:
        """Return the start of the block that contains a timestamp."""
        return timestamp - (timestamp - self.offset) % self.block_length


class Slices(ABC):
    """The contents of slices, and their combination to windows."""

    def create(self) -> KeySlices:
        """Create the slices of a new key."""
        return KeySlices()

    @abstractmethod
    def add(self, slices: KeySlices, start: int, value: Any) -> None:
        """Add an element to a slice."""

    @abstractmethod
    def elements(self, slices: KeySlices, start: int, end: int) -> list[Any] | None:
        """Return the elements for the window function, or None if the window is empty."""


class NumberedSlices(Slices):
    """All elements, each with its arrival number within the key, so that a window sees them in arrival order."""

    def add(self, slices: KeySlices, start: int, value: Any) -> None:
        """Add an element to a slice."""
        slices.arrivals += 1
        known = slices.get(start)
        if known is None:
            slices[start] = [(slices.arrivals, value)]
        else:
            known.append((slices.arrivals, value))

    def elements(self, slices: KeySlices, start: int, end: int) -> list[Any] | None:
        """Return all elements between start and end."""
        found = [element for at in sorted(slices) if start <= at < end for element in slices[at]]
        found.sort(key=itemgetter(0))  # fast: the slices are sorted runs
        return [element[1] for element in found] or None


class FoldedSlices(Slices):
    """One reduced value or accumulator per slice."""

    def __init__(self, contents: Contents, grid: SliceGrid) -> None:
        self._contents = contents
        self._grid = grid
        self._merge = contents.merger

    def add(self, slices: KeySlices, start: int, value: Any) -> None:
        """Add an element to a slice."""
        known = slices.get(start, MISSING)
        slices[start] = self._contents.first(value) if known is MISSING else self._contents.fold(known, value)

    def elements(self, slices: KeySlices, start: int, end: int) -> list[Any] | None:
        """Return the one result of all slices between start and end."""
        tail_block, head_block = self.blocks(start)
        combined, kept = self.combine(slices, tail_block, start, head_block, end)
        return None if combined is MISSING else self._contents.elements(combined, kept=kept)

    def blocks(self, start: int) -> tuple[int | None, int]:
        """Return the block of the window's tail (None if the window begins with a block) and the block of its head."""
        block = self._grid.block_of(start)
        return (None, block) if start == block else (block, block + self._grid.block_length)

    def combine(
        self, slices: KeySlices, tail_block: int | None, start: int, head_block: int, end: int
    ) -> tuple[Any, bool]:
        """Combine the tail of one block with the head of the next. Also return whether the slices hold the result."""
        if slices.head_block == head_block and slices.head_to == end:
            head = slices.head
        else:
            head = self._head(slices, head_block, end)
        if tail_block is None:
            return head, True
        if slices.tail_block != tail_block or slices.tail_from > start:
            self._build_tails(slices, tail_block, start)
        position = bisect_left(slices.tail_starts, start)
        if position == len(slices.tail):
            return head, True
        tail = slices.tail[position]
        return (tail, True) if head is MISSING else (self._merge(copied(tail), copied(head)), False)

    def _head(self, slices: KeySlices, block: int, end: int) -> Any:
        """Merge all slices from the beginning of a block to `end`."""
        if slices.head_block != block or slices.head_to > end:
            slices.head_block, slices.head_to, slices.head = block, block, MISSING
        at, head, merge, after = slices.head_to, slices.head, self._merge, self._grid.after
        while at < end:
            part = slices.get(at, MISSING)
            if part is not MISSING:
                head = copied(part) if head is MISSING else merge(head, copied(part))
            at = after(at)
        slices.head_to, slices.head = at, head
        return head

    def _build_tails(self, slices: KeySlices, block: int, start: int) -> None:
        merge, end = self._merge, block + self._grid.block_length
        starts = sorted(at for at in slices if start <= at < end)
        tails: list[Any] = []
        for at in reversed(starts):
            part = copied(slices[at])
            tails.append(merge(part, copied(tails[-1])) if tails else part)
        tails.reverse()
        slices.tail_block, slices.tail_from, slices.tail_starts, slices.tail = block, start, starts, tails
