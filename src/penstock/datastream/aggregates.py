"""Aggregates by name: ``Sum("amount")``, ``Mean("x")``, ``Quantile(0.99, "ms")``.

Each one is an AggregateFunction, so it also works in ``aggregate()`` and in an AggregatingState. A field is a name, a
position or a function of the record; without a field, the aggregate uses the record itself. ``add`` may change the
accumulator. ``merge`` never changes its arguments, because windows may share them. Accumulators are plain values.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import insort
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from penstock.common.checks import is_int
from penstock.common.errors import InvalidProgramError, shorten
from penstock.core.functions import AggregateFunction
from penstock.datastream.function_checks import class_hint
from penstock.runtime.operators.fields import FieldPath

__all__ = ["Aggregate", "Collect", "Count", "CountDistinct", "Max", "Mean", "Min", "Quantile", "Sum", "Together", "Top"]

R = TypeVar("R")

Field = str | int | Callable[[Any], Any] | None

_TAKEN = ("key", "window_start", "window_end")


class Aggregate(AggregateFunction[Any, Any, R]):
    """Base class for aggregates of one field."""

    def __init__(self, field: Field = None) -> None:
        self._field = field
        self._read = _reader(field)

    @abstractmethod
    def get_result(self, accumulator: Any) -> R:
        """Return the result for an accumulator."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self._field is None else repr(self._field)})"


def _reader(field: Field) -> Callable[[Any], Any]:
    if field is None:
        return _itself
    if callable(field):
        return field
    return FieldPath(field).get


def _itself(record: Any) -> Any:
    return record


def aggregated(function: AggregateFunction[Any, Any, R], records: Iterable[Any]) -> R:
    """Aggregate some records.

    >>> aggregated(Sum(), [1, 2, 3]), aggregated(Mean("x"), [{"x": 1}, {"x": 2}])
    (6, 1.5)
    """
    accumulator = function.create_accumulator()
    for record in records:
        accumulator = function.add(record, accumulator)
    return function.get_result(accumulator)


class Count(Aggregate[int]):
    """The number of records.

    >>> aggregated(Count(), "abc")
    3
    """

    def __init__(self) -> None:
        super().__init__()

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class _Folded(Aggregate[Any]):
    """Aggregates whose accumulator is their value, or None before the first value."""

    @abstractmethod
    def _fold(self, one: Any, other: Any) -> Any:
        """Combine two values."""

    def create_accumulator(self) -> Any:
        return None

    def add(self, value: Any, accumulator: Any) -> Any:
        read = self._read(value)
        return read if accumulator is None else self._fold(accumulator, read)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        if acc_a is None or acc_b is None:
            return acc_b if acc_a is None else acc_a
        return self._fold(acc_a, acc_b)


class Sum(_Folded):
    """The sum of a field."""

    def _fold(self, one: Any, other: Any) -> Any:
        return one + other


class Min(_Folded):
    """The smallest value of a field."""

    def _fold(self, one: Any, other: Any) -> Any:
        return min(one, other)


class Max(_Folded):
    """The largest value of a field."""

    def _fold(self, one: Any, other: Any) -> Any:
        return max(one, other)


class Mean(Aggregate[float]):
    """The arithmetic mean of a field."""

    def create_accumulator(self) -> tuple[Any, int]:
        return 0, 0

    def add(self, value: Any, accumulator: tuple[Any, int]) -> tuple[Any, int]:
        return accumulator[0] + self._read(value), accumulator[1] + 1

    def get_result(self, accumulator: tuple[Any, int]) -> float:
        total, count = accumulator
        return total / count if count else math.nan

    def merge(self, acc_a: tuple[Any, int], acc_b: tuple[Any, int]) -> tuple[Any, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Collect(Aggregate[list[Any]]):
    """All values of a field, or all records, as a list.

    >>> aggregated(Collect(0), [("a", 1), ("b", 2)])
    ['a', 'b']
    """

    def create_accumulator(self) -> list[Any]:
        return []

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        accumulator.append(self._read(value))
        return accumulator

    def get_result(self, accumulator: list[Any]) -> list[Any]:
        return list(accumulator)

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        return acc_a + acc_b


class CountDistinct(Aggregate[int]):
    """The number of distinct values of a field. The accumulator keeps each of them.

    >>> aggregated(CountDistinct(), "abba")
    2
    """

    def create_accumulator(self) -> set[Any]:
        return set()

    def add(self, value: Any, accumulator: set[Any]) -> set[Any]:
        accumulator.add(self._read(value))
        return accumulator

    def get_result(self, accumulator: set[Any]) -> int:
        return len(accumulator)

    def merge(self, acc_a: set[Any], acc_b: set[Any]) -> set[Any]:
        return acc_a | acc_b


class Quantile(Aggregate[float]):
    """The value that a share ``q`` of the values does not exceed; for example, ``Quantile(0.99, "ms")``.

    The aggregate counts values in buckets whose width grows with the value. The relative error of the result is at most
    ``accuracy``, and the accumulator stays small for any input. With ``accuracy=0`` it keeps every value and the result
    is exact.

    >>> aggregated(Quantile(0.5, accuracy=0), [5, 1, 4, 2, 3])
    3
    >>> round(aggregated(Quantile(0.5), range(1, 1001)), -1)
    500.0
    """

    def __init__(self, q: float, field: Field = None, *, accuracy: float = 0.01) -> None:
        super().__init__(field)
        if not 0 <= q <= 1:
            raise InvalidProgramError(
                f"a quantile must be between 0 and 1, got {shorten(q)}: 0.99 is the 99th percentile"
            )
        if not 0 <= accuracy < 1:
            raise InvalidProgramError(
                f"the accuracy of a quantile must be at least 0 and below 1, got {shorten(accuracy)}"
            )
        self._q = q
        self._exact = accuracy == 0
        self._base = (1 + accuracy) / (1 - accuracy)
        self._log_base = math.log(self._base) if accuracy else 1.0

    def create_accumulator(self) -> dict[Any, int]:
        return {}

    def add(self, value: Any, accumulator: dict[Any, int]) -> dict[Any, int]:
        read = self._read(value)
        bucket = read if self._exact else self._bucket(read)
        accumulator[bucket] = accumulator.get(bucket, 0) + 1
        return accumulator

    def _bucket(self, value: float) -> tuple[int, int]:
        """Sign and logarithm, which sort like the values."""
        if value == 0:
            return 0, 0
        sign = 1 if value > 0 else -1
        return sign, sign * math.ceil(math.log(abs(value)) / self._log_base)

    def get_result(self, accumulator: dict[Any, int]) -> float:
        rank = max(math.ceil(self._q * sum(accumulator.values())), 1)
        for bucket in sorted(accumulator):
            rank -= accumulator[bucket]
            if rank <= 0:
                return bucket if self._exact else self._middle(*bucket)
        return math.nan

    def _middle(self, sign: int, signed_logarithm: int) -> float:
        return sign * 2 * self._base ** (sign * signed_logarithm) / (self._base + 1)

    def merge(self, acc_a: dict[Any, int], acc_b: dict[Any, int]) -> dict[Any, int]:
        merged = dict(acc_a)
        for bucket, count in acc_b.items():
            merged[bucket] = merged.get(bucket, 0) + count
        return merged

    def __repr__(self) -> str:
        return f"Quantile({self._q}{'' if self._field is None else f', {self._field!r}'})"


class Top(Aggregate[list[Any]]):
    """The ``n`` records with the largest ``by``, largest first. Of equal records, the earlier one comes first.

    ``smallest=True`` reverses the order. The accumulator keeps only ``n`` records.

    >>> aggregated(Top(2, by=1), [("a", 1), ("b", 3), ("c", 2)])
    [('b', 3), ('c', 2)]
    """

    def __init__(self, n: int, by: Field = None, *, smallest: bool = False) -> None:
        super().__init__(by)
        if not is_int(n) or n < 1:
            raise InvalidProgramError(f"the number of records for top() must be at least 1, got {shorten(n)}")
        self._n = n
        self._smallest = smallest

    def create_accumulator(self) -> list[Any]:
        return []

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        self._insert(accumulator, (self._read(value), value))
        return accumulator

    def _insert(self, kept: list[Any], entry: tuple[Any, Any]) -> None:
        insort(kept, entry, key=self._rank)
        del kept[self._n :]

    def _rank(self, entry: tuple[Any, Any]) -> Any:
        return entry[0] if self._smallest else _Descending(entry[0])

    def get_result(self, accumulator: list[Any]) -> list[Any]:
        return [record for _, record in accumulator]

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        merged = list(acc_a)
        for entry in acc_b:
            self._insert(merged, entry)
        return merged

    def __repr__(self) -> str:
        return f"Top({self._n}{'' if self._field is None else f', by={self._field!r}'})"


class _Descending:
    """Reverses the order of values. Instances exist only during a comparison."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Descending) -> bool:
        smaller: bool = other.value < self.value
        return smaller


class Together(AggregateFunction[Any, list[Any], tuple[Any, ...]]):
    """Several aggregates of the same records: a tuple of their results."""

    def __init__(self, aggregates: dict[str, AggregateFunction[Any, Any, Any]]) -> None:
        if not aggregates:
            raise InvalidProgramError("agg() needs named aggregates: .agg(total=Sum('amount'), n=Count())")
        for name, aggregate in aggregates.items():
            if name in _TAKEN:
                raise InvalidProgramError(f"'{name}' is a field that agg() adds to its rows: choose another name")
            if not isinstance(aggregate, AggregateFunction):
                raise InvalidProgramError(
                    f"'{name}' of agg() must be an aggregate such as Sum('amount') or Count(), got "
                    f"{shorten(aggregate)}{class_hint(aggregate)}"
                )
        self.names = tuple(aggregates)
        self._aggregates = list(aggregates.values())

    def create_accumulator(self) -> list[Any]:
        return [aggregate.create_accumulator() for aggregate in self._aggregates]

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        for position, aggregate in enumerate(self._aggregates):
            accumulator[position] = aggregate.add(value, accumulator[position])
        return accumulator

    def get_result(self, accumulator: list[Any]) -> tuple[Any, ...]:
        pairs = zip(self._aggregates, accumulator, strict=True)
        return tuple(aggregate.get_result(part) for aggregate, part in pairs)

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        return [
            aggregate.merge(one, other) for aggregate, one, other in zip(self._aggregates, acc_a, acc_b, strict=True)
        ]
