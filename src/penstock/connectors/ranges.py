"""The base of sources over a range of numbers, with even splits. The offset is the next number.

The id of a split is its range, so the ranges are part of each checkpoint. As in Flink, a restored job reads its
original ranges, whatever the program says now.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.core.source import SourceSplit, SplitEnumerator

__all__ = ["RangeEnumerator", "RangeSplit", "chunks", "even_splits"]

_TO = ".."
_log = logging.getLogger(__name__)

CHUNK = 8_192
"""Records per chunk: large enough to make the loop cheap, small enough to stay in the CPU's cache."""


@dataclass(frozen=True)
class RangeSplit(SourceSplit):
    """The numbers from start to end, end exclusive."""

    start: int = 0
    end: int = 0


def even_splits(start: int, end: int, count: int) -> list[RangeSplit]:
    """Create `count` contiguous splits of nearly the same size, or fewer if there are fewer numbers.

    >>> [(split.start, split.end) for split in even_splits(0, 10, 3)]
    [(0, 3), (3, 6), (6, 10)]
    """
    total = end - start
    count = max(1, min(count, total))
    edges = [start + total * index // count for index in range(count + 1)]
    return [range_split(edges[index], edges[index + 1]) for index in range(count)]


def range_split(start: int, end: int) -> RangeSplit:
    """Create a split whose id is its range."""
    return RangeSplit(f"{start}{_TO}{end}", start, end)


def _parse(split_id: str) -> RangeSplit | None:
    start, separator, end = split_id.partition(_TO)
    return range_split(int(start), int(end)) if separator else None


def chunks(start: int, end: int) -> Iterator[range]:
    """Yield the range in chunks."""
    for low in range(start, end, CHUNK):
        yield range(low, min(low + CHUNK, end))


def _extent(splits: Sequence[RangeSplit]) -> tuple[int, int]:
    return min(split.start for split in splits), max(split.end for split in splits)


class RangeEnumerator(SplitEnumerator):
    """Plans splits that can be read to their end at once."""

    def __init__(self, splits: Sequence[RangeSplit]) -> None:
        self._splits = list(splits)

    def discover_splits(self) -> Sequence[SourceSplit]:
        """Return the splits, which never change."""
        return self._splits

    def restore(self, finished: Mapping[str, bool]) -> None:
        """Use the ranges of the checkpoint, even if the program now has others."""
        kept = [self.restore_split(split_id) for split_id in finished]
        now, then = _extent(self._splits), _extent(kept)
        if now != then:
            _log.warning(
                "The checkpoint reads the numbers %d to %d. The program now says %d to %d, which has no effect: "
                "start without the checkpoint to read these.",
                *(then[0], then[1] - 1, now[0], now[1] - 1),
            )
        self._splits = kept

    def restore_split(self, split_id: str) -> RangeSplit:
        """Return the range of an id. In older checkpoints, ids are the positions of splits."""
        return _parse(split_id) or replace(self._splits[int(split_id)], split_id=split_id)

    def latest_offset(self, split: SourceSplit, start_offset: Any, max_records: int) -> Any:
        """Return an offset within the limit."""
        assert isinstance(split, RangeSplit)
        return min(split.end, start_offset + max_records)

    def is_finished(self, split: SourceSplit, offset: Any) -> bool:
        """Whether the last number was read."""
        assert isinstance(split, RangeSplit)
        return bool(offset >= split.end)
