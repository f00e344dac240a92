"""Functions over windows of rows: their calls, and their results for complete partitions (T80, T81).

Rows are sorted by segment, and within segments. *Peers* are adjacent rows that are equal in the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.runtime.table.aggregates.base import Aggregate, AggregateInput
from penstock.runtime.table.batch import positions
from penstock.runtime.table.operators.group_agg import is_distinct
from penstock.runtime.table.segments import Segments

_I64 = pa.int64()
_ONE = pa.scalar(1, _I64)


@dataclass(frozen=True, slots=True)
class OverFrame:
    """``preceding`` rows or milliseconds before the current row, ``following`` rows after it. None means all."""

    rows: bool
    preceding: int | None = None
    following: int | None = 0

    @property
    def unbounded(self) -> bool:
        """Whether the frame contains all rows up to the current one."""
        return self.preceding is None and self.following == 0


@dataclass(slots=True)
class OverCall:
    """A function over rows. ``aggregate`` runs over the frame, or over all rows so far if ``by_row``.

    For complete partitions, functions of positions (RANK, LEAD, ...) have a name instead.
    """

    arguments: list[int]
    aggregate: Aggregate | None = None
    by_row: bool = False
    position_function: str = ""
    result_type: pa.DataType | None = None


@dataclass(slots=True)
class Peers:
    """For every row, its first and last peer, and the number of its group of peers."""

    first: pa.Int64Array
    last: pa.Int64Array
    group: pa.Int64Array

    @staticmethod
    def of(segments: Segments, order: Sequence[pa.Array]) -> Peers:
        """Find peers by columns in segment order."""
        rows = segments.rows
        where = positions(rows)
        begins = pc.equal(where, segments.starts.take(segments.codes))
        previous = pc.max_element_wise(pc.subtract(where, _ONE), pa.scalar(0, _I64))
        for column in order:
            begins = pc.or_(begins, is_distinct(column, column.take(previous)))
        group = pc.subtract(pc.cumulative_sum(begins.cast(_I64)), _ONE)
        firsts = pc.indices_nonzero(begins).cast(_I64)
        lasts = pc.subtract(pa.concat_arrays([firsts.slice(1), pa.array([rows], _I64)]), _ONE)
        return Peers(firsts.take(group), lasts.take(group), group)


def partition_results(
    calls: Sequence[OverCall],
    frame: OverFrame,
    columns: Sequence[pa.Array],
    segments: Segments,
    order: Sequence[pa.Array],
    times: pa.Int64Array | None,
) -> list[pa.Array]:
    """Return the results of every row. ``times`` is the column for RANGE with an interval, in milliseconds."""
    peers = Peers.of(segments, order)
    results = []
    for call in calls:
        arguments = [columns[index] for index in call.arguments]
        if call.position_function:
            results.append(_position_result(call, arguments, segments, peers))
            continue
        assert call.aggregate is not None
        empty = [
            [value] * segments.count if kind is None else pa.repeat(pa.scalar(value, kind), segments.count)
            for kind, value in zip(call.aggregate.fields, call.aggregate.empty, strict=True)
        ]
        if frame.unbounded or call.by_row:
            running = call.aggregate.scan(AggregateInput(segments, arguments, None, None), empty).running
            results.append(running if frame.rows or call.by_row else running.take(peers.last))
            continue
        events = _frame_events(frame, segments, peers, times)
        inner = [argument.take(events.rows) for argument in arguments]
        scan = call.aggregate.scan(AggregateInput(events.segments, inner, events.signs, None), empty)
        results.append(scan.running.take(events.results))
    return results


@dataclass(slots=True)
class Events:
    """Rows that enter and leave frames, one after the other, and the event after which the result of a row is valid."""

    segments: Segments
    rows: pa.Int64Array
    signs: pa.Int64Array
    results: pa.Int64Array


def event_segments(counts: Sequence[int]) -> Segments:
    """Return segments with these row counts, all of them positive."""
    ends = pc.cumulative_sum(pa.array(counts, _I64))
    starts = pc.subtract(ends, pa.array(counts, _I64))
    codes = pa.array([code for code, count in enumerate(counts) for _ in range(count)], pa.int32())
    return Segments(None, codes, starts, ends)


def _frame_events(frame: OverFrame, segments: Segments, peers: Peers, times: pa.Int64Array | None) -> Events:
    """Add every row once, and retract it when the frame of a later row begins after it."""
    rows: list[int] = []
    signs: list[int] = []
    results: list[int] = []
    counts: list[int] = []
    last_peer = peers.last.to_pylist()
    clock = None if times is None else times.to_pylist()
    for _, start, end in segments.slices([None] * segments.count):
        low = high = start
        before = len(rows)
        for row in range(start, end):
            until, since = _limits(frame, row, start, end, last_peer[row])
            if since is None:
                assert clock is not None
                assert frame.preceding is not None
                since = low
                while clock[since] < clock[row] - frame.preceding:
                    since += 1
            rows += range(high, until + 1)
            signs += [1] * (until + 1 - high)
            high = max(high, until + 1)
            rows += range(low, since)
            signs += [-1] * (since - low)
            low = max(low, since)
            results.append(len(rows) - 1)
        counts.append(len(rows) - before)
    return Events(event_segments(counts), pa.array(rows, _I64), pa.array(signs, _I64), pa.array(results, _I64))


def _limits(frame: OverFrame, row: int, start: int, end: int, last_peer: int) -> tuple[int, int | None]:
    """Return the last row of a frame and its first one, which is None if it depends on time."""
    until = end - 1 if frame.following is None else last_peer
    if frame.following is not None and frame.rows:
        until = min(end - 1, row + frame.following)
    if frame.preceding is None:
        return until, start
    return until, max(start, row - frame.preceding) if frame.rows else None


# -- functions of positions -------------------------------------------------------------------------------------------


def _position_result(call: OverCall, arguments: list[pa.Array], segments: Segments, peers: Peers) -> pa.Array:
    where = positions(segments.rows)
    start = segments.starts.take(segments.codes)
    size = pc.subtract(segments.ends, segments.starts).take(segments.codes)
    number = pc.subtract(where, start)  # from 0
    rank = pc.subtract(peers.first, start)
    match call.position_function:
        case "ROW_NUMBER":
            return pc.add(number, _ONE)
        case "RANK":
            return pc.add(rank, _ONE)
        case "DENSE_RANK":
            return pc.add(pc.subtract(peers.group, peers.group.take(start)), _ONE)
        case "PERCENT_RANK":
            others = pc.max_element_wise(pc.subtract(size, _ONE), _ONE).cast(pa.float64())
            return pc.divide(rank.cast(pa.float64()), others)
        case "CUME_DIST":
            upto = pc.add(pc.subtract(peers.last, start), _ONE)
            return pc.divide(upto.cast(pa.float64()), size.cast(pa.float64()))
        case "NTILE":
            return _tiles(number, size, arguments[0])
    return _shifted(call, arguments, segments, where)


def _tiles(number: pa.Int64Array, size: pa.Int64Array, buckets: pa.Array) -> pa.Int64Array:
    """Return buckets of equal size. The first ones have one more row if the rows cannot be divided evenly."""
    count = buckets.cast(_I64)
    small = pc.divide(size, count)
    large = pc.subtract(size, pc.multiply(small, count))  # number of buckets with one more row
    border = pc.multiply(large, pc.add(small, _ONE))
    in_large = pc.divide(number, pc.add(small, _ONE))
    in_small = pc.add(large, pc.divide(pc.subtract(number, border), pc.max_element_wise(small, _ONE)))
    return pc.add(pc.if_else(pc.less(number, border), in_large, in_small), _ONE)


def _shifted(call: OverCall, arguments: list[pa.Array], segments: Segments, where: pa.Int64Array) -> pa.Array:
    """LAG and LEAD: return the value of a row at an offset, or the default outside of the partition."""
    distance: Any = _ONE if len(arguments) < 2 else arguments[1].cast(_I64)
    target = pc.subtract(where, distance) if call.position_function == "LAG" else pc.add(where, distance)
    inside = pc.and_(
        pc.greater_equal(target, segments.starts.take(segments.codes)),
        pc.less(target, segments.ends.take(segments.codes)),
    )
    value = arguments[0].take(pc.if_else(inside, target, where))
    default = arguments[2].cast(value.type) if len(arguments) > 2 else pa.scalar(None, value.type)
    return pc.if_else(inside, value, default)
