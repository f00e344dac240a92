"""Joins each row with the results of a function: UNNEST and table functions (T76). It has no state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from penstock.common.types import Row
from penstock.core.table.arrow import python_values, to_column
from penstock.core.table.types import DataType
from penstock.runtime.operators.operator import OperatorContext, Output
from penstock.runtime.operators.user_errors import user_error
from penstock.runtime.table.batch import ColumnBatch
from penstock.runtime.table.expressions import EvaluationContext, Expr, Rows, as_column, column_evaluator
from penstock.runtime.table.operator import TableOperator
from penstock.runtime.table.pairs import expand
from penstock.runtime.table.user_functions import close_functions, open_functions

_I64, _I32 = pa.int64(), pa.int32()


class RowFunction(ABC):
    """Produces rows from the arguments of one row."""

    @abstractmethod
    def apply(self, arguments: Sequence[pa.Array]) -> tuple[pa.Int64Array, list[pa.Array]]:
        """Return the number of rows for each input row, and the columns of all result rows, concatenated."""

    def user_functions(self) -> list[Any]:
        """Return the user's functions."""
        return []


class Unnest(RowFunction):
    """Returns the elements of a collection: arrays, arrays of rows, maps, multisets."""

    def __init__(self, *, multiset: bool = False) -> None:
        self.multiset = multiset

    def apply(self, arguments: Sequence[pa.Array]) -> tuple[pa.Int64Array, list[pa.Array]]:
        """Flatten the lists."""
        collection = arguments[0]
        kind = collection.type
        if pt.is_map(kind):
            pairs = pa.struct([pa.field("key", kind.key_type, nullable=False), pa.field("value", kind.item_type)])
            collection = collection.cast(pa.list_(pairs))
        counts = pc.fill_null(pc.list_value_length(collection), 0).cast(_I64)
        elements = pc.list_flatten(collection)
        columns = elements.flatten() if pt.is_struct(elements.type) else [elements]
        if not self.multiset:
            return counts, columns
        owners, _ = expand(counts)
        parents, _ = expand(columns[1].cast(_I64))
        each = [0] * len(collection)
        for owner in owners.take(parents).to_pylist():
            each[owner] += 1
        return pa.array(each, _I64), [columns[0].take(parents)]


class Replicate(RowFunction):
    """Returns the row itself, as often as its smallest argument: for INTERSECT ALL and EXCEPT ALL."""

    def apply(self, arguments: Sequence[pa.Array]) -> tuple[pa.Int64Array, list[pa.Array]]:
        """Return no columns."""
        return pc.max_element_wise(pc.min_element_wise(*arguments), pa.scalar(0, _I64)), []


class TableFunctionCall(RowFunction):
    """A table function of the user, called for each row."""

    def __init__(self, function: Any, argument_types: Sequence[DataType], column_types: Sequence[DataType]) -> None:
        self.function = function
        self.argument_types = list(argument_types)
        self.column_types = list(column_types)

    def user_functions(self) -> list[Any]:
        """Return the function."""
        return [self.function]

    def apply(self, arguments: Sequence[pa.Array]) -> tuple[pa.Int64Array, list[pa.Array]]:
        """Call the function for each row. It returns an iterable of rows or values, or None for none."""
        call = self.function.eval
        types = self.argument_types
        columns = [python_values(column, kind) for column, kind in zip(arguments, types, strict=False)]
        rows = list(zip(*columns, strict=True)) if types else [()] * len(arguments[0])
        counts: list[int] = []
        results: list[Sequence[Any]] = []
        for value in rows:
            made = _rows_of(call(*value), len(self.column_types), self.function.name)
            counts.append(len(made))
            results += made
        parts = list(zip(*results, strict=True)) if results else [()] * len(self.column_types)
        made_columns = [to_column(list(part), kind) for part, kind in zip(parts, self.column_types, strict=True)]
        return pa.array(counts, _I64), made_columns


def _rows_of(result: Any, width: int, name: str) -> list[Sequence[Any]]:
    if result is None:
        return []
    if isinstance(result, (Row, tuple, str, bytes)) or not isinstance(result, Iterable):
        result = [result]
    rows: list[Sequence[Any]] = []
    for one in result:
        is_row = isinstance(one, (Row, tuple) if width == 1 else (Row, tuple, list))
        row = tuple(one) if is_row else (one,)
        if len(row) != width:
            raise ValueError(f"table function '{name}' yielded {one!r}: expected a row of {width} values")
        rows.append(row)
    return rows


class CorrelateOperator(TableOperator):
    """Emits every row with each result of the function. ``outer`` keeps rows without results."""

    def __init__(
        self,
        function: RowFunction,
        arguments: Sequence[Expr],
        schema: pa.Schema,
        context: EvaluationContext,
        *,
        outer: bool = False,
        ordinality: bool = False,
    ) -> None:
        self.function = function
        self.arguments = list(arguments)
        self.schema = schema
        self.evaluation = context
        self.outer = outer
        self.ordinality = ordinality

    def user_functions(self) -> list[Any]:
        """Return the table function."""
        return self.function.user_functions()

    def setup(self, context: OperatorContext, output: Output) -> None:
        """Compile the arguments."""
        super().setup(context, output)
        self._evaluate = [column_evaluator(expr) for expr in self.arguments]

    def open(self) -> None:
        """Open the user's function."""
        open_functions(self.user_functions(), self.context)

    def close(self) -> None:
        """Close the user's function."""
        close_functions(self.user_functions(), self.context)

    def process(self, batch: ColumnBatch) -> None:
        """Flatten the results. Row kinds pass through."""
        context = self.evaluation
        context.now = self.context.processing_time()
        rows = Rows(batch.data, context)
        try:
            arguments = [evaluate(rows) for evaluate in self._evaluate]
            counts, columns = self.function.apply(arguments or [pa.nulls(len(batch))])
        except Exception as error:
            raise user_error(self.context, error, "eval") from None
        repeat = pc.max_element_wise(counts, pa.scalar(1, _I64)) if self.outer else counts
        parents, number = expand(repeat)
        if not len(parents):
            return
        if self.outer:
            starts = pc.subtract(pc.cumulative_sum(counts), counts)
            empty = pc.equal(counts, pa.scalar(0, _I64)).take(parents)
            where = pc.if_else(empty, pa.scalar(None, _I64), pc.add(starts.take(parents), number))
            columns = [column.take(where) for column in columns]
            number = pc.if_else(empty, pa.scalar(None, _I64), number)
        if self.ordinality:
            columns = [*columns, pc.add(number, pa.scalar(1, _I64)).cast(_I32)]
        made = batch.take(parents)
        width = len(made.data.schema)
        types = [self.schema.field(index).type for index in range(width, len(self.schema))]
        columns = [as_column(column, len(made), kind) for column, kind in zip(columns, types, strict=True)]
        data = pa.RecordBatch.from_arrays([*made.data.columns, *columns], schema=self.schema)
        self.emit(ColumnBatch(data, made.kinds))
