"""Interval join: pairs of two keyed streams whose timestamps are within bounds of each other (rule 6.7).

Inner joins in event time only. A pair is emitted as soon as its second element arrives. Each side keeps an element only
as long as an element of the other side may still match it. In a key's entry a side is two parallel lists, timestamps
(ordered) and values, so that the matches of an element are a slice.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any

from penstock.common.errors import InvalidProgramError, MissingTimestampError, PenstockError, shorten
from penstock.core.functions import Function, ProcessJoinFunction
from penstock.core.output_tag import OutputTag
from penstock.runtime.operators.collector import Collector
from penstock.runtime.operators.emission import collect_results
from penstock.runtime.operators.failures import keyed_error
from penstock.runtime.operators.function_operator import FunctionOperator
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.records.batch import KeySelect, Timestamps, Values
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.pages import EVENT_TIMERS, Entry
from penstock.runtime.timers.due_index import DueTimerService

Side = tuple[list[int], list[Any]]


class JoinContext(ProcessJoinFunction.Context):
    """The `ctx` of process_element."""

    __slots__ = ("_collector", "left_timestamp", "right_timestamp")

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self.left_timestamp = 0
        self.right_timestamp = 0

    def get_left_timestamp(self) -> int:
        """Timestamp of the left element."""
        return self.left_timestamp

    def get_right_timestamp(self) -> int:
        """Timestamp of the right element."""
        return self.right_timestamp

    def get_timestamp(self) -> int:
        """The larger of the two timestamps."""
        return max(self.left_timestamp, self.right_timestamp)

    def output(self, tag: OutputTag, value: Any) -> None:
        """Emit to a side output, with the timestamp of the pair."""
        self._collector.side(tag, value, self.get_timestamp())


class IntervalJoinOperator(FunctionOperator):
    """Joins each left element a with the right elements b for which a + lower <= b <= a + upper."""

    keyed = True
    stateful = True
    method = "process_element"

    collector: Collector
    timers: DueTimerService

    def __init__(
        self,
        function: Any,
        key_selector: KeySelect,
        key_selector2: KeySelect,
        lower_bound: int,
        upper_bound: int,
        *,
        lower_inclusive: bool = True,
        upper_inclusive: bool = True,
        left_late_tag: OutputTag | None = None,
        right_late_tag: OutputTag | None = None,
    ) -> None:
        super().__init__(function)
        if not isinstance(function, ProcessJoinFunction) and (isinstance(function, Function) or not callable(function)):
            raise InvalidProgramError(
                f"process() of an interval join needs a ProcessJoinFunction, got {shorten(function)}"
            )
        if lower_bound > upper_bound:
            raise InvalidProgramError(
                f"the lower bound of an interval join must not exceed the upper bound, got between({lower_bound} ms, "
                f"{upper_bound} ms)"
            )
        self.key_selector = key_selector
        self.key_selector2 = key_selector2
        self.lower = lower_bound if lower_inclusive else lower_bound + 1
        self.upper = upper_bound if upper_inclusive else upper_bound - 1
        if self.lower > self.upper:
            raise InvalidProgramError(
                f"no pair can be in the interval from {lower_bound} ms to {upper_bound} ms with exclusive bounds"
            )
        self.left_late_tag = left_late_tag
        self.right_late_tag = right_late_tag

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Create buffers and timers."""
        super().setup(context, output)
        assert context.keyed_backend is not None
        self.backend: KeyedStateBackend = context.keyed_backend
        self.collector = Collector(context, output)
        self.ctx = JoinContext(self.collector)
        self.timers = DueTimerService(
            self.backend, context.processing_time, self._clean, self._no_timer, batch=context.batch_execution
        )
        context.timer_services.append(self.timers)
        self._left = self.backend.register("left-buffer", "interval join buffer")
        self._right = self.backend.register("right-buffer", "interval join buffer")
        self._dropped = context.metrics.counter("numLateRecordsDropped")

    # -- elements -----------------------------------------------------------------------------------------------

    def process_batch(self, values: Values, timestamps: Timestamps) -> None:
        """Left elements."""
        self._join(values, timestamps, left=True)

    def process_batch2(self, values: Values, timestamps: Timestamps) -> None:
        """Right elements."""
        self._join(values, timestamps, left=False)

    def _join(self, values: Values, timestamps: Timestamps, *, left: bool) -> None:
        backend, watermark, call = self.backend, self.timers.current_watermark, self.call
        select = self.key_selector if left else self.key_selector2
        ours, others = (self._left, self._right) if left else (self._right, self._left)
        lower, upper = (self.lower, self.upper) if left else (-self.upper, -self.lower)
        stamps = timestamps if timestamps is not None else [None] * len(values)
        value: Any = None
        try:
            for value, timestamp in zip(values, stamps, strict=True):
                if timestamp < watermark:
                    self._late(value, timestamp, left=left)
                    continue
                key = select(value)
                backend.set_current_key(key)
                entry = backend.entry
                if upper >= 0 or timestamp + upper >= watermark:
                    self._keep(key, entry, ours, value, timestamp, upper)
                other: Side | None = entry[others]
                if other is not None:
                    first = bisect_left(other[0], timestamp + lower)
                    last = bisect_right(other[0], timestamp + upper, first)
                    for match in range(first, last):
                        self._pair(call, value, timestamp, other[1][match], other[0][match], left=left)
        except Exception as error:
            if isinstance(error, TypeError) and None in stamps:
                raise self._no_timestamp(values[stamps.index(None)]) from None
            raise keyed_error(self.context, error, self.method, select, value) from None
        backend.clear_current_key()
        self.collector.flush()

    def _pair(self, call: Callable[..., Any], value: Any, at: int, match: Any, match_at: int, *, left: bool) -> None:
        ctx = self.ctx
        if left:
            ctx.left_timestamp, ctx.right_timestamp = at, match_at
            results = call(value, match, ctx)
        else:
            ctx.left_timestamp, ctx.right_timestamp = match_at, at
            results = call(match, value, ctx)
        collect_results(self.collector, results, max(at, match_at))

    def _keep(self, key: Any, entry: Entry, slot: int, value: Any, timestamp: int, upper: int) -> None:
        side: Side | None = entry[slot]
        entry[0].dirty = True
        if side is None:
            entry[slot] = ([timestamp], [value])
        elif timestamp >= side[0][-1]:
            side[0].append(timestamp)
            side[1].append(value)
            return
        else:
            position = bisect_right(side[0], timestamp)
            side[0].insert(position, timestamp)
            side[1].insert(position, value)
            if position:
                return
        self.timers.schedule(key, entry, timestamp + _retention(upper))  # the first element to expire

    def _late(self, value: Any, timestamp: int, *, left: bool) -> None:
        tag = self.left_late_tag if left else self.right_late_tag
        if tag is None:
            self._dropped.inc()
        else:
            self.collector.side(tag, value, timestamp)

    def _no_timestamp(self, value: Any) -> PenstockError:
        return MissingTimestampError(
            "an interval join needs records with timestamps: call assign_timestamps_and_watermarks() before it",
            operator_name=self.context.operator_name,
            record=value,
        )

    # -- cleanup ------------------------------------------------------------------------------------------------

    def _clean(self, timestamp: int, keys: list[Any]) -> None:
        """Remove elements that nothing can match any more, and schedule the next cleanup."""
        backend, watermark = self.backend, self.timers.current_watermark
        sides = ((self._left, _retention(self.upper)), (self._right, _retention(-self.lower)))
        for key in keys:
            backend.set_current_key(key)
            entry = backend.entry
            timers = entry[EVENT_TIMERS]
            if timers is None or timestamp not in timers:
                continue
            timers.discard(timestamp)
            if not timers:
                entry[EVENT_TIMERS] = None
            entry[0].dirty = True
            for slot, retention in sides:
                side: Side | None = entry[slot]
                if side is None:
                    continue
                expired = bisect_right(side[0], watermark - retention)
                del side[0][:expired], side[1][:expired]
                if side[0]:
                    self.timers.schedule(key, entry, side[0][0] + retention)
                else:
                    entry[slot] = None

    def _no_timer(self, timestamp: int, key: Any, namespace: Any) -> None:
        """The operator registers no processing-time timers."""

    def flush(self) -> None:
        """Emit the remaining records."""
        self.collector.flush()


def _retention(upper: int) -> int:
    """Return how long an element is kept after its timestamp if the other side may be `upper` ms later.

    An element is late when it is behind the watermark. With a negative bound, the last match is possible while the
    watermark equals the element's timestamp plus the bound, and impossible one millisecond later (rule 6.7).

    >>> _retention(5), _retention(0), _retention(-5)
    (5, 0, -4)
    """
    return upper if upper >= 0 else upper + 1
