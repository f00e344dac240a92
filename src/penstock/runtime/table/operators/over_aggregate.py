"""OVER ordered by time: emits results when the watermark passes their rows, or at once in processing time (T80).

Accumulators are stored per key. A frame that does not begin with the partition also stores its rows, so that they can
be retracted from the accumulators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.watermark import MIN_WATERMARK
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.table.aggregates.base import AggregateInput
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.column_fields import FieldType
from penstock.runtime.table.column_state import ColumnStateBackend
from penstock.runtime.table.keys import group_rows
from penstock.runtime.table.operator import TableOperator
from penstock.runtime.table.operators.watermark_assigner import milliseconds
from penstock.runtime.table.over_functions import Events, OverCall, OverFrame, Peers, event_segments
from penstock.runtime.table.row_buffer import RowBuffer
from penstock.runtime.table.segments import Segments
from penstock.runtime.table.sort_keys import sort_order
from penstock.runtime.table.stored_rows import columns_of, stored_rows

_I64 = pa.int64()
_WAITING, _HISTORY, _FIRST = range(3)


class OverAggregateOperator(TableOperator):
    """Emits the input's columns, followed by results over the rows up to each row."""

    keyed = True
    stateful = True
    keyed_backend = ColumnStateBackend

    def __init__(
        self,
        keys: Sequence[int],
        time_column: int | None,
        frame: OverFrame,
        calls: Sequence[OverCall],
        input_schema: pa.Schema,
        schema: pa.Schema,
    ) -> None:
        self.keys = list(keys)
        self.time_column = time_column
        """The column of the rowtime. None means processing time."""
        self.frame = frame
        self.calls = list(calls)
        self.input_schema = input_schema
        self.schema = schema

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Register the state: waiting rows, rows of the frame, accumulators."""
        super().setup(context, output)
        assert isinstance(context.keyed_backend, ColumnStateBackend)
        self._state: ColumnStateBackend = context.keyed_backend
        fields: list[tuple[FieldType, Any]] = [(None, None), (None, None)]
        self._places: list[slice] = []
        for call in self.calls:
            assert call.aggregate is not None
            start = len(fields)
            fields += zip(call.aggregate.fields, call.aggregate.empty, strict=True)
            self._places.append(slice(start, len(fields)))
        self._state.define("over", fields)
        self._buffer = RowBuffer(self._state, _WAITING, self.keys, self.input_schema)
        self._late = context.metrics.counter("numLateRecordsDropped")
        framed = [] if self.frame.unbounded else [call for call in self.calls if not call.by_row]
        self._frame_columns = sorted({index for call in framed for index in call.arguments})
        self._frame_schema = pa.schema([self.input_schema.field(index) for index in self._frame_columns])
        self._has_frame = bool(framed)

    # -- rows ---------------------------------------------------------------------------------------------------

    def process(self, batch: ColumnBatch) -> None:
        """Keep rows until the watermark has passed them. In processing time, emit their results at once."""
        if self.time_column is None:
            times = pa.repeat(pa.scalar(self.context.processing_time(), _I64), len(batch))
            self._compute(batch, times)
            return
        column = batch.column(self.time_column)
        if column.null_count:
            raise ValueError("the rowtime of a row is NULL: filter such rows out, or compute a value")
        if self.current_watermark > MIN_WATERMARK:
            in_time = self._in_time(batch, milliseconds(column))
            if in_time.true_count < len(batch):
                self._late.inc(len(batch) - in_time.true_count)
                batch = batch.filter(in_time)
        if len(batch):
            self._buffer.add(batch)

    def _in_time(self, batch: ColumnBatch, times: pa.Int64Array) -> pa.BooleanArray:
        """Which rows are not late: newer than the watermark or, if a frame keeps rows, than the key's last result."""
        in_time = pc.greater(times, pa.scalar(self.current_watermark, _I64))
        if in_time.true_count == len(batch) or not self._has_frame:
            return in_time
        grouped = group_rows(batch, self.keys)
        histories = self._state.gather(self._state.rows_of(grouped))[_HISTORY]
        last = pa.array([history[-1][0] if history else MIN_WATERMARK for history in histories], _I64)
        return pc.or_(in_time, pc.greater(times, last.take(grouped.codes)))

    def process_watermark(self, watermark: int) -> None:
        """Emit the rows that the watermark has passed, in the order of their times."""
        waiting = None if self.time_column is None else self._buffer.rows()
        if waiting is not None:
            times = milliseconds(waiting.column(self.time_column or 0))
            due = pc.less_equal(times, pa.scalar(watermark, _I64))
            if due.true_count:
                rows, times = waiting.filter(due), times.filter(due)
                order = sort_order([(times, False, False)])
                self._compute(rows.take(order), times.take(order))
                self._buffer.keep(pc.invert(due))
        super().process_watermark(watermark)

    def end_batch(self) -> None:
        """Write the state."""
        if self.time_column is not None:
            self._buffer.write()

    # -- results ------------------------------------------------------------------------------------------------

    def _compute(self, batch: ColumnBatch, times: pa.Int64Array) -> None:
        """Emit rows, sorted by time, with their results."""
        grouped = group_rows(batch, self.keys)
        rows = self._state.rows_of(grouped)
        fields = self._state.gather(rows)
        segments = Segments.of(grouped.codes, len(grouped.keys))
        times = segments.sort(times)
        peers = Peers.of(segments, [times])
        framed = self._frame_scan_input(batch, segments, times, fields) if self._has_frame else None
        results: list[pa.Array] = []
        for call, place in zip(self.calls, self._places, strict=True):
            assert call.aggregate is not None
            if framed is not None and not call.by_row:
                events, columns = framed
                arguments = [columns[self._frame_columns.index(index)] for index in call.arguments]
                given = AggregateInput(events.segments, arguments, events.signs, None)
                scan = call.aggregate.scan(given, fields[place])
                running = scan.running.take(events.results)
            else:
                arguments = [segments.sort(batch.column(index)) for index in call.arguments]
                scan = call.aggregate.scan(AggregateInput(segments, arguments, None, None), fields[place])
                running = scan.running
                if not call.by_row and not self.frame.rows and self.time_column is not None:
                    running = running.take(peers.last)
            fields[place] = scan.fields
            results.append(segments.unsort(running))
        self._state.scatter(rows, fields)
        data = pa.RecordBatch.from_arrays([*batch.data.columns, *results], schema=self.schema)
        self.emit(ColumnBatch(data))

    def _frame_scan_input(
        self, batch: ColumnBatch, segments: Segments, times: pa.Int64Array, fields: list[Any]
    ) -> tuple[Events, list[pa.Array]]:
        """Return the rows that enter and leave the frames, and their arguments. Updates the history in `fields`."""
        frame = self.frame
        preceding = frame.preceding or 0
        clock = times.to_pylist()
        count = len(clock)
        extra: list[Any] = []  # rows of earlier batches that leave
        refs: list[int] = []
        signs: list[int] = []
        results: list[int] = []
        counts: list[int] = []
        histories: list[Any] = []
        for known, start, end in segments.slices(fields[_HISTORY]):
            history: list[tuple[int, Any]] = [*(known or ()), *zip(clock[start:end], range(start, end), strict=True)]
            old = len(history) - (end - start)
            low, added, before = 0, old, len(refs)
            for row in range(start, end):
                here = old + row - start
                until = here
                if not frame.rows:
                    while until + 1 < len(history) and history[until + 1][0] == clock[row]:
                        until += 1
                for position in range(added, until + 1):
                    refs.append(history[position][1])
                    signs.append(1)
                added = max(added, until + 1)
                while (
                    low < here - preceding if frame.rows else history[low][0] < clock[row] - preceding
                ):  # the row has left the frame
                    ref = history[low][1]
                    if low < old:
                        extra.append(ref)
                        ref = count + len(extra) - 1
                    refs.append(ref)
                    signs.append(-1)
                    low += 1
                results.append(len(refs) - 1)
            counts.append(len(refs) - before)
            histories.append(history[low:])
        fields[_HISTORY] = self._stored_histories(batch, segments, histories)
        columns = [segments.sort(batch.column(index)) for index in self._frame_columns]
        if extra:
            behind = columns_of(extra, self._frame_schema)
            columns = [pa.concat_arrays(both) for both in zip(columns, behind, strict=True)]
        places = pa.array(refs, _I64)
        events = Events(event_segments(counts), places, pa.array(signs, _I64), pa.array(results, _I64))
        return events, [column.take(places) for column in columns]

    def _stored_histories(self, batch: ColumnBatch, segments: Segments, histories: list[Any]) -> list[Any]:
        """Replace positions in the batch by rows."""
        kept = [ref for history in histories for _, ref in history if type(ref) is int]
        chosen = pa.array(kept, _I64)
        columns = [segments.sort(batch.column(index)).take(chosen) for index in self._frame_columns]
        data = pa.RecordBatch.from_arrays(columns, schema=self._frame_schema) if columns else None
        stored = iter([()] * len(kept) if data is None else stored_rows(ColumnBatch(data)))
        return [[(time, next(stored) if type(ref) is int else ref) for time, ref in history] for history in histories]
