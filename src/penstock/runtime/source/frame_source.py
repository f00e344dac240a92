"""A source that the engine feeds: converts record batches of a DataFrame to records in the source stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from penstock.common.types import Row


class FrameSource:
    """Converts record batches to records with the user's function, or to Rows with the column names."""

    def __init__(self, to_records: Callable[[Any], list[Any]] | None) -> None:
        self._to_records = to_records

    def read(self, batches: Iterator[Any]) -> Iterator[list[Any]]:
        """Yield the records of each batch."""
        for batch in batches:
            yield self._to_records(batch) if self._to_records is not None else rows_of(batch)


def rows_of(batch: Any) -> list[Row]:
    """Return the rows of a pyarrow.RecordBatch. Nested structs are Rows, too, and maps are dicts."""
    names = batch.schema.names
    rows = []
    for values in zip(*(_values_of(column) for column in batch.columns), strict=True):
        row = Row(*values)
        row.set_field_names(names)
        rows.append(row)
    return rows


def _values_of(column: Any) -> list[Any]:
    values: list[Any] = column.to_pylist()
    convert = _converter(column.type)
    return values if convert is None else [None if value is None else convert(value) for value in values]


def _converter(kind: Any) -> Callable[[Any], Any] | None:
    """Return a conversion from Arrow's Python value of this type to a record's value, or None if they are the same."""
    from pyarrow import types

    if types.is_struct(kind):
        return _to_row(kind)
    if types.is_map(kind):
        of_key, of_value = _nullable(kind.key_type), _nullable(kind.item_type)
        return lambda pairs: {of_key(key): of_value(value) for key, value in pairs}
    if types.is_list(kind) or types.is_large_list(kind):
        of_element = _converter(kind.value_type)
        return None if of_element is None else lambda values: [None if v is None else of_element(v) for v in values]
    return None


def _to_row(kind: Any) -> Callable[[Any], Any]:
    names = [kind.field(position).name for position in range(kind.num_fields)]
    converters = [_nullable(kind.field(position).type) for position in range(kind.num_fields)]

    def convert(fields: dict[str, Any]) -> Row:
        row = Row(*(of_field(fields[name]) for name, of_field in zip(names, converters, strict=True)))
        row.set_field_names(names)
        return row

    return convert


def _nullable(kind: Any) -> Callable[[Any], Any]:
    convert = _converter(kind)
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)
