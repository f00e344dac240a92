"""Nexmark in SQL on several systems: `python benchmarks/nexmark_sql.py --systems penstock,flink --queries q0,q5`.

The events lie in Parquet files, one for each subtask; results go to `blackhole`, those of q10 to files. Figures are
records per CPU second of the whole process tree, from the difference between a long and a short run: on a machine that
others use as well, CPU seconds say more than seconds. `tests/benchmarks` compares the results with DuckDB.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a script, from anywhere

from benchmarks.harness.cpu import processes_of_session
from benchmarks.nexmark.event_files import write
from benchmarks.nexmark.sql import QUERIES
from benchmarks.results_table import describe_machine
from benchmarks.systems.catalogue import System
from benchmarks.systems.drive_sql import MARK
from benchmarks.systems.environment import CACHE, HOME, PYFLINK, ROOT
from benchmarks.systems.jars import PARQUET_JARS, ensure_maven, provide

SYSTEMS = {
    "penstock": System("penstock", "penstock", "default", ()),
    "penstock-continuous": System("penstock-continuous", "penstock", "continuous", ()),
    "flink": System("flink", "pyflink", "default", (), environment=PYFLINK),
}


def main() -> int:
    """Measure, print, save."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the process being measured is ended, too
    parser = argparse.ArgumentParser()
    parser.add_argument("--systems", default="penstock,flink")
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--short", type=int, default=500_000)
    parser.add_argument("--long", type=int, default=2_000_000)
    parser.add_argument("--out", default=str(CACHE / "results" / "nexmark-sql.json"))
    args = parser.parse_args()
    events = HOME / "nexmark-sql"
    short, long = (write(events, events / "blocks", records, files=2) for records in (args.short, args.long))
    out = Path(args.out)
    found: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {"about": {}, "queries": {}}
    found["about"] |= describe_machine()
    results = found["queries"]
    for name in args.systems.split(","):
        measured = _measure(SYSTEMS[name], args, str(short), str(long))
        for query, result in measured.items():
            result["at"] = datetime.now(UTC).isoformat(timespec="seconds")
            result["records"] = [args.short, args.long]
            if "error" not in result:
                result["records_per_cpu_second"] = (args.long - args.short) / (
                    result["long"]["cpu"] - result["short"]["cpu"]
                )
            results.setdefault(query, {})[name] = result
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(found, indent=1) + "\n")
    print(_table(results))
    return 0


def _measure(system: System, args: argparse.Namespace, short: str, long: str) -> dict[str, dict[str, Any]]:
    system.prepare()
    command = [
        *(system.environment.python if system.environment else sys.executable, "-m", "benchmarks.systems.drive_sql"),
        *("--package", system.package, "--queries", args.queries, "--short", short, "--long", long),
    ]
    variables = system.process_environment()
    if system.package == "pyflink":
        ensure_maven()
        provide({"n"})
        command += ["--set", f"pipeline.jars={os.environ[PARQUET_JARS]}"]
    if system.variant == "continuous":
        command += ["--set", "penstock.execution.mode=continuous"]
    measured: dict[str, dict[str, Any]] = {}
    process = subprocess.Popen(
        command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(MARK):
                result = json.loads(line.removeprefix(MARK))
                measured[result.pop("query")] = result
                print(system.name, line.strip()[:300], flush=True)
        process.wait(60)
    finally:
        for pid in processes_of_session(process.pid):
            os.kill(pid, signal.SIGKILL)
    return measured


def _table(results: dict[str, Any]) -> str:
    *ours, flink = SYSTEMS
    lines = [f"| query | {' | '.join((*ours, flink, *(f'{name} / {flink}' for name in ours)))} |"]
    lines.append("|---" * (2 * len(SYSTEMS)) + "|")
    for query in QUERIES:
        rates = {name: results.get(query, {}).get(name, {}).get("records_per_cpu_second") for name in SYSTEMS}
        shown = ["" if rate is None else f"{rate:,.0f}" for rate in rates.values()]
        shown += [f"{rates[name] / rates[flink]:.2f}" if rates[name] and rates[flink] else "" for name in ours]
        lines.append(f"| {query} | {' | '.join(shown)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
