"""Run SQL queries in PyFlink or in Penstock, and write what their changelogs add up to.

    python sql_results.py PACKAGE INPUT.json OUTPUT.json

The input has the directory of the tables, their columns, and the queries. A query that fails has a text instead of
rows.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any


def results(t_env: Any, job: dict[str, Any]) -> list[Any]:
    """The sorted rows of each query, as texts."""
    for name, columns in job["tables"].items():
        t_env.execute_sql(
            f"CREATE TEMPORARY TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'format' = 'csv', "
            f"'path' = 'file://{job['directory']}/{name}.csv', 'csv.null-literal' = 'n/a')"
        )
    return [answer(t_env, query) for query in job["queries"]]


def answer(t_env: Any, query: str) -> Any:
    """What one query adds up to, or why it failed."""
    found: Counter[str] = Counter()
    try:
        with t_env.execute_sql(query).collect() as rows:
            for row in rows:
                found[str([shown(part) for part in row])] += 1 if str(row.get_row_kind()) in {"+I", "+U"} else -1
    except Exception as error:  # both may refuse a query, each with a class of its own
        return f"{type(error).__name__}: {str(error)[:300]}"
    return sorted((+found).elements()) if min(found.values(), default=0) >= 0 else f"negative: {found}"


def shown(part: Any) -> str:
    """A value as a text that does not depend on its class."""
    if part is None:
        return "NULL"
    if isinstance(part, float):
        return f"{part:.9g}"
    return str(part.normalize()) if isinstance(part, Decimal) and part == 0 else str(part)


def environment(package: str) -> Any:
    """A streaming environment with parallelism 1."""
    table = importlib.import_module(f"{package}.table")
    t_env = table.TableEnvironment.create(table.EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("parallelism.default", "1")
    t_env.get_config().set("table.local-time-zone", "UTC")
    return t_env


if __name__ == "__main__":
    Path(sys.argv[3]).write_text(
        json.dumps(results(environment(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()))), encoding="utf-8"
    )
