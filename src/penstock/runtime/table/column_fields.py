"""The fields of keyed state in columns: one value per row, of numbers or of Python objects."""

from __future__ import annotations

from array import array
from contextlib import suppress
from typing import Any

import pyarrow as pa

from penstock.runtime.table.batch import int64_column

np: Any = None
with suppress(ImportError):  # optional: with it, one call writes many numbers
    import numpy as np

_CODES = {pa.int64(): "q", pa.float64(): "d"}

FieldType = Any
"""An Arrow type: int64 and float64 are stored as numbers. None means Python objects of any kind."""


class KeyRows:
    """The rows of some keys, as returned by :meth:`ColumnStateBackend.rows_of`."""

    __slots__ = ("column", "list")

    def __init__(self, rows: list[int]) -> None:
        self.list = rows
        self.column = int64_column(array("q", rows))


class NumberField:
    """A field of numbers without NULL."""

    __slots__ = ("_cells", "_type")

    def __init__(self, type_: pa.DataType) -> None:
        self._type = type_
        self._cells: array[Any] = array(_CODES[type_])

    def grow(self, capacity: int) -> None:
        """Make room for more rows. A column may still use the old memory, so it is copied."""
        grown = array(self._cells.typecode, bytes(8 * capacity))
        grown[: len(self._cells)] = self._cells
        self._cells = grown

    def gather(self, rows: KeyRows) -> pa.Array:
        """Return the values of some rows."""
        whole = pa.Array.from_buffers(self._type, len(self._cells), [None, pa.py_buffer(self._cells)])
        return whole.take(rows.column)

    def fill(self, start: int, count: int, value: Any) -> None:
        """Set adjacent rows to the same value."""
        self._cells[start : start + count] = array(self._cells.typecode, [value]) * count

    def put(self, row: int, value: Any) -> None:
        """Set the value of one row."""
        self._cells[row] = value

    def scatter(self, rows: KeyRows, values: Any) -> None:
        """Set the values of some rows."""
        cells = self._cells
        if np is not None and isinstance(values, pa.Array):
            np.frombuffer(cells, cells.typecode)[rows.column.to_numpy()] = values.to_numpy()
            return
        for row, value in zip(rows.list, values.to_pylist() if isinstance(values, pa.Array) else values, strict=True):
            cells[row] = value

    def values(self, rows: KeyRows) -> list[Any]:
        """Return the values of some rows as Python objects."""
        return list(self.gather(rows).to_pylist())


class ObjectField:
    """A field of Python objects."""

    __slots__ = ("_cells",)

    def __init__(self) -> None:
        self._cells: list[Any] = []

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        self._cells += [None] * (capacity - len(self._cells))

    def gather(self, rows: KeyRows) -> list[Any]:
        """Return the objects of some rows."""
        cells = self._cells
        return [cells[row] for row in rows.list]

    values = gather

    def fill(self, start: int, count: int, value: Any) -> None:
        """Set adjacent rows to the same immutable object."""
        self._cells[start : start + count] = [value] * count

    def put(self, row: int, value: Any) -> None:
        """Set the object of one row."""
        self._cells[row] = value

    def scatter(self, rows: KeyRows, values: Any) -> None:
        """Set the objects of some rows."""
        cells = self._cells
        for row, value in zip(rows.list, values.to_pylist() if isinstance(values, pa.Array) else values, strict=True):
            cells[row] = value
