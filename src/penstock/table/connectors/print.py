"""The connector ``print``: rows with their kinds on the driver's standard output, ``+I[1, a]``."""

from __future__ import annotations

from typing import Any, ClassVar

from penstock.connectors.sinks import PrintSink
from penstock.core.sink import Committer, Sink, SinkWriter, WriterInitContext
from penstock.core.table.arrow import python_values
from penstock.runtime.table.text import text_of
from penstock.table.connectors.base import ConnectorFactory, ResolvedTable, TableSink, connector, is_true

KINDS = ("+I", "-U", "+U", "-D")


class ColumnPrintSink(Sink):
    """Prints column batches."""

    publishes_at_once = True

    def __init__(self, table: ResolvedTable, identifier: str | None, *, to_std_err: bool) -> None:
        self._types = [field.type for field in table.fields]
        self._inner = PrintSink(identifier, to_std_err)

    def create_writer(self, context: WriterInitContext) -> SinkWriter:
        """Create a writer that formats rows as lines."""
        return _ColumnPrintWriter(self._inner.create_writer(context), self._types)

    def create_committer(self) -> Committer:
        """Create a committer that prints in the driver's process."""
        return self._inner.create_committer()


class _ColumnPrintWriter(SinkWriter):
    def __init__(self, inner: SinkWriter, types: list[Any]) -> None:
        self._inner = inner
        self._types = types

    def write_batch(self, values: Any, timestamps: Any) -> None:
        columns = [
            ["null" if value is None else text_of(value, type_) for value in python_values(column, type_)]
            for column, type_ in zip(values.data.columns, self._types, strict=True)
        ]
        kinds = values.kinds_or_inserts().to_pylist()
        rows = zip(*columns, strict=True) if columns else [()] * len(values)
        lines = [f"{KINDS[kind]}[{', '.join(row)}]" for kind, row in zip(kinds, rows, strict=True)]
        self._inner.write_batch(lines, None)

    def prepare_commit(self) -> list[Any]:
        return list(self._inner.prepare_commit())


class PrintTableSink(TableSink):
    """Accepts all row kinds."""

    def __init__(self, table: ResolvedTable) -> None:
        self._table = table

    def create(self) -> Sink:
        """Create the sink."""
        table = self._table
        return ColumnPrintSink(
            table, table.option("print-identifier"), to_std_err=is_true(table.option("standard-error", "false"))
        )


@connector("print")
class PrintFactory(ConnectorFactory):
    """``'connector' = 'print'``"""

    options: ClassVar[dict[str, str | None]] = {"print-identifier": None, "standard-error": "false"}

    def sink(self, table: ResolvedTable) -> TableSink:
        """Return the table as a sink."""
        return PrintTableSink(table)
