"""Rate limits for any source: a maximum number of records per second or per checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError, shorten
from penstock.core.source import Boundedness, Source, SourceReader, SourceSplit, SplitEnumerator, planned_records

__all__ = ["RateLimitedSource", "RateLimiterStrategy"]


@dataclass(frozen=True, slots=True)
class RateLimiterStrategy:
    """The rate of a source: records per second or per checkpoint, over all its tasks.

    >>> RateLimiterStrategy.per_second(100).records_per_second
    100.0
    """

    records_per_second: float | None = None
    records_per_checkpoint: int | None = None

    @staticmethod
    def per_second(records_per_second: float) -> RateLimiterStrategy:
        """Limit the records per second."""
        if not records_per_second > 0:
            raise InvalidProgramError(f"the rate must be positive, got {records_per_second!r} records per second")
        return RateLimiterStrategy(float(records_per_second))

    @staticmethod
    def per_checkpoint(records_per_checkpoint: int) -> RateLimiterStrategy:
        """Limit the records per checkpoint. Each micro-batch ends with a checkpoint."""
        if not is_int(records_per_checkpoint) or records_per_checkpoint < 1:
            raise InvalidProgramError(f"the records per checkpoint must be 1 or more, got {records_per_checkpoint!r}")
        return RateLimiterStrategy(records_per_checkpoint=records_per_checkpoint)

    @staticmethod
    def no_op() -> RateLimiterStrategy:
        """Set no limit."""
        return RateLimiterStrategy()

    @property
    def limits(self) -> bool:
        """Whether a limit is set."""
        return self.records_per_second is not None or self.records_per_checkpoint is not None


class RateLimitedSource(Source):
    """Limits another source to a strategy, or to a number of records per second.

    Positions are those of the other source: a job can resume with a limit, a different one, or none. The limit is as
    exact as the source's estimate of records: for a file of lines, it only knows the bytes.

    >>> from penstock.common import WatermarkStrategy
    >>> from penstock.datastream import StreamExecutionEnvironment
    >>> from penstock.connectors import NumberSequenceSource
    >>> from penstock.testing import MiniCluster
    >>> env = StreamExecutionEnvironment(executor=MiniCluster())
    >>> slow = RateLimitedSource(NumberSequenceSource(1, 3), RateLimiterStrategy.per_second(1_000))
    >>> numbers = env.from_source(slow, WatermarkStrategy.no_watermarks(), "slow").set_parallelism(1)
    >>> list(numbers.execute_and_collect())
    [1, 2, 3]
    """

    def __init__(self, source: Source, rate_limiter_strategy: RateLimiterStrategy | float) -> None:
        if not isinstance(source, Source):
            raise InvalidProgramError(f"only a Source can be limited, got {shorten(source)}")
        strategy = rate_limiter_strategy
        if isinstance(strategy, (int, float)):
            strategy = RateLimiterStrategy.per_second(strategy)
        if not isinstance(strategy, RateLimiterStrategy):
            raise InvalidProgramError(
                f"a rate must be a RateLimiterStrategy or a number of records per second, got {shorten(strategy)}"
            )
        self._source = source
        self._strategy = strategy
        self.makes_watermarks = source.makes_watermarks
        self.spreads = source.spreads

    def get_boundedness(self) -> Boundedness:
        return self._source.get_boundedness()

    @property
    def may_end(self) -> bool:
        return self._source.may_end

    def get_produced_type(self) -> Any:
        """Return the type of the source."""
        produced = getattr(self._source, "get_produced_type", None)
        return None if produced is None else produced()

    @property
    def watermark_strategy(self) -> Any:
        """The watermark strategy of a source for ``add_source``, which may have one."""
        return getattr(self._source, "watermark_strategy", None)

    def create_enumerator(self, parallelism: int) -> SplitEnumerator:
        enumerator = self._source.create_enumerator(parallelism)
        return RateLimitedEnumerator(enumerator, self._strategy) if self._strategy.limits else enumerator

    def create_reader(self) -> SourceReader:
        return self._source.create_reader()

    def initial_offset(self, split: SourceSplit) -> Any:
        return self._source.initial_offset(split)


class RateLimitedEnumerator(SplitEnumerator):
    """Limits the planned records to the available permits.

    Permits are distributed in rounds, one for each planned batch. Splits that had data share them evenly, and the
    remainder goes to each in turn, so that even one record per second reaches all splits. A split that had no data may
    take as much as if all were busy.

    If a range exceeds its permits because it cannot be cut (as in a file), the next range waits longer.

    The time of a batch is made up for, however long it was. Unused permits are kept for only a second. The clock starts
    when the second batch is planned: the first one starts the workers, and records due in the meantime would then
    arrive as one block.
    """

    def __init__(self, enumerator: SplitEnumerator, strategy: RateLimiterStrategy) -> None:
        self._inner = enumerator
        self._strategy = strategy
        self._clock: Callable[[], int] = lambda: int(time.time() * 1000)
        self._refilled: int | None = None
        self._permits = 0.0
        self._round_is_over = True
        self._asked: set[str] = set()  # in this round
        self._busy: dict[str, None] = {}  # in order: the next one to be served comes first
        self._shares: dict[str, int] = {}
        self._share_of_others = 0

    def latest_offset(self, split: SourceSplit, start_offset: Any, max_records: int) -> Any | None:
        """Return the offset that the permits allow."""
        if self._round_is_over:
            self._begin_round()
        name = split.split_id
        self._asked.add(name)
        allowed = min(max_records, int(self._permits), self._shares.get(name, self._share_of_others))
        if allowed < 1:
            if self._share_of_others:  # others were served: now it is its turn
                self._busy.setdefault(name)
            return start_offset
        end = self._inner.latest_offset(split, start_offset, allowed)
        if end is None or end == start_offset:
            self._busy.pop(name, None)
        else:
            self._busy.setdefault(name)
            self._permits -= planned_records(self._inner, split, start_offset, end, allowed)
        return end

    def _begin_round(self) -> None:
        self._round_is_over = False
        self._refill()
        permits, splits = max(0, int(self._permits)), len(self._asked)
        busy = [name for name in self._busy if name in self._asked]
        share, rest = divmod(permits, max(1, len(busy)))
        self._shares = {name: share + (turn < rest) for turn, name in enumerate(busy)}
        self._share_of_others = min(permits, max(1, permits // max(1, splits)))
        self._busy = dict.fromkeys(busy[rest:] + busy[:rest])
        self._asked = set()

    def _refill(self) -> None:
        rate = self._strategy.records_per_second
        if rate is None:
            self._permits = self._strategy.records_per_checkpoint or 0
        elif self._asked:
            now = self._clock()
            passed = 0 if self._refilled is None else max(0, now - self._refilled)
            self._refilled = now
            self._permits = min(self._permits, max(1.0, rate)) + passed * rate / 1000

    def use_clock(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._inner.use_clock(clock)

    @property
    def reads_in_order(self) -> bool:
        return self._inner.reads_in_order

    def discover_splits(self) -> Sequence[SourceSplit]:
        """Start a round: called for each batch before it is planned."""
        self._round_is_over = True
        return self._inner.discover_splits()

    # -- all other calls go to the source -------------------------------------------------------------------------

    def use_steps(self, wake: Callable[[], None]) -> None:
        self._inner.use_steps(wake)

    def start(self) -> None:
        self._inner.start()

    def starting_offset(self, split: SourceSplit, *, fresh: bool) -> Any | None:
        return self._inner.starting_offset(split, fresh=fresh)

    def pending_records(self, split_id: str, offset: Any) -> int | None:
        return self._inner.pending_records(split_id, offset)

    def record_count(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> int | None:
        return self._inner.record_count(split, start_offset, end_offset)

    def is_finished(self, split: SourceSplit, offset: Any) -> bool:
        return self._inner.is_finished(split, offset)

    def subtask_for(self, split_id: str, parallelism: int) -> int | None:
        return self._inner.subtask_for(split_id, parallelism)

    def restore_split(self, split_id: str) -> SourceSplit:
        return self._inner.restore_split(split_id)

    def restore(self, finished: Mapping[str, bool]) -> None:
        self._inner.restore(finished)

    def has_more_splits(self) -> bool:
        return self._inner.has_more_splits()

    def forget(self, split_ids: Sequence[str]) -> bool:
        return self._inner.forget(split_ids)

    def remembered(self) -> Sequence[str]:
        return self._inner.remembered()

    def prepare(self, split: SourceSplit, start_offset: Any, end_offset: Any) -> SourceSplit:
        return self._inner.prepare(split, start_offset, end_offset)

    def use_directory(self, directory: str) -> None:
        self._inner.use_directory(directory)

    def commit(self, offsets: Mapping[str, Any]) -> None:
        self._inner.commit(offsets)

    def close(self) -> None:
        self._inner.close()
