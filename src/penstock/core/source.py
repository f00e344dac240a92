"""The contract of sources.

A source is a set of *splits* (files, partitions of a log, ranges of numbers), each read from offset to offset. In each
micro-batch, the driver asks the :class:`SplitEnumerator` for the offset up to which each split can be read. Tasks read
exactly these ranges with a :class:`SourceReader`. A range must give the same records each time it is read: this makes
replays exact.

An offset is any JSON value. Only the source that creates it interprets it.

>>> class Countdown(Source):
...     '''Counts down from n to 1: one split whose offset is the number of records read.'''
...
...     def __init__(self, n):
...         self.n = n
...
...     def create_enumerator(self, parallelism):
...         return CountdownEnumerator(self.n)
...
...     def create_reader(self):
...         return CountdownReader(self.n)
...
...     def initial_offset(self, split):
...         return 0
>>> class CountdownEnumerator(SplitEnumerator):
...     def __init__(self, n):
...         self.n = n
...
...     def discover_splits(self):
...         return [SourceSplit("all")]
...
...     def latest_offset(self, split, start_offset, max_records):
...         return min(self.n, start_offset + max_records)
...
...     def is_finished(self, split, offset):
...         return offset >= self.n
>>> class CountdownReader(SourceReader):
...     def __init__(self, n):
...         self.n = n
...
...     def read(self, split, start_offset, end_offset):
...         yield [self.n - i for i in range(start_offset, end_offset)], None
>>> source = Countdown(5)
>>> enumerator, reader = source.create_enumerator(1), source.create_reader()
>>> (split,) = enumerator.discover_splits()
>>> end = enumerator.latest_offset(split, source.initial_offset(split), max_records=3)
>>> [values for values, _ in reader.read(split, 0, end)], enumerator.is_finished(split, end)
([[5, 4, 3]], False)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.common.checks import is_int
from penstock.common.unsupported import no_java_object

if TYPE_CHECKING:
    from penstock.core.functions import RuntimeContext

__all__ = ["Boundedness", "Source", "SourceReader", "SourceSplit", "SplitEnumerator"]

T = TypeVar("T")


class Boundedness(Enum):
    """Whether a source is bounded."""

    BOUNDED = 0
    CONTINUOUS_UNBOUNDED = 1


@dataclass(frozen=True)
class SourceSplit:
    """A part of a source that is read independently. Subclasses add what their reader needs. Splits are pickled."""

    split_id: str

    def part(self, index: int, count: int, start_offset: Any) -> SourceSplit:
        """Return the part of a range from ``start_offset`` for task ``index`` of ``count``, as a split with its own id.

        Only for sources with ``spreads``.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be read by several tasks at once")


class SplitEnumerator(ABC):
    """Lists the splits of a source and how far each can be read. Runs on the driver."""

    @property
    def reads_in_order(self) -> bool:
        """Whether a task reads one split to its end before the next, in the order of the list, as for files. Otherwise
        it reads all splits in parallel, as for partitions of a log.
        """
        return False

    def use_steps(self, wake: Callable[[], None]) -> None:
        """Called before :meth:`start` in continuous mode, where many offsets are requested between two checkpoints.
        After a failure the job resumes from the checkpoint, not from the last offset.

        :param wake: call it, from any thread, when new data arrives; otherwise an idle job polls for records every
            50 ms
        """
        return

    def start(self) -> None:
        """Called once before all other methods. Open connections here."""
        return

    @abstractmethod
    def discover_splits(self) -> Sequence[SourceSplit]:
        """Return all known splits in a stable order, new ones last. Called in every micro-batch: be cheap."""

    def starting_offset(self, split: SourceSplit, *, fresh: bool) -> Any | None:
        """Return the start offset of a split for which the job has no position, or ``None`` for the source's
        ``initial_offset``. ``fresh`` is False if the job has read from this source before, so the split is new.

        The checkpoint stores the result, so it may differ between calls (for example, the current end of the log).
        """
        return None

    @abstractmethod
    def latest_offset(self, split: SourceSplit, start_offset: Any, max_records: int) -> Any | None:
        """Return the offset up to which to read now, for at most about ``max_records`` records; ``start_offset`` (or
        ``None``) if there are no new ones. Must be cheap.
        """

    def record_count(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> int | None:
        """Estimate the number of records in a range, for rate limits. Return ``None`` if numeric offsets (or lists that
        begin with a number) count records, or if the number is unknown.
        """
        return None

    def pending_records(self, split_id: str, offset: Any) -> int | None:
        """Return the number of records after an offset if it is known without a request, otherwise None."""
        return None

    @abstractmethod
    def is_finished(self, split: SourceSplit, offset: Any) -> bool:
        """Whether the split is bounded and ``offset`` is its end."""

    def subtask_for(self, split_id: str, parallelism: int) -> int | None:
        """Return the subtask that reads a split, or ``None`` for the one with the fewest splits."""
        return None

    def restore_split(self, split_id: str) -> SourceSplit:
        """Return the split with this id, for a batch that is replayed. The split may no longer be listed."""
        raise KeyError(f"split {split_id!r} of the checkpoint no longer exists in the source")

    def restore(self, finished: Mapping[str, bool]) -> None:
        """Called before the first :meth:`discover_splits` of a restored job, with the ids of the splits in its
        checkpoint, and whether each was read to its end.
        """
        return

    def has_more_splits(self) -> bool:
        """Whether there are splits that :meth:`discover_splits` does not list yet. A bounded source that lists its
        splits a few at a time returns True until the last one is listed.
        """
        return False

    def forget(self, split_ids: Sequence[str]) -> bool:
        """Whether to remove these finished splits from the checkpoint, so that it does not grow forever.

        If True, the source never lists them again, also after a restart. It keeps its own durable record.
        """
        return False

    def remembered(self) -> Sequence[str]:
        """Return the forgotten splits, which a savepoint stores for :meth:`restore` of another job."""
        return ()

    def prepare(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> SourceSplit:
        """Return the split that the reader gets for a range. A source whose data is on the driver attaches the data
        here.
        """
        return split

    def use_clock(self, clock: Callable[[], int]) -> None:
        """Called before :meth:`start` with the job's clock, in milliseconds. Only the planning of a batch may depend on
        it; a replayed batch is read as it was planned.
        """
        return

    def use_directory(self, directory: str) -> None:
        """Called before :meth:`start` with a directory for data that must survive a restart of the driver."""
        return

    def commit(self, offsets: Mapping[str, Any]) -> None:
        """Called when all data before these offsets (by split id) is processed durably. Calls may repeat."""
        return

    def close(self) -> None:
        """Called once at the end, also after a failure."""
        return


class SourceReader(ABC):
    """Reads ranges of splits. Created and run in the tasks, so it need not be picklable."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Called once before the first read."""
        return

    @abstractmethod
    def read(
        self, split: SourceSplit, start_offset: Any, end_offset: Any
    ) -> Iterator[tuple[list[Any], list[int] | None] | int]:
        """Yield batches ``(values, timestamps)`` of the records from ``start_offset`` up to ``end_offset``.

        Between batches it may yield an ``int``, which is a watermark, or ``True`` to mark the split as idle.

        ``timestamps`` has one entry per value, or is ``None`` if the source has no timestamps. The same range must
        always give the same records in the same order.
        """

    def close(self) -> None:
        """Called once at the end, also after a failure."""
        return


class Source(ABC, Generic[T]):
    """A source of records, as passed to `from_source`. Must be picklable."""

    makes_watermarks: bool = False
    """Whether readers yield their own watermarks. Functions that read the clock then keep it across batches."""

    spreads: bool = False
    """Whether several tasks may each read a part of one range of a split (:meth:`SourceSplit.part`). If a source with
    one task feeds operators with more, these then read the data themselves, so it need not be sent to them.
    """

    def get_boundedness(self) -> Boundedness:
        """Return whether the source is bounded. It is unless overridden."""
        return Boundedness.BOUNDED

    @property
    def is_bounded(self) -> bool:
        """Whether the source is bounded."""
        return self.get_boundedness() is Boundedness.BOUNDED

    @property
    def may_end(self) -> bool:
        """Whether the source can end: always for bounded sources, for others if they override this."""
        return self.is_bounded

    @abstractmethod
    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """Create the enumerator for a job that reads with ``parallelism`` tasks."""

    @abstractmethod
    def create_reader(self) -> SourceReader:
        """Create a reader for one task."""

    @abstractmethod
    def initial_offset(self, split: SourceSplit) -> Any:
        """Return the start offset of a split if the job has no checkpoint, as a JSON value."""

    get_java_function = no_java_object


def planned_records(
    enumerator: SplitEnumerator, split: SourceSplit, start_offset: Any, end_offset: Any, allowed: int
) -> int:
    """Estimate the number of records in a range that was planned for ``allowed`` records."""
    count = enumerator.record_count(split, start_offset, end_offset)
    return records_between(start_offset, end_offset, allowed) if count is None else count


def records_between(start: Any, end: Any, allowed: int) -> int:
    """Return the maximum number of records in a range planned for ``allowed``, using offsets if they are numbers.

    >>> records_between(10, 13, 100), records_between([10, 50], [13, 50], 100), records_between("a", "b", 100)
    (3, 3, 100)
    """
    first, last = (offset[0] if isinstance(offset, list) and offset else offset for offset in (start, end))
    return max(0, min(allowed, last - first)) if is_int(first) and is_int(last) else allowed
