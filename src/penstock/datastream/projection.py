"""The projection of a record to some of its fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError
from penstock.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from penstock.common.types import Row


class Projection:
    """Maps a tuple, list or row to one with the chosen fields.

    >>> Projection([2, 0])(("a", "b", "c"))
    ('c', 'a')
    """

    def __init__(self, positions: Sequence[int]) -> None:
        if not positions or not all(is_int(position) and position >= 0 for position in positions):
            raise InvalidProgramError(f"project() takes field positions from 0, got {list(positions)!r}")
        self._positions = tuple(positions)

    def __call__(self, value: Any) -> Any:
        """Return the projected record, of the same kind."""
        fields = [value[position] for position in self._positions]
        if not isinstance(value, Row):
            return fields if isinstance(value, list) else tuple(fields)
        row = Row.of_kind(value.get_row_kind(), *fields)
        names = value.get_field_names()
        if names is not None:
            row.set_field_names([names[position] for position in self._positions])
        return row

    def type_of(self, record_type: TypeInformation | None) -> TypeInformation | None:
        """Return the type of the projected records."""
        if not isinstance(record_type, (TupleTypeInfo, RowTypeInfo)):
            return None
        types = record_type.get_field_types()
        if max(self._positions) >= len(types):
            raise InvalidProgramError(
                f"the stream's records have {len(types)} fields: no field has the position {max(self._positions)}"
            )
        kept = [types[position] for position in self._positions]
        if isinstance(record_type, TupleTypeInfo):
            return TupleTypeInfo(kept)
        names = record_type.get_field_names()
        return RowTypeInfo(kept, [names[position] for position in self._positions])
