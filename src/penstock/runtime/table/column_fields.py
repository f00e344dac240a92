"""Fields of keyed state in columns: one value for every row, of numbers or of Python objects."""

from __future__ import annotations

from array import array
from contextlib import suppress
from typing import Any

import pyarrow as pa

from penstock.runtime.table.batch import int64_column

np: Any = None
with suppress(ImportError):  # not required: with it, many numbers are written by one call
    import numpy as np

_CODES = {pa.int64(): "q", pa.float64(): "d"}

FieldType = Any
"""An Arrow type: int64 and float64 are stored as numbers. None is for Python objects of any kind."""


class KeyRows:
    """The rows of some keys: what :meth:`ColumnStateBackend.rows_of` gives and the other methods take."""

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
        """Make room for more rows. The memory of the old ones may be in use by a column: it is copied."""
        grown = array(self._cells.typecode, bytes(8 * capacity))
        grown[: len(self._cells)] = self._cells
        self._cells = grown

    def gather(self, rows: KeyRows) -> pa.Array:
        """The values of some rows."""
        whole = pa.Array.from_buffers(self._type, len(self._cells), [None, pa.py_buffer(self._cells)])
        return whole.take(rows.column)

    def fill(self, start: int, count: int, value: Any) -> None:
        """Give neighbouring rows the same value."""
        self._cells[start : start + count] = array(self._cells.typecode, [value]) * count

    def put(self, row: int, value: Any) -> None:
        """Give one row a value."""
        self._cells[row] = value

    def scatter(self, rows: KeyRows, values: Any) -> None:
        """Give some rows new values."""
        cells = self._cells
        if np is not None and isinstance(values, pa.Array):
            np.frombuffer(cells, cells.typecode)[rows.column.to_numpy()] = values.to_numpy()
            return
        for row, value in zip(rows.list, values.to_pylist() if isinstance(values, pa.Array) else values, strict=True):
            cells[row] = value

    def values(self, rows: KeyRows) -> list[Any]:
        """The values of some rows as Python objects."""
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
        """The objects of some rows."""
        cells = self._cells
        return [cells[row] for row in rows.list]

    values = gather

    def fill(self, start: int, count: int, value: Any) -> None:
        """Give neighbouring rows the same object, which cannot change."""
        self._cells[start : start + count] = [value] * count

    def put(self, row: int, value: Any) -> None:
        """Give one row an object."""
        self._cells[row] = value

    def scatter(self, rows: KeyRows, values: Any) -> None:
        """Give some rows new objects."""
        cells = self._cells
        for row, value in zip(rows.list, values.to_pylist() if isinstance(values, pa.Array) else values, strict=True):
            cells[row] = value
