"""The rows of one side of a join under one key, in the smallest form for its kind of join.

The state of a key has one value per side, None without rows:

========== ===================================== =======================================================
form       value                                 when
========== ===================================== =======================================================
NUMBER     the number of rows                    only whether there is a row counts (EXISTS, IN)
ROWS       list of rows                          rows are never taken away
COUNTS     row -> how often it is there          rows are taken away
PARTNERS   row -> [how often, partners]          the row itself comes or goes with its partners (outer joins)
========== ===================================== =======================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import chain
from typing import Any

import pyarrow as pa

from penstock.runtime.table.pairs import StoredRow, StoredRows


class Form(Enum):
    """The form in which rows are stored."""

    NUMBER = "number"
    ROWS = "rows"
    COUNTS = "counts"
    PARTNERS = "partners"


class SideRows:
    """The rows of one side under several keys, concatenated."""

    __slots__ = ("entries", "lengths", "rows", "times")

    def __init__(self, form: Form, values: Sequence[Any], types: Sequence[pa.DataType]) -> None:
        found = [value for value in values if value is not None]
        self.lengths = [0 if value is None else len(value) for value in values]
        """The number of different rows per key."""
        self.rows = StoredRows(list(chain.from_iterable(found)), types)
        self.entries: list[list[int]] = []
        """For PARTNERS: the numbers of each row, to change in place."""
        self.times: list[int] | None = None
        """How often each row occurs; None if all occur once."""
        if form is Form.COUNTS:
            self.times = list(chain.from_iterable(value.values() for value in found))
        elif form is Form.PARTNERS:
            self.entries = list(chain.from_iterable(value.values() for value in found))
            self.times = [entry[0] for entry in self.entries]
        if self.times is not None and (not self.times or max(self.times) == 1):
            self.times = None


def add_rows(value: list[StoredRow] | None, rows: list[StoredRow]) -> list[StoredRow]:
    """Add rows in form ROWS."""
    if value is None:
        return rows
    value += rows
    return value


def change_count(value: dict[StoredRow, int] | None, row: StoredRow, sign: int) -> dict[StoredRow, int] | None:
    """Add or retract a row in form COUNTS. A missing row cannot be retracted."""
    if value is None:
        return {row: 1} if sign > 0 else None
    count = value.get(row, 0) + sign
    if count > 0:
        value[row] = count
    else:
        value.pop(row, None)
    return value or None


def change_partners(
    value: dict[StoredRow, list[int]] | None, row: StoredRow, sign: int, partners: int
) -> dict[StoredRow, list[int]] | None:
    """Add or retract a row in form PARTNERS. An added row has this many partners."""
    if value is None:
        return {row: [1, partners]} if sign > 0 else None
    entry = value.get(row)
    if entry is None:
        if sign > 0:
            value[row] = [1, partners]
    elif entry[0] + sign > 0:
        entry[0] += sign
    else:
        del value[row]
    return value or None
