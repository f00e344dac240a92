"""What sources over a range of numbers share: even splits, and an offset that is the next number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.core.source import SourceSplit, SplitEnumerator

__all__ = ["RangeEnumerator", "RangeSplit", "chunks", "even_splits"]

CHUNK = 8_192
"""Records handed over at once: large enough to make the loop cheap, small enough to stay in the CPU's cache."""


@dataclass(frozen=True)
class RangeSplit(SourceSplit):
    """The numbers from start to end, end excluded."""

    start: int = 0
    end: int = 0


def even_splits(start: int, end: int, count: int) -> list[RangeSplit]:
    """`count` contiguous splits of nearly the same size; fewer if there are fewer numbers.

    >>> [(split.start, split.end) for split in even_splits(0, 10, 3)]
    [(0, 3), (3, 6), (6, 10)]
    """
    total = end - start
    count = max(1, min(count, total))
    edges = [start + total * index // count for index in range(count + 1)]
    return [RangeSplit(str(index), edges[index], edges[index + 1]) for index in range(count)]


def chunks(start: int, end: int) -> Iterator[range]:
    """The range in pieces."""
    for low in range(start, end, CHUNK):
        yield range(low, min(low + CHUNK, end))


class RangeEnumerator(SplitEnumerator):
    """Every split can be read to its end at once."""

    def __init__(self, splits: Sequence[RangeSplit]) -> None:
        self._splits = list(splits)

    def discover_splits(self) -> Sequence[SourceSplit]:
        """The same splits, always."""
        return self._splits

    def latest_offset(self, split: SourceSplit, start_offset: Any, max_records: int) -> Any:
        """As far as allowed."""
        assert isinstance(split, RangeSplit)
        return min(split.end, start_offset + max_records)

    def is_finished(self, split: SourceSplit, offset: Any) -> bool:
        """Whether the last number was read."""
        assert isinstance(split, RangeSplit)
        return bool(offset >= split.end)
