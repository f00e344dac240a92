"""Results of ``penstock sql``: as a table, as CSV, as JSON, or live while they change."""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TextIO

from penstock.common.types import Row
from penstock.core.table.types import DataType
from penstock.table.formats.values import to_json, to_text
from penstock.table.table_result import TableResult, print_rows

__all__ = ["LiveTable", "write_csv", "write_json", "write_live"]

_REDRAW_SECONDS = 0.1
_ROWS_SHOWN = 20
_TAKEN_AWAY = ("-U", "-D")


def write_csv(result: TableResult, out: TextIO, *, with_kinds: bool) -> None:
    """Write a line of names, then a line per row. In streaming mode, each row starts with its kind."""
    schema = result.get_resolved_schema()
    writers = [to_text(type_) for type_ in schema.get_column_data_types()]
    names = schema.get_column_names()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["op", *names] if with_kinds else names)
    with result.collect() as rows:
        for row in rows:
            cells = ["" if value is None else write(value) for write, value in zip(writers, row, strict=True)]
            writer.writerow([str(row.get_row_kind()), *cells] if with_kinds else cells)
            out.flush()


def write_json(result: TableResult, out: TextIO, *, with_kinds: bool) -> None:
    """Write an object per row. In streaming mode: ``{"op": "+I", "row": {...}}``."""
    schema = result.get_resolved_schema()
    writers = [to_json(type_) for type_ in schema.get_column_data_types()]
    names = schema.get_column_names()
    with result.collect() as rows:
        for row in rows:
            values = {name: write(value) for name, write, value in zip(names, writers, row, strict=True)}
            line = {"op": str(row.get_row_kind()), "row": values} if with_kinds else values
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
            out.flush()


class LiveTable:
    """The current rows of a changelog, redrawn in place while they change."""

    def __init__(
        self,
        names: Sequence[str],
        types: Sequence[DataType],
        out: TextIO,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._names = list(names)
        self._writers = [to_text(type_) for type_ in types]
        self._out = out
        self._clock = clock
        self._rows: list[tuple[str, ...]] = []
        self._changes = 0
        self._drawn_lines = 0
        self._drawn_at = float("-inf")

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Return the current rows."""
        return list(self._rows)

    def apply(self, row: Row) -> None:
        """Apply a change, and redraw if the last time is long enough ago."""
        cells = tuple(
            "NULL" if value is None else write(value) for write, value in zip(self._writers, row, strict=True)
        )
        if str(row.get_row_kind()) in _TAKEN_AWAY:
            if cells in self._rows:
                self._rows.remove(cells)
        else:
            self._rows.append(cells)
        self._changes += 1
        if self._clock() - self._drawn_at >= _REDRAW_SECONDS:
            self.draw()

    def draw(self) -> None:
        """Draw the last rows over the previous ones."""
        self._drawn_at = self._clock()
        lines = self.lines()
        if self._drawn_lines:
            self._out.write(f"\x1b[{self._drawn_lines}F\x1b[J")
        self._out.write("\n".join(lines) + "\n")
        self._out.flush()
        self._drawn_lines = len(lines)

    def lines(self) -> list[str]:
        """Return the table as text."""
        shown = self._rows[-_ROWS_SHOWN:]
        widths = [max(len(name), *(len(row[place]) for row in shown), 0) for place, name in enumerate(self._names)]
        border = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
        body = [border, _line(self._names, widths), border, *(_line(row, widths) for row in shown), border]
        hidden = len(self._rows) - len(shown)
        more = f", the last {len(shown)} are shown" if hidden else ""
        return [*body, f"{_counted(len(self._rows), 'row')} after {_counted(self._changes, 'change')}{more}"]


def _line(cells: Iterable[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)) + " |"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def write_live(result: TableResult, out: TextIO) -> None:
    """Show the rows while they change. Ctrl-C ends the query and keeps the last rows on screen."""
    schema = result.get_resolved_schema()
    table = LiveTable(schema.get_column_names(), schema.get_column_data_types(), out)
    try:
        with result.collect() as rows:
            for row in rows:
                table.apply(row)
    except KeyboardInterrupt:
        out.write("\nThe query was cancelled.\n")
    table.draw()


def write_result(
    result: TableResult, output: str, *, streaming: bool, time_zone: str, out: TextIO | None = None
) -> None:
    """Write a result in the chosen format."""
    target: Any = sys.stdout if out is None else out
    if output == "csv":
        write_csv(result, target, with_kinds=streaming)
    elif output == "json":
        write_json(result, target, with_kinds=streaming)
    elif result.is_text:
        with result.collect() as rows:
            target.writelines(f"{text}\n" for (text,) in rows)
    elif output == "live":
        write_live(result, target)
    else:
        with result.collect() as rows:
            print_rows(rows, result.get_resolved_schema(), with_kinds=streaming, time_zone=time_zone)
