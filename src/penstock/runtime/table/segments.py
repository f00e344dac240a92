"""Rows sorted by key in arrival order: the input of aggregates over a batch, with one segment per key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.runtime.table.batch import positions

_I64 = pa.int64()
_DIGIT = 12  # bits: Arrow sorts numbers below 4096 by counting
_LOW = pa.scalar((1 << _DIGIT) - 1, pa.int32())


def sort_small_numbers(numbers: pa.Int32Array, limit: int) -> pa.Int64Array:
    """Return the positions that sort numbers from 0 to limit - 1. The sort is stable.

    It sorts digit by digit, which is up to seven times as fast as one sort by comparison.

    >>> sort_small_numbers(pa.array([70_000, 3, 70_000, 4_099], pa.int32()), 70_001).to_pylist()
    [1, 3, 0, 2]
    """
    if limit <= 1 << _DIGIT:
        return pc.array_sort_indices(numbers).cast(_I64)
    order = pc.array_sort_indices(pc.bit_wise_and(numbers, _LOW))
    high = pc.shift_right(numbers, pa.scalar(_DIGIT, pa.int32())).take(order)
    return order.take(sort_small_numbers(high, ((limit - 1) >> _DIGIT) + 1)).cast(_I64)


class Segments:
    """Assigns the rows of a sorted batch to segments.

    ``codes`` has the segment of every row, ``starts`` and ``ends`` have the rows of every segment (end excluded), and
    ``order`` has the positions that sort the batch, or is None if it is sorted. ``is_first`` tells for each segment
    whether it continues from the state of its key. All do, unless segments were split.

    >>> segments = Segments.of(pa.array([0, 1, 0], pa.int32()), 2)
    >>> segments.order.to_pylist(), segments.starts.to_pylist(), segments.ends.to_pylist()
    ([0, 2, 1], [0, 2], [2, 3])
    >>> deltas = pa.array([10, 1, 5])
    >>> segments.running_sum(segments.sort(deltas), pa.array([100, 200])).to_pylist()
    [110, 115, 201]
    """

    __slots__ = ("codes", "count", "ends", "order", "rows", "starts")

    def __init__(
        self, order: pa.Int64Array | None, codes: pa.Int32Array, starts: pa.Int64Array, ends: pa.Int64Array
    ) -> None:
        self.order = order
        self.codes = codes
        self.starts = starts
        self.ends = ends
        self.rows = len(codes)
        self.count = len(starts)

    @staticmethod
    def of(codes: pa.Int32Array, count: int) -> Segments:
        """Return the segments of rows with these key numbers: all of 0 to count - 1, in order of first appearance."""
        rows = len(codes)
        if count == rows:
            where = positions(rows)
            return Segments(None, codes, where, pc.add(where, pa.scalar(1, _I64)))
        if count == 1:
            return Segments(None, codes, pa.array([0], _I64), pa.array([rows], _I64))
        order = sort_small_numbers(codes, count)
        ordered = codes.take(order)
        ends = pc.run_end_encode(ordered).run_ends.cast(_I64)
        starts = pa.concat_arrays([pa.array([0], _I64), ends.slice(0, count - 1)])
        return Segments(order, ordered, starts, ends)

    @property
    def single_rows(self) -> bool:
        """Whether every segment has one row."""
        return self.count == self.rows

    def sort(self, column: pa.Array) -> pa.Array:
        """Sort a column of the batch into segment order."""
        return column if self.order is None else column.take(self.order)

    def unsort(self, column: pa.Array) -> pa.Array:
        """Return a column in segment order to the order of the batch."""
        return column if self.order is None else column.take(pc.inverse_permutation(self.order))

    def last(self, running: pa.Array) -> pa.Array:
        """Return the last running value of each segment."""
        return running if self.single_rows else running.take(pc.subtract(self.ends, pa.scalar(1, _I64)))

    def before(self, initial: pa.Array, running: pa.Array) -> pa.Array:
        """Return the value before every row: that of the previous row, or the segment's initial value."""
        if self.single_rows:
            return initial
        # The values of all rows after those of all segments, as one column for take().
        values = pa.concat_arrays([initial, running])
        previous = pc.add(positions(self.rows), pa.scalar(self.count - 1, _I64))
        return values.take(pc.if_else(self._is_start(), self.codes.cast(_I64), previous))

    def _is_start(self) -> pa.BooleanArray:
        return pc.equal(positions(self.rows), self.starts.take(self.codes))

    def split_behind(self, mask: pa.BooleanArray) -> tuple[Segments, pa.BooleanArray]:
        """Return segments that also end after every row of the mask, and which of them are the first of their key.

        The segment after the removal of a key starts again.
        """
        begins = pc.or_(self._is_start(), pa.concat_arrays([pa.array([True]), mask.slice(0, self.rows - 1)]))
        starts = pc.indices_nonzero(begins).cast(_I64)
        ends = pa.concat_arrays([starts.slice(1), pa.array([self.rows], _I64)])
        codes = pc.subtract(pc.cumulative_sum(begins.cast(pa.int32())), pa.scalar(1, pa.int32()))
        return Segments(self.order, codes, starts, ends), self._is_start().take(starts)

    # -- running values -----------------------------------------------------------------------------------------

    def running_sum(self, deltas: pa.Int64Array, initial: pa.Int64Array) -> pa.Int64Array:
        """Return the initial value plus all deltas up to each row. Integers wrap, so one sum covers all segments."""
        if self.single_rows:
            return pc.add(initial, deltas)
        total = pc.cumulative_sum(deltas)
        behind = pc.subtract(total, deltas).take(self.starts)
        return pc.add(total, pc.subtract(initial, behind).take(self.codes))

    def running(
        self, combine: Callable[[pa.Array, pa.Array], pa.Array], values: pa.Array, initial: pa.Array
    ) -> pa.Array:
        """Return running values of an associative function such as max, by doubling steps over all segments at once."""
        if self.single_rows:
            return combine(initial, values)
        start_of = self.starts.take(self.codes)
        where = positions(self.rows)
        longest = pc.max(pc.subtract(self.ends, self.starts)).as_py()
        step = 1
        while step < longest:
            back = pc.subtract(where, pa.scalar(step, _I64))
            inside = pc.greater_equal(back, start_of)
            shifted = values.take(pc.if_else(inside, back, where))
            values = combine(values, shifted)
            step *= 2
        return combine(initial.take(self.codes), values)

    def fold(self, step: Callable[[Any, Any], Any], values: Sequence[Any], initial: Sequence[Any]) -> list[Any]:
        """Return running values of any function, row by row: for sums whose order matters, and for Python objects."""
        result: list[Any] = []
        for first, start, end in self.slices(initial):
            result.extend(list(accumulate(values[start:end], step, initial=first))[1:])
        return result

    def slices(self, initial: Sequence[Any]) -> Iterator[tuple[Any, int, int]]:
        """Yield initial value, first and last row (excluded) of every segment."""
        return zip(initial, self.starts.to_pylist(), self.ends.to_pylist(), strict=True)
