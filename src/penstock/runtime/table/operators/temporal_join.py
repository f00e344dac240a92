"""The temporal join in event time: each left row with the version of the right row valid at its time (T74).

Left rows wait until the watermark of both sides has reached their time. A version is valid from its own time to that of
the next version. A deletion is a version without a row. Versions that no waiting or future row can need are dropped.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.table.batch import DELETE, UPDATE_BEFORE, ColumnBatch, positions, repeated
from penstock.runtime.table.operators.keyed_join import DueKeys, KeyedJoinOperator
from penstock.runtime.table.operators.watermark_assigner import milliseconds
from penstock.runtime.table.pairs import StoredRow, StoredRows, stored_rows

_I64 = pa.int64()


class TemporalJoinOperator(KeyedJoinOperator):
    """INNER and LEFT (``outer``) joins. The state of a key: waiting left rows, and versions sorted by time.

    A waiting row is ``[time, kind, row]``, a version ``(time, row or None)``.
    """

    state_name = "temporal join"

    def __init__(self, *arguments: Any, outer: bool, time_columns: tuple[int, int]) -> None:
        super().__init__(*arguments)
        self.outer = outer
        self.time_columns = time_columns

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Rows of an earlier run are read with the first row or watermark."""
        super().setup(context, output)
        self._due = DueKeys()
        self._known = False

    def _find_rows(self) -> None:
        self._known = True
        rows = self._state.all_rows()
        for number in (0, 1):
            for row, entries in zip(rows.list, self._state.gather_field(number, rows), strict=True):
                for entry in entries or ():
                    self._due.add(entry[0], self._state.keys_by_row[row])

    def _times(self, number: int, batch: ColumnBatch) -> list[int]:
        column = batch.column(self.time_columns[number])
        if column.null_count:
            raise ValueError("the rowtime of a row is NULL: filter such rows out before the temporal join")
        return list(milliseconds(column).to_pylist())

    def process(self, batch: ColumnBatch) -> None:
        """Let left rows wait for the watermark."""
        if not self._known:
            self._find_rows()
        keys = self.keys_of(0, batch)
        own = keys.spread(self._state.gather_field(0, keys.rows))
        other = keys.spread(self._state.gather_field(1, keys.rows))
        live = None if keys.live is None else set(keys.live)
        kinds = batch.kinds_or_inserts().to_pylist()
        rows = stored_rows(batch, len(self.types[0]))
        never: list[int] = []
        columns = zip(keys.codes.to_pylist(), self._times(0, batch), kinds, rows, strict=True)
        for place, (code, time, kind, row) in enumerate(columns):
            if live is not None and code not in live:
                never.append(place)
                continue
            waiting = own[code]
            if waiting is None:
                waiting = own[code] = []
            waiting.append([time, kind, row])
            self._due.add(time, keys.grouped.keys[code])
        self.write(keys.rows, {0: keys.gathered(own)}, keys.gathered(other))
        if never and self.outer:
            where = pa.array(never, _I64)
            kinds_column = None if batch.kinds is None else batch.kinds.take(where)
            self.emit(self.result(batch.column, None, where, repeated(None, len(never), _I64), kinds_column))

    def process2(self, batch: ColumnBatch) -> None:
        """Add versions. Of an update, only the new row counts."""
        if not self._known:
            self._find_rows()
        keys = self.keys_of(1, batch)
        own = keys.spread(self._state.gather_field(1, keys.rows))
        other = keys.spread(self._state.gather_field(0, keys.rows))
        live = None if keys.live is None else set(keys.live)
        kinds = batch.kinds_or_inserts().to_pylist()
        rows = stored_rows(batch, len(self.types[1]))
        for code, time, kind, row in zip(keys.codes.to_pylist(), self._times(1, batch), kinds, rows, strict=True):
            if kind == UPDATE_BEFORE or (live is not None and code not in live):
                continue
            version = (time, None if kind == DELETE else row)
            versions = own[code]
            if versions is None:
                own[code] = [version]
            else:
                _put_version(versions, version)
            self._due.add(time, keys.grouped.keys[code])
        self.write(keys.rows, {1: keys.gathered(own)}, keys.gathered(other))

    def process_watermark(self, watermark: int) -> None:
        """Join the left rows that the watermark has reached."""
        if not self._known:
            self._find_rows()
        keys = self._due.pop_until(watermark)
        if keys:
            self._fire(keys, watermark)
        super().process_watermark(watermark)

    def _fire(self, keys: list[Any], watermark: int) -> None:
        state_rows = self.rows_of_keys(keys)
        waiting_lists = self._state.gather_field(0, state_rows)
        version_lists = self._state.gather_field(1, state_rows)
        due: list[tuple[int, int, StoredRow, StoredRow | None]] = []
        for place, (waiting, versions) in enumerate(zip(waiting_lists, version_lists, strict=True)):
            if waiting:
                ready = [entry for entry in waiting if entry[0] <= watermark]
                due += [(time, kind, row, _version_at(versions, time)) for time, kind, row in ready]
                waiting_lists[place] = [entry for entry in waiting if entry[0] > watermark] or None
            if versions:
                version_lists[place] = _needed_versions(versions, watermark)
        self.write(state_rows, {0: waiting_lists, 1: version_lists})
        if due:
            due.sort(key=lambda one: one[0])
            self._join(due)

    def _join(self, due: list[tuple[int, int, StoredRow, StoredRow | None]]) -> None:
        left = StoredRows([row for _, _, row, _ in due], self.types[0])
        found = [place for place, one in enumerate(due) if one[3] is not None]
        right = StoredRows([version for _, _, _, version in due if version is not None], self.types[1])
        where = pa.array(found, _I64)
        mask = self.test(lambda index: left.column(index).take(where), right.column, len(found))
        partner: list[int | None] = [None] * len(due)
        fits = [True] * len(found) if mask is None else mask.to_pylist()
        for position, (place, fit) in enumerate(zip(found, fits, strict=True)):
            if fit:
                partner[place] = position
        partners = pa.array(partner, _I64)
        kinds = pa.array([kind for _, kind, _, _ in due], pa.int8())
        rows = positions(len(due))
        if not self.outer:
            rows, partners, kinds = (column.filter(partners.is_valid()) for column in (rows, partners, kinds))
        if len(rows):
            changes = kinds if pc.any(kinds.cast(pa.bool_())).as_py() else None
            self.emit(self.result(left.column, right.column, rows, partners, changes))


def _time_of(version: tuple[int, StoredRow | None]) -> int:
    return version[0]


def _put_version(versions: list[tuple[int, StoredRow | None]], version: tuple[int, StoredRow | None]) -> None:
    """Insert a version by time. It replaces a version with the same time."""
    place = bisect_right(versions, version[0], key=_time_of)
    if place and versions[place - 1][0] == version[0]:
        versions[place - 1] = version
    else:
        insort(versions, version, key=_time_of)


def _version_at(versions: list[tuple[int, StoredRow | None]] | None, time: int) -> StoredRow | None:
    if not versions:
        return None
    place = bisect_right(versions, time, key=_time_of)
    return versions[place - 1][1] if place else None


def _needed_versions(versions: list[tuple[int, StoredRow | None]], watermark: int) -> Any:
    """Return the version valid at the watermark, and later ones."""
    place = bisect_right(versions, watermark, key=_time_of)
    if place > 1:
        versions = versions[place - 1 :]
        place = 1
    if place and versions[0][1] is None:  # deleted: same as no version
        versions = versions[1:]
    return versions or None
