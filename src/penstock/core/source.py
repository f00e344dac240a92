"""The contract of sources.

A source is a set of *splits* (files, partitions of a log, ranges of numbers), each read from offset to offset. The
driver asks the :class:`SplitEnumerator` in every micro-batch up to where each split can be read; tasks read exactly
these ranges with a :class:`SourceReader`. A range that was handed out once must give the same records when it is read
again: this is what makes replays exact.

Offsets are anything JSON can hold; only the source that made them looks into them.

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
    """Whether a source comes to an end."""

    BOUNDED = 0
    CONTINUOUS_UNBOUNDED = 1


@dataclass(frozen=True)
class SourceSplit:
    """A part of a source that is read independently. Subclasses add what their reader needs; all are pickled."""

    split_id: str

    def part(self, index: int, count: int, start_offset: Any) -> SourceSplit:
        """Return the part of a range from ``start_offset`` that task ``index`` of ``count`` reads, under its own name.

        Only for sources that say ``spreads``.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be read by several tasks at once")


class SplitEnumerator(ABC):
    """Knows the splits of a source and how far each can be read. Runs on the driver."""

    @property
    def reads_in_order(self) -> bool:
        """Whether a task reads one split to its end before it takes the next, in the order of the list, as files are
        read. Otherwise all splits are read side by side, as partitions of a log are.
        """
        return False

    def use_steps(self, wake: Callable[[], None]) -> None:
        """Called before :meth:`start` in the continuous mode: many offsets are asked for from one checkpoint to the
        next. After a failure the job resumes from the checkpoint, not from the last offset.

        :param wake: to be called, from any thread, when something has arrived; without it an idle job looks for
            records every 50 ms
        """
        return

    def start(self) -> None:
        """Called once before anything else; connections are opened here."""
        return

    @abstractmethod
    def discover_splits(self) -> Sequence[SourceSplit]:
        """All splits known so far, always in the same order, new ones last. Called every micro-batch: be cheap."""

    def starting_offset(self, split: SourceSplit, *, fresh: bool) -> Any | None:
        """Where to read a split from that the job has no position for; ``None`` leaves it to the source's
        ``initial_offset``. ``fresh`` is false if the job has read from this source before: the split is new since then.

        The answer is kept in the checkpoint, so it need not be the same when asked again ("the end of the log now").
        """
        return None

    @abstractmethod
    def latest_offset(self, split: SourceSplit, start_offset: Any, max_records: int) -> Any | None:
        """The offset up to which to read now, about ``max_records`` at most; ``start_offset`` (or ``None``) if
        there is nothing new. Must be cheap.
        """

    def record_count(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> int | None:
        """About how many records a range has, for rate limits. ``None`` if offsets that are numbers (or lists that
        begin with one) count records, or if the number is unknown.
        """
        return None

    def pending_records(self, split_id: str, offset: Any) -> int | None:
        """How many records the split has behind an offset, as far as is known without asking; None if it is unknown."""
        return None

    @abstractmethod
    def is_finished(self, split: SourceSplit, offset: Any) -> bool:
        """Whether nothing can follow after ``offset``: the split is bounded and read to its end."""

    def subtask_for(self, split_id: str, parallelism: int) -> int | None:
        """The subtask that is to read a split; ``None`` for the one that has the fewest."""
        return None

    def restore_split(self, split_id: str) -> SourceSplit:
        """The split of that name, for a batch that is read again after a restart: it may not be listed any more."""
        raise KeyError(f"split {split_id!r} of the checkpoint is gone from the source")

    def restore(self, finished: Mapping[str, bool]) -> None:
        """Called before the first :meth:`discover_splits` of a job that continues: the splits in its checkpoint by
        their ids, and whether each was read to its end.
        """
        return

    def has_more_splits(self) -> bool:
        """Whether splits will follow that :meth:`discover_splits` does not list yet. A bounded source that hands out
        its splits a few at a time says so until the last one is listed.
        """
        return False

    def forget(self, split_ids: Sequence[str]) -> bool:
        """Whether these finished splits may leave the checkpoint, so that it does not grow with everything ever read.

        A source that says yes never lists them again, also after a restart: it keeps a durable note of its own.
        """
        return False

    def remembered(self) -> Sequence[str]:
        """The splits that were forgotten: a savepoint takes them along, for :meth:`restore` of another job."""
        return ()

    def prepare(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> SourceSplit:
        """Return the split that the reader gets for a range; a source that keeps its data on the driver attaches it
        here.
        """
        return split

    def use_clock(self, clock: Callable[[], int]) -> None:
        """Called before :meth:`start`: the job's clock, in milliseconds. Only what is asked while a batch is planned
        may depend on it; a batch that is read again is read as it was planned.
        """
        return

    def use_directory(self, directory: str) -> None:
        """Called before :meth:`start`: a directory for what must survive a restart of the driver."""
        return

    def commit(self, offsets: Mapping[str, Any]) -> None:
        """Everything before these offsets (by split id) is processed durably. May be called again with the same."""
        return

    def close(self) -> None:
        """Called once at the end, also after a failure."""
        return


class SourceReader(ABC):
    """Reads ranges of splits. Runs in the tasks; created anew there, so it need not be picklable."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Called once before the first read."""
        return

    @abstractmethod
    def read(
        self, split: SourceSplit, start_offset: Any, end_offset: Any
    ) -> Iterator[tuple[list[Any], list[int] | None] | int]:
        """Yields batches ``(values, timestamps)`` of the records from ``start_offset`` up to ``end_offset``.

        Between batches it may yield an ``int``, a watermark, or ``True`` when the split is idle from here on.

        ``timestamps`` has one entry per value, or is ``None`` if the source knows no timestamps. The same range
        must give the same records in the same order, whenever it is read.
        """

    def close(self) -> None:
        """Called once at the end, also after a failure."""
        return


class Source(ABC, Generic[T]):
    """A source of records, as passed to `from_source`. Must be picklable."""

    makes_watermarks: bool = False
    """Whether readers yield watermarks of their own: functions that look at the clock then keep it across batches."""

    spreads: bool = False
    """Whether several tasks may read one range of a split, each a part (:meth:`SourceSplit.part`). Where a source with
    one task feeds operators with more, these then read for themselves: the records need not be sent to them.
    """

    def get_boundedness(self) -> Boundedness:
        """Whether the source comes to an end; bounded unless overridden."""
        return Boundedness.BOUNDED

    @property
    def is_bounded(self) -> bool:
        """Whether the source comes to an end."""
        return self.get_boundedness() is Boundedness.BOUNDED

    @property
    def may_end(self) -> bool:
        """Whether the source can come to an end: bounded ones always, others if they say so."""
        return self.is_bounded

    @abstractmethod
    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """The enumerator, for a job that reads with ``parallelism`` tasks."""

    @abstractmethod
    def create_reader(self) -> SourceReader:
        """A reader, for one task."""

    @abstractmethod
    def initial_offset(self, split: SourceSplit) -> Any:
        """Where a split is read from if the job has no checkpoint; JSON-able."""

    get_java_function = no_java_object


def planned_records(
    enumerator: SplitEnumerator, split: SourceSplit, start_offset: Any, end_offset: Any, allowed: int
) -> int:
    """Estimate the number of records in a range that was planned for ``allowed`` records."""
    count = enumerator.record_count(split, start_offset, end_offset)
    return records_between(start_offset, end_offset, allowed) if count is None else count


def records_between(start: Any, end: Any, allowed: int) -> int:
    """At most how many records a range has that was planned for ``allowed``: offsets that are not numbers say nothing.

    >>> records_between(10, 13, 100), records_between([10, 50], [13, 50], 100), records_between("a", "b", 100)
    (3, 3, 100)
    """
    first, last = (offset[0] if isinstance(offset, list) and offset else offset for offset in (start, end))
    return max(0, min(allowed, last - first)) if is_int(first) and is_int(last) else allowed
