"""The ends of windows: which rows are late, and which keys are due when the watermark or the clock advances (T46, T62).

Keys are kept in memory by the last millisecond of their window, and read from the state when an operator starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.watermark import MAX_WATERMARK, MIN_WATERMARK
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.keys import key_values
from penstock.runtime.table.zones import local_to_instant

_I64 = pa.int64()
_LOCAL = pa.timestamp("us")


class WindowEnds:
    """The open windows of an operator. ``position`` is the position of window_end in its keys."""

    def __init__(self, position: int, zone: str | None) -> None:
        self._position = position
        self._zone = zone
        self._open: dict[int, list[Any]] = {}  # the last millisecond of a window -> keys
        self._last: dict[int, int] = {}  # window_end as stored -> its last millisecond

    def last_millisecond(self, end: int) -> int:
        """Return the last instant of the window with this stored window_end."""
        last = self._last.get(end)
        if last is None:
            instant = end
            if self._zone is not None:
                local = pa.scalar(end, _I64).cast(_LOCAL)
                instant = local_to_instant(local, self._zone).cast(_I64).as_py()
            last = self._last[end] = instant // 1000 - 1
        return last

    def add(self, keys: Iterable[Any]) -> None:
        """Add keys at the ends of their windows."""
        position, opened, last = self._position, self._open, self.last_millisecond
        for key in keys:
            opened.setdefault(last(key[position]), []).append(key)

    def take_due(self, time: int) -> list[Any]:
        """Remove and return the keys of windows that have ended, oldest window first."""
        due = sorted(self._open) if time == MAX_WATERMARK else sorted(end for end in self._open if end <= time)
        return [key for end in due for key in dict.fromkeys(self._open.pop(end))]

    def next(self) -> int | None:
        """Return the end of the next window."""
        return min(self._open, default=None)

    def without_late(self, batch: ColumnBatch, column: int, watermark: int) -> ColumnBatch:
        """Return the rows whose window has not ended."""
        if watermark == MIN_WATERMARK:
            return batch
        codes = batch.column(column).dictionary_encode()
        late: Sequence[bool] = [self.last_millisecond(end) <= watermark for end in key_values(codes.dictionary)]
        return batch.filter(pc.invert(pa.array(late).take(codes.indices))) if any(late) else batch
