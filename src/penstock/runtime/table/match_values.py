"""Values of the rows of a match: LAST, FIRST and aggregates (T92)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.runtime.table.aggregates.base import Aggregate, AggregateInput
from penstock.runtime.table.batch import repeated
from penstock.runtime.table.keys import key_column, key_values
from penstock.runtime.table.segments import Segments
from penstock.runtime.table.stored_rows import StoredRow

RowsOf = Callable[[str | None], list[StoredRow]]
"""Returns the rows of a variable so far, or of all variables for None."""


@dataclass(frozen=True, slots=True)
class MatchValue:
    """``LAST(v.c, n)``, ``FIRST(v.c, n)``, or an aggregate of the columns of a variable's rows."""

    kind: str
    variable: str | None
    columns: tuple[int, ...]
    offset: int = 0


class MatchValueReader:
    """Computes a value. ``aggregate`` is None for LAST and FIRST."""

    def __init__(self, value: MatchValue, aggregate: Aggregate | None, types: Sequence[pa.DataType]) -> None:
        self._value = value
        self._aggregate = aggregate
        self._types = list(types)

    def read(self, rows_of: RowsOf) -> Any:
        """Return the value in its stored form."""
        value = self._value
        rows = rows_of(value.variable)
        if self._aggregate is None:
            if value.offset >= len(rows):
                return None
            row = rows[-1 - value.offset] if value.kind == "LAST" else rows[value.offset]
            return row[value.columns[0]]
        aggregate = self._aggregate
        fields = [
            [blank] if kind is None else pa.array([blank], kind)
            for kind, blank in zip(aggregate.fields, aggregate.empty, strict=True)
        ]
        if not rows:
            return key_values(aggregate.results(fields))[0]
        columns = [
            key_column([row[index] for row in rows], type_)
            for index, type_ in zip(value.columns, self._types, strict=True)
        ]
        segments = Segments.of(repeated(0, len(rows), pa.int32()), 1)
        return key_values(aggregate.scan(AggregateInput(segments, columns, None, None), fields).running)[-1]
