"""Converts records of a stream to column batches, for tables after streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.common.types import Row
from penstock.core.table.arrow import arrow_type, to_column
from penstock.core.table.types import DataType
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.operator import TableOperator


class InputConversionOperator(TableOperator):
    """Converts records to columns, with a last column for their timestamps if ``with_rowtime`` is set.

    ``names`` are the fields to take. None means that the whole record is the only column.
    """

    def __init__(
        self, names: Sequence[str] | None, places: Sequence[int], types: Sequence[DataType], *, with_rowtime: bool
    ) -> None:
        self.names = None if names is None else list(names)
        self.places = list(places)
        self.types = list(types)
        self.with_rowtime = with_rowtime
        arrow = [arrow_type(type_) for type_ in types] + [pa.timestamp("us", "UTC")] * with_rowtime
        self.schema = pa.schema([pa.field(f"{index}", type_) for index, type_ in enumerate(arrow)])

    def process_batch(self, values: Any, timestamps: Any) -> None:
        """Convert a list of records."""
        if not len(values):
            return
        try:
            rows = [self._fields(value) for value in values]
            columns = [to_column([row[index] for row in rows], type_) for index, type_ in enumerate(self.types)]
            kinds = [value.get_row_kind().value if isinstance(value, Row) else 0 for value in values]
        except Exception as error:
            raise user_error(self.context, error, "conversion") from None
        if self.with_rowtime:
            columns.append(_instants(timestamps, len(values)))
        data = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        self.emit(ColumnBatch(data, pa.array(kinds, pa.int8()) if any(kinds) else None))

    def _fields(self, value: Any) -> Sequence[Any]:
        if self.names is None:
            return (value,)
        if isinstance(value, Row):
            known = value.get_field_names()
            if known:
                by_name = dict(zip(known, value, strict=True))
                return [by_name[name] for name in self.names]
            return [value[place] for place in self.places]
        if isinstance(value, (tuple, list)):
            return [value[place] for place in self.places]
        if isinstance(value, dict):
            return [value.get(name) for name in self.names]
        return [getattr(value, name) for name in self.names]


def _instants(timestamps: Any, count: int) -> pa.Array:
    if timestamps is None:
        return pa.nulls(count, pa.timestamp("us", "UTC"))
    micros = [None if time is None else time * 1000 for time in timestamps]
    return pa.array(micros, pa.int64()).cast(pa.timestamp("us", "UTC"))
