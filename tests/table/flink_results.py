"""Queries with the results that Flink SQL 2.3 gave, and the same queries in Penstock.

`flink_results.json` has three parts. `tables` are inputs, as lines of CSV or Debezium JSON. `expressions` are values
of a SELECT, grouped by rule. `scripts` are statements that share an environment. Results are texts, such as
``+I(1, 'a', 2.50m)``, that both languages write alike. `record_flink_results.py` in `tests/differential` records them.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import Counter
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path

from penstock.common import Row

PATH = Path(__file__).with_name("flink_results.json")
_DOUBLE, _FLOAT = Context(prec=14, rounding=ROUND_HALF_UP), Context(prec=6, rounding=ROUND_HALF_UP)


def load():
    """All that was recorded."""
    return json.loads(PATH.read_text(encoding="utf-8"))


def create_tables(tables, names, directory):
    """The statements that create some of the tables, over files in a directory."""
    return [_create(name, tables[name], Path(directory)) for name in names]


def _create(name, table, directory):
    extension = "json" if table["format"].endswith("json") else table["format"]
    path = directory / f"{name}.{extension}"
    path.write_text("".join(f"{line}\n" for line in table["lines"]), encoding="utf-8")
    null = ", 'csv.null-literal' = 'NULL'" if extension == "csv" else ""
    return (
        f"CREATE TEMPORARY TABLE {name} ({table['columns']}) WITH ('connector' = 'filesystem', "
        f"'format' = '{table['format']}', 'path' = 'file://{path}'{null})"
    )


def statement_of(block):
    """The query of a block of expressions."""
    columns = ", ".join(f"{expression} AS c{index}" for index, (expression, _) in enumerate(block["values"]))
    return f"SELECT {columns}" + (f" FROM {block['from']}" if block["from"] else "")


def values_of(t_env, statement):
    """The values of the only row of a query."""
    result = t_env.execute_sql(statement)
    types = column_types(result)
    with result.collect() as rows:
        (row,) = list(rows)
    return [text(value, type_) for value, type_ in zip(row, types, strict=True)]


def changes_of(t_env, statement):
    """The changelog of a statement."""
    result = t_env.execute_sql(statement)
    types = column_types(result)
    with result.collect() as rows:
        return [
            f"{row.get_row_kind()}({', '.join(text(value, one) for value, one in zip(row, types, strict=True))})"
            for row in rows
        ]


def column_types(result):
    """The types of a result's columns, without nullability."""
    columns = result.get_resolved_schema().get_columns()
    return [str(column.get_data_type()).removesuffix(" NOT NULL") for column in columns]


def final(changes):
    """What a changelog adds up to."""
    rows = Counter()
    for change in changes:
        rows[change[2:]] += 1 if change[:2] in ("+I", "+U") else -1
    return {row: count for row, count in rows.items() if count}


def text(value, type_=""):  # noqa: C901 - a case for each type
    """A value as the recorder writes it."""
    if type_.startswith(("INTERVAL MONTH", "INTERVAL YEAR")) and value is not None:
        return f"{value} months"
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return str(value)
        case float():
            return _number(value, _FLOAT if type_.startswith("FLOAT") else _DOUBLE)
        case str():
            return f"'{value}'"
        case Decimal():
            return f"{value:f}m"
        case bytes() | bytearray():
            return f"x'{value.hex()}'"
        case dt.datetime():
            utc = value if value.tzinfo is None else value.astimezone(dt.UTC)
            return f"{utc.date()}T{_clock(utc.time())}" + ("" if value.tzinfo is None else "Z")
        case dt.date():
            return value.isoformat()
        case dt.time():
            return _clock(value)
        case dt.timedelta():
            return f"{value // dt.timedelta(milliseconds=1)} ms"
        case list():
            return f"[{', '.join(text(one, type_.removeprefix('ARRAY<')) for one in value)}]"
        case dict():
            entries = sorted((text(key), text(one)) for key, one in value.items())
            return f"{{{', '.join(f'{key}: {one}' for key, one in entries)}}}"
        case tuple() | Row():
            return f"({', '.join(text(one) for one in value)})"
    raise TypeError(f"a {type(value).__name__} cannot be a value of a table")


def _number(value, context):
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    return f"{context.create_decimal(Decimal(value)).normalize() if value else 0}d"


def _clock(value):
    text_ = value.strftime("%H:%M:%S.%f")
    return text_.rstrip("0").rstrip(".") if value.microsecond else text_[:8]
