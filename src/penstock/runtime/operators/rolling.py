"""Rolling sum, min, max, min_by and max_by as reduce functions (rule 5.3).

sum, min and max change only the aggregated field; the other fields keep the values of the first record. min_by and
max_by return the whole extreme record. On ties, the first one wins.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from penstock.runtime.operators.fields import Field, FieldPath


class RollingAggregation:
    """Base of the aggregations: a two-argument callable on one field.

    >>> RollingSum(1)(("a", 1), ("b", 2))
    ('a', 3)
    >>> RollingMin(1)(("a", 3), ("b", 2)), RollingMinBy(1)(("a", 3), ("b", 2))
    (('a', 2), ('b', 2))
    """

    name = ""

    def __init__(self, field: Field = 0) -> None:
        self.path = FieldPath(field)
        # Tuple positions are the common case. All other fields use the path.
        self._position = field if isinstance(field, int) else None
        self._read: Callable[[Any], Any] = itemgetter(field) if isinstance(field, int) else self.path.get

    def field(self, record: Any) -> Any:
        """Return the aggregated field of a record."""
        return self._read(record) if type(record) is tuple else self.path.get(record)

    def replaced(self, record: Any, value: Any) -> Any:
        """Return a copy of the record with the aggregate in its field."""
        position = self._position
        if type(record) is tuple and position is not None:
            return (*record[:position], value, *record[position + 1 :])
        return self.path.replaced(record, value)

    def __call__(self, current: Any, value: Any) -> Any:
        """Aggregate the current result and one more record."""
        raise NotImplementedError


class RollingSum(RollingAggregation):
    """Adds up the field."""

    name = "Sum"

    def __call__(self, current: Any, value: Any) -> Any:
        """Return the current record with the sum in its field."""
        position = self._position
        if position is not None and type(current) is tuple and type(value) is tuple:
            total = current[position] + value[position]  # the common case, without a call
            return (*current[:position], total, *current[position + 1 :])
        return self.replaced(current, self.field(current) + self.field(value))


class RollingMin(RollingAggregation):
    """Keeps the smallest value of the field."""

    name = "Min"

    def __call__(self, current: Any, value: Any) -> Any:
        """Return the current record with the smaller value in its field."""
        candidate = self.field(value)
        return self.replaced(current, candidate) if candidate < self.field(current) else current


class RollingMax(RollingAggregation):
    """Keeps the largest value of the field."""

    name = "Max"

    def __call__(self, current: Any, value: Any) -> Any:
        """Return the current record with the larger value in its field."""
        candidate = self.field(value)
        return self.replaced(current, candidate) if self.field(current) < candidate else current


class RollingMinBy(RollingAggregation):
    """Keeps the record with the smallest field. On ties, `first` decides which record stays."""

    name = "MinBy"

    def __init__(self, field: Field = 0, *, first: bool = True) -> None:
        super().__init__(field)
        self._first = first

    def __call__(self, current: Any, value: Any) -> Any:
        """Return the record with the smaller field."""
        known, candidate = self.field(current), self.field(value)
        return value if candidate < known or (candidate == known and not self._first) else current


class RollingMaxBy(RollingMinBy):
    """Keeps the record with the largest field. On ties, `first` decides which record stays."""

    name = "MaxBy"

    def __call__(self, current: Any, value: Any) -> Any:
        """Return the record with the larger field."""
        known, candidate = self.field(current), self.field(value)
        return value if known < candidate or (candidate == known and not self._first) else current
