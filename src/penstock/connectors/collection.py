"""A collection of the driver program as a source."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.connectors.ranges import RangeEnumerator, RangeSplit
from penstock.core.source import Source, SourceReader, SourceSplit, SplitEnumerator
from penstock.runtime.records.serialization import dumps

__all__ = ["CollectionSource"]

_CHUNK = 1_024
_COLLECTION = "collection:"
_log = logging.getLogger(__name__)


class CollectionSource(Source):
    """The elements of a collection, in order. Later changes to the collection have no effect.

    >>> source = CollectionSource(["a", "b", "c"])
    >>> (split,) = source.create_enumerator(4).discover_splits()
    >>> [values for values, _ in source.create_reader().read(split, 1, 3)]
    [['b', 'c']]
    """

    def __init__(self, elements: Sequence[Any]) -> None:
        self._size = len(elements)
        self._chunks = [
            dumps(list(elements[low : low + _CHUNK]), "an element of the collection")
            for low in range(0, len(elements), _CHUNK)
        ]

    def __len__(self) -> int:
        return self._size

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """Create an enumerator with one split, to keep the order of the collection."""
        return _CollectionEnumerator([RangeSplit(f"{_COLLECTION}{self._size}", 0, self._size)])

    def create_reader(self) -> SourceReader:
        """Create a reader of positions."""
        return _CollectionReader(self._chunks)

    def initial_offset(self, split: SourceSplit) -> int:
        """Return the position of the first element."""
        return 0


class _CollectionEnumerator(RangeEnumerator):
    """Compares the number of elements in the checkpoint with the program, because only the program has the elements."""

    def restore(self, finished: Mapping[str, bool]) -> None:
        for split_id, is_finished in finished.items():
            (ours,) = self._splits
            then = split_id.removeprefix(_COLLECTION)
            if split_id != ours.split_id and then.isdecimal():
                what = f"the collection had {then} elements when the checkpoint was written and has {ours.end} now"
                if not is_finished:
                    raise InvalidProgramError(f"{what}: resume with the same elements, or start without the checkpoint")
                _log.warning("%s. It was read to its end, and is not read again.", what.capitalize())
            self._splits = [replace(ours, split_id=split_id)]

    def restore_split(self, split_id: str) -> RangeSplit:
        return replace(self._splits[0], split_id=split_id)


class _CollectionReader(SourceReader):
    """Decodes elements on every read, so that changing a record cannot change the source."""

    def __init__(self, blobs: list[bytes]) -> None:
        self._chunks = blobs

    def read(
        self, split: SourceSplit, start_offset: Any, end_offset: Any
    ) -> Iterator[tuple[list[Any], list[int] | None]]:
        while start_offset < end_offset:
            number, skip = divmod(start_offset, _CHUNK)
            values = pickle.loads(self._chunks[number])[skip : skip + end_offset - start_offset]
            start_offset += len(values)
            yield values, None
