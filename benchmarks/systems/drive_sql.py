"""Runs Nexmark's SQL queries on Penstock or on Flink, one after the other in one process: a session, as users have it.

python -m benchmarks.systems.drive_sql --package pyflink --queries q0,q1 --short DIRECTORY --long DIRECTORY

Of each query two bounded runs are timed, a short one and a long one; what lies between them is free of the start.
Before that, the first query runs once without being timed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness.cpu import adopt_orphans, machine_cpu_seconds, tree_cpu_seconds
from benchmarks.nexmark.sql import QUERIES, sink, statements

MARK = "SQL-RESULT "
_SETTINGS = {
    "parallelism.default": "2",
    "table.local-time-zone": "UTC",
    "execution.checkpointing.interval": "1 s",  # Penstock commits with every batch
}


class Session:
    """A fresh table environment for every run."""

    def __init__(self, package: str, settings: dict[str, str], scratch: Path) -> None:
        self._package = package
        self._settings = _SETTINGS | settings
        if package == "pyflink":  # by default, checkpoints of more than 5 MB fail, and jobs start again for ever
            checkpoints = (scratch / "checkpoints").as_uri()
            self._settings |= {"execution.checkpointing.dir": checkpoints, "restart-strategy.type": "none"}
        self._scratch = scratch

    def environment(self, events: str) -> Any:
        """With the tables and views of the events."""
        table = importlib.import_module(f"{self._package}.table")
        common = importlib.import_module(f"{self._package}.common")
        datastream = importlib.import_module(f"{self._package}.datastream")
        configuration = common.Configuration()
        for key, value in self._settings.items():
            configuration.set_string(key, value)
        env = datastream.StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(int(self._settings["parallelism.default"]))
        t_env = table.StreamTableEnvironment.create(env)
        for key, value in self._settings.items():
            t_env.get_config().set(key, value)
        for statement in statements(events):
            t_env.execute_sql(statement)
        return t_env

    def run(self, query: str, events: str) -> dict[str, float]:
        """Seconds and CPU seconds of one run."""
        target = self._scratch / "answer"
        shutil.rmtree(target, ignore_errors=True)
        t_env = self.environment(events)
        t_env.execute_sql(sink(query, str(target)))
        cpu, machine, start = tree_cpu_seconds(), machine_cpu_seconds(), time.perf_counter()
        t_env.execute_sql(f"INSERT INTO answer {QUERIES[query].text}").wait()
        seconds = time.perf_counter() - start
        mine = tree_cpu_seconds() - cpu
        return {"seconds": seconds, "cpu": mine, "machine": machine_cpu_seconds() - machine}


def main() -> None:
    """Measure all queries, and print a line of JSON for each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--package", default="penstock")
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--short", required=True, help="events of the short run")
    parser.add_argument("--long", required=True, help="events of the long run")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    adopt_orphans()
    settings = dict(one.split("=", 1) for one in args.set)
    with tempfile.TemporaryDirectory(prefix="bench-sql-") as scratch:
        session = Session(args.package, settings, Path(scratch))
        queries = args.queries.split(",")
        with contextlib.suppress(Exception):  # it is reported below
            session.run(queries[0], args.short)  # starts the processes, and loads and compiles what every query uses
        for query in queries:
            try:
                result: dict[str, Any] = {"short": session.run(query, args.short)}
                result["long"] = session.run(query, args.long)
            except Exception as error:
                result = {"error": f"{type(error).__name__}: {error}"[:2000]}
            print(MARK + json.dumps({"query": query, **result}), flush=True)


if __name__ == "__main__":
    main()
