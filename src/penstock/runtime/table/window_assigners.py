"""Assigners of windows (T60, T61). Window starts and ends are columns, in milliseconds of wall-clock time."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.runtime.table.batch import positions

_I64 = pa.int64()


@dataclass(frozen=True, slots=True)
class AssignedWindows:
    """One row per pair of a row and a window."""

    rows: pa.Int64Array | None
    """The position of the row; None if every row has exactly one window, in order."""
    starts: pa.Int64Array
    ends: pa.Int64Array


@dataclass(frozen=True, slots=True)
class TumblingWindows:
    """TUMBLE: adjacent windows of one size."""

    size: int
    offset: int = 0

    def assign(self, times: pa.Int64Array) -> AssignedWindows:
        """Return the window of every row."""
        starts = aligned(times, self.size, self.offset)
        return AssignedWindows(None, starts, pc.add(starts, pa.scalar(self.size, _I64)))


@dataclass(frozen=True, slots=True)
class HoppingWindows:
    """HOP: a window of ``size`` begins every ``slide``."""

    size: int
    slide: int
    offset: int = 0

    def assign(self, times: pa.Int64Array) -> AssignedWindows:
        """Return all windows of every row, latest first, as in Flink."""
        copies = self.size // self.slide
        last = aligned(times, self.slide, self.offset)
        rows, number = _copied(len(times), copies)
        starts = pc.subtract(last.take(rows), pc.multiply(number, pa.scalar(self.slide, _I64)))
        return AssignedWindows(rows, starts, pc.add(starts, pa.scalar(self.size, _I64)))


@dataclass(frozen=True, slots=True)
class CumulatingWindows:
    """CUMULATE: windows with the same start that end one ``step`` after the other, up to ``size``."""

    size: int
    step: int
    offset: int = 0

    def assign(self, times: pa.Int64Array) -> AssignedWindows:
        """Return the windows of every row that end after it, shortest first."""
        copies = self.size // self.step
        starts = aligned(times, self.size, self.offset)
        first = pc.add(aligned(times, self.step, self.offset), pa.scalar(self.step, _I64))
        rows, number = _copied(len(times), copies)
        ends = pc.add(first.take(rows), pc.multiply(number, pa.scalar(self.step, _I64)))
        start_of = starts.take(rows)
        inside = pc.less_equal(ends, pc.add(start_of, pa.scalar(self.size, _I64)))
        return AssignedWindows(rows.filter(inside), start_of.filter(inside), ends.filter(inside))


WindowAssigner = TumblingWindows | HoppingWindows | CumulatingWindows


def aligned(times: pa.Int64Array, size: int, offset: int) -> pa.Int64Array:
    """Return the largest multiple of `size`, plus `offset`, that is not after each time, also before 1970.

    >>> aligned(pa.array([7, -1]), 5, 0).to_pylist()
    [5, -5]
    """
    length = pa.scalar(size, _I64)
    shifted = pc.subtract(times, pa.scalar(offset, _I64))
    rest = pc.subtract(shifted, pc.multiply(pc.divide(shifted, length), length))
    rest = pc.if_else(pc.less(rest, pa.scalar(0, _I64)), pc.add(rest, length), rest)
    return pc.subtract(times, rest)


def _copied(count: int, copies: int) -> tuple[pa.Int64Array, pa.Int64Array]:
    """Repeat every position `copies` times, and number the copies."""
    every = positions(count * copies)
    rows = pc.divide(every, pa.scalar(copies, _I64))
    return rows, pc.subtract(every, pc.multiply(rows, pa.scalar(copies, _I64)))
