"""Window table functions: add the windows of each row (T60 to T64)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.keys import group_rows
from penstock.runtime.table.operator import TableOperator
from penstock.runtime.table.operators.watermark_assigner import milliseconds
from penstock.runtime.table.segments import Segments
from penstock.runtime.table.window_assigners import WindowAssigner
from penstock.runtime.table.zones import instant_to_local, local_to_instant

_I64 = pa.int64()
_LOCAL = pa.timestamp("us")
_THOUSAND = pa.scalar(1000, _I64)


class WindowClock:
    """Converts between a time attribute and the wall-clock time of windows (T48)."""

    def __init__(self, column: int, zone: str, *, local: bool, processing_time: bool) -> None:
        self.column = column
        self.zone = zone
        self.local = local
        """Whether the time attribute is a TIMESTAMP, which is already wall-clock time."""
        self.processing_time = processing_time

    def times(self, batch: ColumnBatch, now: int) -> pa.Int64Array:
        """Return the wall-clock time of every row in milliseconds."""
        if self.processing_time:
            instant = pa.scalar(now * 1000, _I64).cast(pa.timestamp("us", "UTC"))
            shown = instant_to_local(instant, self.zone).cast(_I64).as_py() // 1000
            return pa.repeat(pa.scalar(shown, _I64), len(batch))
        column = batch.column(self.column)
        if column.null_count:
            raise ValueError(
                f"the rowtime of a row is NULL: filter such rows out, or compute a value (column {self.column})"
            )
        return milliseconds(column if self.local else instant_to_local(column, self.zone))

    def window_columns(self, starts: pa.Int64Array, ends: pa.Int64Array) -> list[pa.Array]:
        """Return window_start, window_end and window_time."""
        first, last = (pc.multiply(column, _THOUSAND).cast(_LOCAL) for column in (starts, ends))
        time = pc.multiply(pc.subtract(ends, pa.scalar(1, _I64)), _THOUSAND).cast(_LOCAL)
        return [first, last, time if self.local else local_to_instant(time, self.zone)]


class WindowTableFunctionOperator(TableOperator):
    """TUMBLE, HOP and CUMULATE: emits a copy of every row for each of its windows."""

    def __init__(self, assigner: WindowAssigner, clock: WindowClock, schema: pa.Schema) -> None:
        self.assigner = assigner
        self.clock = clock
        self.schema = schema

    def process(self, batch: ColumnBatch) -> None:
        """Add the columns of the windows."""
        assigned = self.assigner.assign(self.clock.times(batch, self.context.processing_time()))
        rows = batch if assigned.rows is None else batch.take(assigned.rows)
        columns = [*rows.data.columns, *self.clock.window_columns(assigned.starts, assigned.ends)]
        self.emit(ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=self.schema), rows.kinds))


class SessionWindowOperator(TableOperator):
    """SESSION: keeps the rows of open sessions and emits them when the watermark has passed the end.

    A session is ``[start, end, batches]``. ``end`` is the time of the last row plus the gap.
    """

    keyed = True
    stateful = True

    def __init__(self, keys: list[int], gap: int, clock: WindowClock, schema: pa.Schema) -> None:
        self.keys = keys
        self.gap = gap
        self.clock = clock
        self.schema = schema

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the state and timers."""
        super().setup(context, output)
        assert context.keyed_backend is not None
        self._backend = context.keyed_backend
        self._slot = self._backend.register("sessions", "table state")
        self._timers = context.create_timer_service(self._on_timer, self._on_timer)
        self._late = context.metrics.counter("numLateRecordsDropped")
        self._ready: list[tuple[int, int, ColumnBatch]] = []

    def process(self, batch: ColumnBatch) -> None:
        """Add the rows to the sessions of their keys."""
        grouped = group_rows(batch, self.keys)
        segments = Segments.of(grouped.codes, len(grouped.keys))
        rows = batch if segments.order is None else batch.take(segments.order)
        times = segments.sort(self.clock.times(batch, self.context.processing_time())).to_pylist()
        for key, start, end in segments.slices(grouped.keys):
            self._backend.set_current_key(key)
            for first, last in _runs(times, start, end, self.gap):
                self._add(min(times[first:last]), max(times[first:last]) + self.gap, rows[first:last])
        self._leave_key()

    def _add(self, start: int, end: int, rows: ColumnBatch) -> None:
        entry = self._backend.entry
        sessions: list[list[Any]] = entry[self._slot] or []
        touched = [one for one in sessions if one[0] <= end and start <= one[1]]
        first = min([start, *(one[0] for one in touched)])
        last = max([end, *(one[1] for one in touched)])
        if not self.clock.processing_time and self._instant(last) - 1 <= self.current_watermark:
            self._late.inc(len(rows))
            return
        others = [one for one in sessions if one not in touched]
        parts = [part for one in touched for part in one[2]]
        entry[self._slot] = sorted([*others, [first, last, [*parts, rows]]], key=lambda one: one[0])
        entry[0].dirty = True
        if self.clock.processing_time:
            self._timers.register_processing_time_timer(self._instant(last) - 1)
        else:
            self._timers.register_event_time_timer(self._instant(last) - 1)

    def _instant(self, time: int) -> int:
        if self.clock.local:
            return time
        local = pa.scalar(time * 1000, _I64).cast(_LOCAL)
        return int(local_to_instant(local, self.clock.zone).cast(_I64).as_py() // 1000)

    def _on_timer(self, timestamp: int, *_: Any) -> None:
        entry = self._backend.entry
        sessions: list[list[Any]] = entry[self._slot] or []
        due = [one for one in sessions if self._instant(one[1]) - 1 <= timestamp]
        if not due:
            return
        entry[self._slot] = [one for one in sessions if one not in due] or None
        entry[0].dirty = True
        for start, end, parts in due:
            self._ready.append((start, end, ColumnBatch.concat(parts)))

    def flush(self) -> None:
        """Emit the sessions that timers have closed."""
        if not self._ready:
            return
        ready, self._ready = self._ready, []
        rows = ColumnBatch.concat([batch for _, _, batch in ready])
        starts = pa.concat_arrays([pa.repeat(pa.scalar(start, _I64), len(batch)) for start, _, batch in ready])
        ends = pa.concat_arrays([pa.repeat(pa.scalar(end, _I64), len(batch)) for _, end, batch in ready])
        columns = [*rows.data.columns, *self.clock.window_columns(starts, ends)]
        self.emit(ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=self.schema), rows.kinds))


def _runs(times: list[int], start: int, end: int, gap: int) -> list[tuple[int, int]]:
    """Combine rows that are certainly in one session because their gaps are small."""
    runs = []
    first = start
    low = high = times[start]
    for position in range(start + 1, end):
        time = times[position]
        if low - gap <= time <= high + gap:
            low, high = min(low, time), max(high, time)
        else:
            runs.append((first, position))
            first, low, high = position, time, time
    runs.append((first, end))
    return runs
