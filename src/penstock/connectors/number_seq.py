"""A source of numbers in a range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError
from penstock.connectors.ranges import RangeEnumerator, RangeSplit, chunks, even_splits
from penstock.core.source import Source, SourceReader, SourceSplit, SplitEnumerator

__all__ = ["NumberSequenceSource"]


class NumberSequenceSource(Source):
    """The numbers from ``start`` to ``end``, both inclusive, in as many splits as the source has tasks.

    >>> source = NumberSequenceSource(1, 5)
    >>> splits = source.create_enumerator(2).discover_splits()
    >>> [numbers for split in splits for numbers, _ in source.create_reader().read(split, split.start, split.end)]
    [[1, 2], [3, 4, 5]]
    """

    def __init__(self, start: int, end: int) -> None:
        if not is_int(start) or not is_int(end) or start > end:
            raise InvalidProgramError(f"a number sequence needs ints start <= end, got {start!r} and {end!r}")
        self._start = start
        self._end = end

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """Create an enumerator with even, contiguous splits."""
        return RangeEnumerator(even_splits(self._start, self._end + 1, parallelism))

    def create_reader(self) -> SourceReader:
        """Create a reader that counts."""
        return _NumberReader()

    def initial_offset(self, split: SourceSplit) -> int:
        """Return the first number of the split."""
        assert isinstance(split, RangeSplit)
        return split.start


class _NumberReader(SourceReader):
    def read(
        self, split: SourceSplit, start_offset: Any, end_offset: Any
    ) -> Iterator[tuple[list[Any], list[int] | None]]:
        for part in chunks(start_offset, end_offset):
            yield list(part), None
