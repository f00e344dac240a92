"""Generated records: a function of an index, with a count and a rate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError
from penstock.common.typeinfo import TypeInformation
from penstock.connectors.ranges import RangeEnumerator, RangeSplit, chunks, even_splits
from penstock.connectors.rate_limit import RateLimitedEnumerator, RateLimiterStrategy
from penstock.core.functions import Function, MapFunction, RuntimeContext
from penstock.core.source import Boundedness, Source, SourceReader, SourceSplit, SplitEnumerator

__all__ = ["DataGeneratorSource", "GeneratorFunction", "RateLimiterStrategy"]

_ENDLESS = 2**63 - 1


class GeneratorFunction(MapFunction):
    """A generator with a life cycle: ``map(index)`` returns the record, and ``open`` is called before the first one."""


class DataGeneratorSource(Source):
    """Records ``function(0)``, ``function(1)``, ..., ``function(count - 1)``; unbounded without a count.

    The function must always return the same record for the same index, because replays depend on it. The rate is a
    :class:`RateLimiterStrategy` or a number of records per second.

    >>> source = DataGeneratorSource(lambda index: f"event {index}", 3)
    >>> (split,) = source.create_enumerator(1).discover_splits()
    >>> [values for values, _ in source.create_reader().read(split, 0, 3)]
    [['event 0', 'event 1', 'event 2']]
    """

    def __init__(
        self,
        generator_function: Callable[[int], Any] | GeneratorFunction,
        count: int | None = None,
        rate_limiter_strategy: RateLimiterStrategy | float | None = None,
        type_info: TypeInformation | None = None,
    ) -> None:
        if not callable(generator_function) and not hasattr(generator_function, "map"):
            raise InvalidProgramError(f"a data generator needs a function of an index, got {generator_function!r}")
        if count is not None and (not is_int(count) or count < 0):
            raise InvalidProgramError(f"the number of records must be an int of at least 0, got {count!r}")
        if isinstance(rate_limiter_strategy, (int, float)):
            rate_limiter_strategy = RateLimiterStrategy.per_second(rate_limiter_strategy)
        self._function = generator_function
        self._count = count
        self._rate = rate_limiter_strategy or RateLimiterStrategy.no_op()
        self._type_info = type_info

    def get_produced_type(self) -> TypeInformation | None:
        """Return the declared type of the records."""
        return self._type_info

    def get_boundedness(self) -> Boundedness:
        """Return whether the source is bounded: it is if it has a count."""
        return Boundedness.CONTINUOUS_UNBOUNDED if self._count is None else Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        """Create an enumerator with even, contiguous splits of the indexes."""
        splits = even_splits(0, _ENDLESS if self._count is None else self._count, parallelism)
        if self._rate.records_per_second is not None:
            return _PacedEnumerator(splits, self._rate.records_per_second)
        enumerator = RangeEnumerator(splits)
        return RateLimitedEnumerator(enumerator, self._rate) if self._rate.limits else enumerator

    def create_reader(self) -> SourceReader:
        """Create a reader that calls the function."""
        return _GeneratorReader(self._function)

    def initial_offset(self, split: SourceSplit) -> int:
        """Return the first index of the split."""
        assert isinstance(split, RangeSplit)
        return split.start


class _PacedEnumerator(RangeEnumerator):
    """Advances each split with the clock, from its position when the job started or restarted.

    It catches up on all the time that has passed, unlike the limit of another source. It is also for measurements,
    which must show how far a job is behind.

    The clock starts when the second batch is planned. The first batch starts the workers, and records due in the
    meantime would then arrive as one block.
    """

    def __init__(self, splits: Sequence[RangeSplit], records_per_second: float) -> None:
        super().__init__(splits)
        self._records_per_second = records_per_second
        self._asked: set[str] = set()
        self._started: dict[str, tuple[float, int]] = {}  # split -> start time, and the offset then

    def latest_offset(self, split: SourceSplit, start_offset: Any, max_records: int) -> Any:
        """Return the offset that the rate allows by now."""
        assert isinstance(split, RangeSplit)
        now, name = time.monotonic(), split.split_id
        if name not in self._asked:
            self._asked.add(name)
            return start_offset
        started, first = self._started.setdefault(name, (now, start_offset))
        due = first + int((now - started) * self._records_per_second / len(self._splits))
        return max(start_offset, min(split.end, due, start_offset + max_records))


class _GeneratorReader(SourceReader):
    def __init__(self, function: Any) -> None:
        self._owner = function
        self._function: Callable[[int], Any] = getattr(function, "map", function)

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self._owner, Function):
            self._owner.set_runtime_context(runtime_context)
            self._owner.open(runtime_context)

    def read(
        self, split: SourceSplit, start_offset: Any, end_offset: Any
    ) -> Iterator[tuple[list[Any], list[int] | None]]:
        function = self._function
        for part in chunks(start_offset, end_offset):
            yield [function(index) for index in part], None

    def close(self) -> None:
        if isinstance(self._owner, Function):
            self._owner.close()
