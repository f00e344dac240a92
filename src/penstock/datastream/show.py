"""The first records of a stream as a text table."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.common.types import Row

__all__ = ["fields_of", "text_table"]

_WIDEST = 40


def fields_of(record: Any) -> dict[str, Any] | None:
    """Return the named fields of a record, or None if it has none.

    >>> fields_of(Row(a=1)), fields_of({"a": 1}), fields_of(("a", 1))
    ({'a': 1}, {'a': 1}, None)
    """
    if isinstance(record, Row):
        names = record.get_field_names()
        return None if names is None else dict(zip(names, record, strict=True))
    if isinstance(record, Mapping):
        return {str(key): value for key, value in record.items()}
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    if isinstance(record, tuple) and hasattr(record, "_fields"):
        return dict(zip(record._fields, record, strict=True))
    model_fields = getattr(type(record), "model_fields", None)  # pydantic
    return None if model_fields is None else {name: getattr(record, name) for name in model_fields}


def text_table(records: Sequence[Any]) -> str:
    """Format a table with a column for each field, or one record per line if the fields have no names.

    >>> print(text_table([{"user": "ann", "n": 12}, {"user": "bobby", "n": 3}]))
    user    n
    -----  --
    ann    12
    bobby   3
    >>> print(text_table([1, "a"]))
    1
    'a'
    """
    rows = [fields_of(record) for record in records]
    names = list(dict.fromkeys(name for row in rows if row for name in row))
    if None in rows or not names:
        return "\n".join(map(repr, records))
    cells = [[_short(row.get(name, "")) for name in names] for row in rows if row is not None]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    numbers = [all(isinstance(row.get(name), (int, float)) for row in rows if row is not None) for name in names]
    lines = [names, ["-" * width for width in widths], *cells]
    return "\n".join(_line(line, widths, numbers) for line in lines)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def _line(texts: Sequence[str], widths: list[int], numbers: list[bool]) -> str:
    aligned = zip(texts, widths, numbers, strict=True)
    return "  ".join(text.rjust(width) if number else text.ljust(width) for text, width, number in aligned).rstrip()
