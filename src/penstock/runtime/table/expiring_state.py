"""State in columns that expires when it has not been written for some time (T126)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.runtime.state.pages import PageDirectory
from penstock.runtime.table.column_fields import FieldType, KeyRows
from penstock.runtime.table.column_state import ColumnStateBackend
from penstock.runtime.table.keys import GroupedRows

_I64 = pa.int64()


class ExpiringColumnState(ColumnStateBackend):
    """Stores the time of the last write after the fields: one for all of them, or one per field.

    State without these times, of a job that never expired it, counts as written when it is read. A job that never
    expires its state also reads state with times.
    """

    __slots__ = ("_clock", "_groups", "_next_page", "_plain", "_ttls")

    def configure(self, ttls: Sequence[int], clock: Callable[[], int]) -> None:
        """Set the milliseconds after which state expires, or 0: for all fields or for each. Call before `define`."""
        self._ttls = list(ttls)
        self._clock = clock
        self._next_page = 0

    def define(self, name: str, fields: Sequence[tuple[FieldType, Any]]) -> None:
        """Register the state and the times of its last writes."""
        self._plain = len(fields)
        every = range(self._plain)
        self._groups: list[Sequence[int]] = [every] if len(self._ttls) == 1 else [[place] for place in every]
        assert len(self._groups) == len(self._ttls)
        super().define(name, [*fields, *((_I64, 0) for _ in self._groups)])

    def rows_of(self, grouped: GroupedRows) -> KeyRows:
        """Return the rows of keys. Expired fields have the values of a new key."""
        now = self._clock()
        self._empty = (*self._empty[: self._plain], *(now for _ in self._groups))
        rows = super().rows_of(grouped)
        for number, places in enumerate(self._groups):
            for position in pc.indices_nonzero(self._expired(number, rows, now)).to_pylist():
                row = rows.list[position]
                for place in (*places, self._plain + number):
                    self._fields[place].put(row, self._empty[place])
        return rows

    def gather(self, rows: KeyRows) -> list[Any]:
        """Return the fields of some rows, without the times."""
        return [field.gather(rows) for field in self._fields[: self._plain]]

    def scatter(self, rows: KeyRows, fields: Sequence[Any]) -> None:
        """Set the fields of some rows."""
        times = pa.repeat(pa.scalar(self._clock(), _I64), len(rows.list))
        super().scatter(rows, [*fields, *(times for _ in self._groups)])

    def scatter_field(self, place: int, rows: KeyRows, values: Any) -> None:
        """Set one field of some rows."""
        times = pa.repeat(pa.scalar(self._clock(), _I64), len(rows.list))
        group = 0 if len(self._groups) == 1 else place
        self._fields[self._plain + group].scatter(rows, times)
        super().scatter_field(place, rows, values)

    @property
    def width(self) -> int:
        """The number of fields without the times."""
        return self._plain

    def snapshot(self, now: int) -> PageDirectory:
        """Write the pages with changed rows. Remove expired keys of these pages and of one other page."""
        now = self._clock()
        indexes = self._indexes()
        self._next_page = (self._next_page + 1) % len(indexes)
        swept = indexes[self._next_page]
        self._load_page(swept)
        for _, numbers in list(self._rows_in({*self.pages_to_write(), swept})):
            rows = KeyRows(numbers)
            expired = self._expired(0, rows, now)
            for number in range(1, len(self._groups)):
                expired = pc.and_(expired, self._expired(number, rows, now))
            self.remove(rows.column.filter(expired).to_pylist())
        return super().snapshot(now)

    def _expired(self, number: int, rows: KeyRows, now: int) -> pa.BooleanArray:
        written = self._fields[self._plain + number].gather(rows)
        ttl = self._ttls[number]
        return pc.and_(pc.less_equal(written, pa.scalar(now - ttl, _I64)), pa.scalar(ttl > 0))

    def _add(self, keys: list[Any], hashes: pa.Int64Array, fields: Sequence[Sequence[Any]] | None = None) -> list[int]:
        if fields is not None:
            times = [self._clock()] * len(keys)
            wanted = self._plain + len(self._groups)
            known = fields if len(fields) == wanted else fields[: self._plain]
            fields = [*known, *(times for _ in range(wanted - len(known)))]
        return super()._add(keys, hashes, fields)
