"""The contract of aggregate functions.

An aggregate runs over a batch that is sorted by key (see :mod:`penstock.runtime.table.segments`). Its accumulator has a
fixed number of fields. :meth:`ColumnAggregate.scan` returns the accumulators after all rows at once. State between
batches contains the fields as plain Python values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.runtime.table.column_fields import FieldType
from penstock.runtime.table.segments import Segments


@dataclass(slots=True)
class AggregateInput:
    """The input of one aggregate call in a batch, in the order of the segments."""

    segments: Segments
    arguments: list[pa.Array]
    signs: pa.Int64Array | None
    """1 for added rows and -1 for retracted rows; None if all are added."""
    mask: pa.BooleanArray | None
    """The rows that count (FILTER); None if all do."""

    def counted(self, column: pa.Array | None = None) -> pa.BooleanArray | None:
        """Rows that count and whose argument is not NULL; None if all rows do."""
        mask = self.mask
        if column is not None and column.null_count:
            valid = column.is_valid()
            mask = valid if mask is None else pc.and_(mask, valid)
        return mask

    def deltas(self, mask: pa.BooleanArray | None) -> pa.Int64Array:
        """Return the change that every row makes to a row count."""
        ones = pa.repeat(pa.scalar(1, pa.int64()), self.segments.rows) if self.signs is None else self.signs
        return ones if mask is None else pc.if_else(mask, ones, pa.scalar(0, pa.int64()))


@dataclass(slots=True)
class AggregateScan:
    """The results of an aggregate for a batch."""

    initial: pa.Array
    """The result of every segment before its first row."""
    running: pa.Array
    """The result after every row."""
    fields: list[Any]
    """The fields of the accumulator at the end of every segment, one list per field."""


class Aggregate(ABC):
    """One aggregate call of a query. It is picklable and has no state of its own."""

    fields: tuple[FieldType, ...]
    """The types of the fields. None means Python objects."""
    empty: tuple[Any, ...]
    """The fields of an empty accumulator."""
    result_type: pa.DataType

    results_at_end: bool = False
    """Set if only the final results are needed, and not the results after each row."""
    skips_null: bool = True
    """Whether rows with a NULL argument do not count, which DISTINCT has to know."""

    def user_functions(self) -> list[Any]:
        """Return the user's functions, to open and close."""
        return []

    @abstractmethod
    def scan(self, batch: AggregateInput, fields: list[Any]) -> AggregateScan:
        """Run over a batch, starting each segment with these fields."""

    @abstractmethod
    def results(self, fields: list[Any]) -> pa.Array:
        """Return the results of accumulators."""

    def merge(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        """Merge two accumulators: of touching sessions, or of slices that form a window."""
        raise NotImplementedError(f"{type(self).__name__} cannot merge accumulators")


class ColumnAggregate(Aggregate):
    """An aggregate whose accumulator is columns."""

    types: tuple[pa.DataType, ...]
    """The column types of the fields. Fields of Python objects are converted per batch."""

    @abstractmethod
    def running(self, batch: AggregateInput, initial: list[pa.Array]) -> list[pa.Array]:
        """Return the fields after every row, starting with the fields of each segment."""

    @abstractmethod
    def finish(self, fields: list[pa.Array]) -> pa.Array:
        """Return the results of accumulators."""

    def scan(self, batch: AggregateInput, fields: list[Any]) -> AggregateScan:
        """Run with columns as input and output."""
        initial = self._columns(fields)
        running = self.running(batch, initial)
        final: list[Any] = [batch.segments.last(field) for field in running]
        return AggregateScan(self.finish(initial), self.finish(running), final)

    def results(self, fields: list[Any]) -> pa.Array:
        """Return the results of accumulators."""
        return self.finish(self._columns(fields))

    def _columns(self, fields: list[Any]) -> list[pa.Array]:
        return [
            field if isinstance(field, pa.Array) else pa.array(field, type_)
            for field, type_ in zip(fields, self.types, strict=True)
        ]


class RowAggregate(Aggregate):
    """An aggregate whose accumulator is one Python object, changed in place row by row."""

    fields = (None,)
    empty = (None,)

    @abstractmethod
    def create(self) -> Any:
        """Create an accumulator."""

    @abstractmethod
    def accumulate(self, accumulator: Any, *values: Any) -> None:
        """Add a row."""

    def retract(self, accumulator: Any, *values: Any) -> None:
        """Retract a row."""
        raise NotImplementedError(f"{type(self).__name__} cannot retract rows")

    @abstractmethod
    def value(self, accumulator: Any) -> Any:
        """Return the result."""

    def scan(self, batch: AggregateInput, fields: list[Any]) -> AggregateScan:
        """Process the rows one by one, key by key."""
        rows = self.rows(batch.arguments, batch.segments.rows)
        signs = [1] * len(rows) if batch.signs is None else batch.signs.to_pylist()
        counts = None if batch.mask is None else batch.mask.to_pylist()
        if self.results_at_end:
            return self._folded(batch, fields, rows, signs, counts)
        initial, running, final = [], [], []
        for known, start, end in batch.segments.slices(fields[0]):
            accumulator = self.create() if known is None else known
            result = self.value(accumulator)
            initial.append(result)
            for row in range(start, end):
                if counts is None or counts[row]:
                    if signs[row] > 0:
                        self.accumulate(accumulator, *rows[row])
                    else:
                        self.retract(accumulator, *rows[row])
                    result = self.value(accumulator)
                running.append(result)
            final.append(accumulator)
        return AggregateScan(self.column(initial), self.column(running), [final])

    def _folded(
        self, batch: AggregateInput, fields: list[Any], rows: list[Any], signs: list[int], counts: list[bool] | None
    ) -> AggregateScan:
        """Compute only the accumulators."""
        final = []
        for known, start, end in batch.segments.slices(fields[0]):
            accumulator = self.create() if known is None else known
            for row in range(start, end):
                if counts is None or counts[row]:
                    if signs[row] > 0:
                        self.accumulate(accumulator, *rows[row])
                    else:
                        self.retract(accumulator, *rows[row])
            final.append(accumulator)
        none = pa.nulls(len(rows), self.result_type)
        return AggregateScan(pa.nulls(len(final), self.result_type), none, [final])

    def results(self, fields: list[Any]) -> pa.Array:
        """Return the results of accumulators."""
        return self.column([self.value(self.create() if known is None else known) for known in fields[0]])

    def rows(self, columns: list[pa.Array], count: int) -> list[tuple[Any, ...]]:
        """Return the arguments of every row as Python objects."""
        return list(zip(*map(self.arguments, columns), strict=True)) if columns else [()] * count

    def arguments(self, column: pa.Array) -> list[Any]:
        """Return the values of one argument as Python objects."""
        return list(column.to_pylist())

    def column(self, values: list[Any]) -> pa.Array:
        """Return results as a column."""
        return pa.array(values, self.result_type)
