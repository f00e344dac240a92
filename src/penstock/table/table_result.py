"""The result of a statement: existing rows, or rows of a running job (T2, T4, T5)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import TimeoutError as FutureTimeoutError
from types import TracebackType
from typing import Any, Self

from penstock.common.errors import PenstockError
from penstock.common.job_client import JobClient
from penstock.common.types import Row
from penstock.core.table.types import DataType
from penstock.datastream.collect import CloseableIterator as JobRows
from penstock.runtime.table.text import text_of
from penstock.table.resolved_schema import ResolvedSchema
from penstock.table.result_kind import ResultKind
from penstock.table.text_width import display_width
from penstock.util.exceptions import ValidationException

__all__ = ["CloseableIterator", "TableResult"]

_WIDEST = 32


class CloseableIterator:
    """Iterates over rows. Closing it cancels the job that computes them."""

    def __init__(self, rows: Iterator[Row], close: Callable[[], None] = lambda: None) -> None:
        self._rows = rows
        self._close = close

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Row:
        return next(self._rows)

    next = __next__

    def close(self) -> None:
        """Cancel the job if it is still running."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.close()


class TableResult:
    """The result of :meth:`TableEnvironment.execute_sql`."""

    def __init__(
        self,
        schema: ResolvedSchema,
        kind: ResultKind,
        rows: Iterable[Row] | JobRows[Row],
        client: JobClient | None = None,
        *,
        streaming: bool = False,
        time_zone: str = "UTC",
        affected: bool = False,
        is_text: bool = False,
    ) -> None:
        self._schema = schema
        self._kind = kind
        self._rows = rows
        self._client = client
        self._streaming = streaming
        self._time_zone = time_zone
        self._affected = affected
        self._collected = False
        self.is_text = is_text
        """Whether the result is one text, such as a plan, which is printed unchanged."""

    def get_job_client(self) -> JobClient | None:
        """Return the client of the job, or None if the statement started none."""
        return self._client

    def get_result_kind(self) -> ResultKind:
        return self._kind

    def get_resolved_schema(self) -> ResolvedSchema:
        """Return the columns of the result."""
        return self._schema

    def get_table_schema(self) -> Any:
        """Return the columns of the result as a TableSchema."""
        from penstock.table.table_schema import TableSchema

        return TableSchema(self._schema.get_column_names(), self._schema.get_column_data_types())

    def wait(self, timeout_ms: int | None = None) -> None:
        """Wait for the end of an INSERT, or for the first row of a query."""
        if self._client is None:
            return
        if not self._affected:
            return
        timeout = None if timeout_ms is None else timeout_ms / 1000
        try:
            self._client.get_job_execution_result().result(timeout)
        except (FutureTimeoutError, TimeoutError):
            raise TimeoutError(f"the job has not ended within {timeout_ms} ms") from None
        except PenstockError as error:
            raise error.with_traceback(None) from None

    def collect(self) -> CloseableIterator:
        """Return the rows as they arrive. A result can be collected once."""
        if self._collected:
            raise ValidationException("the result is already collected: execute the statement again")
        self._collected = True
        if isinstance(self._rows, JobRows):
            return CloseableIterator(iter(self._rows), self._rows.close)
        return CloseableIterator(iter(self._rows))

    def print(self) -> None:
        """Print the rows as a table. In streaming mode, a column ``op`` shows the row kinds."""
        if self._kind is ResultKind.SUCCESS:
            sys.stdout.write("OK\n")
            return
        if self._affected and self._client is not None:
            sys.stdout.write(f"Job ID: {self._client.get_job_id()}\n")
        if self.is_text:
            sys.stdout.writelines(f"{text}\n" for (text,) in self.collect())
            return
        print_rows(self.collect(), self._schema, with_kinds=self._streaming, time_zone=self._time_zone)


def print_rows(rows: Iterable[Row], schema: ResolvedSchema, *, with_kinds: bool, time_zone: str) -> None:
    """Print rows as they arrive, in columns whose width depends on their types, as in Flink."""
    names, types = schema.get_column_names(), schema.get_column_data_types()
    collected: Iterable[Row] = rows if with_kinds else list(rows)
    if with_kinds:
        widths = [max(_width_of(type_), display_width(name)) for name, type_ in zip(names, types, strict=True)]
    else:
        texts = [[_cell(value, type_, time_zone) for value, type_ in zip(row, types, strict=True)] for row in collected]
        widths = [
            min(_WIDEST, max([display_width(name), *(display_width(text[index]) for text in texts)]))
            for index, name in enumerate(names)
        ]
    heads = ["op", *names] if with_kinds else list(names)
    all_widths = [2, *widths] if with_kinds else widths
    border = "+" + "+".join("-" * (width + 2) for width in all_widths) + "+"
    write = sys.stdout.write
    count = 0
    opened = False
    for row in collected:
        if not opened:
            write(f"{border}\n{_line(heads, all_widths)}\n{border}\n")
            opened = True
        cells = [_cell(value, type_, time_zone) for value, type_ in zip(row, types, strict=True)]
        write(_line([str(row.get_row_kind()), *cells] if with_kinds else cells, all_widths) + "\n")
        count += 1
    if opened:
        write(border + "\n")
    write(f"{count} row{'' if count == 1 else 's'} in set\n" if count else "Empty set\n")


def _cell(value: Any, data_type: DataType, time_zone: str) -> str:
    return "<NULL>" if value is None else text_of(value, data_type, time_zone)


def _line(cells: list[str], widths: list[int]) -> str:
    parts = []
    for cell, width in zip(cells, widths, strict=True):
        text = cell if display_width(cell) <= width else cell[: max(0, width - 3)] + "..."
        parts.append(" " * (width - display_width(text)) + text)
    return "| " + " | ".join(parts) + " |"


def _width_of(data_type: DataType) -> int:
    fixed = {
        "BOOLEAN": 7,
        "TINYINT": 7,
        "SMALLINT": 8,
        "INT": 11,
        "BIGINT": 20,
        "DATE": 10,
    }
    if data_type.root in fixed:
        return fixed[data_type.root]
    if data_type.root == "DECIMAL":
        return data_type.precision + 2  # type: ignore[attr-defined, no-any-return]
    if data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ", "TIME"):
        precision = data_type.precision  # type: ignore[attr-defined]
        base = 8 if data_type.root == "TIME" else 19
        return int(base if precision == 0 else base + 1 + precision)
    length = getattr(data_type, "length", _WIDEST)
    return min(_WIDEST, max(1, length)) if data_type.root in ("CHAR", "VARCHAR") else 30


def success(rows: Iterable[Row] = ()) -> TableResult:
    """Return the result of a statement without output."""
    from penstock.core.table.types import DataTypes

    schema = ResolvedSchema.physical(["result"], [DataTypes.STRING()])
    return TableResult(schema, ResultKind.SUCCESS, list(rows) or [Row("OK")])


def text_content(text: str) -> TableResult:
    """Return the result of a statement with text output, such as EXPLAIN."""
    from penstock.core.table.types import DataTypes

    schema = ResolvedSchema.physical(["result"], [DataTypes.STRING()])
    return TableResult(schema, ResultKind.SUCCESS_WITH_CONTENT, [Row(text)], is_text=True)


def content(names: list[str], types: list[DataType], rows: Iterable[Iterable[Any]]) -> TableResult:
    """Return the result of a statement with immediate rows."""
    schema = ResolvedSchema.physical(names, types)
    return TableResult(schema, ResultKind.SUCCESS_WITH_CONTENT, [Row(*row) for row in rows])
