"""What runs of chaos have hit: kept while tests run, and in a file if ``PENSTOCK_CHAOS_LOG`` names one.

With a file, runs that passed are not made again: a series of runs can be interrupted and continued.

python chaos_log.py FILE prints a summary.
"""

import json
import os
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from chaos_phases import Hit


class ChaosLog:
    """Runs and their hits."""

    def __init__(self, path: str | None) -> None:
        self._path = None if not path else Path(path)
        self.runs: list[dict] = []
        if self._path is not None and self._path.exists():
            self.runs = [json.loads(line) for line in self._path.read_text(encoding="utf-8").splitlines()]

    def passed(self, kind: str) -> set[int]:
        """The seeds that need not be run again."""
        return {run["seed"] for run in self.runs if run["kind"] == kind and run["passed"]}

    def add(self, kind: str, seed: int, hits: list[Hit], *, passed: bool, seconds: float) -> None:
        """A run is over."""
        run = {
            "kind": kind,
            "seed": seed,
            "passed": passed,
            "seconds": round(seconds, 1),
            "hits": [{**asdict(hit), "sure": hit.sure} for hit in hits],
        }
        self.runs.append(run)
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(run) + "\n")

    def hits(self, *kinds: str) -> list[dict]:
        """All hits of runs of these kinds."""
        return [hit for run in self.runs if run["kind"] in kinds for hit in run["hits"]]


def summary(runs: list[dict]) -> str:
    """Runs by kind, and kills by what they hit."""
    lines = []
    for kind in sorted({run["kind"] for run in runs}):
        of_kind = {run["seed"]: run for run in runs if run["kind"] == kind}  # the last one of each seed
        failed = sorted(seed for seed, run in of_kind.items() if not run["passed"])
        seconds = sorted(run["seconds"] for run in of_kind.values())
        lines.append(f"{kind}: {len(of_kind)} runs, {len(failed)} failed, median {seconds[len(seconds) // 2]} s")
        lines += [f"  failed: {', '.join(map(str, failed))}"] if failed else []
        hits = [hit for run in of_kind.values() for hit in run["hits"]]
        killed, busy = sum(hit["processes"] for hit in hits), sum(hit["tasks"] > 0 for hit in hits)
        restarting, restarts = sum(hit["restarts"] > 0 for hit in hits), sum(hit["restarts"] for hit in hits)
        lines.append(f"  {len(hits)} kills of {killed} processes, {busy} while tasks ran")
        lines.append(f"  {restarting} kills caused restarts, {restarts} in all")
        table = Counter((hit["target"], hit["sure"] or "between two phases") for hit in hits)
        caused = Counter((hit["target"], hit["sure"] or "between two phases") for hit in hits if hit["restarts"])
        for (target, phase), count in sorted(table.items()):
            lines.append(f"    {target:<22} {phase:<22} {count:>4} kills, {caused[target, phase]:>4} caused a restart")
    return "\n".join(lines)


LOG = ChaosLog(os.environ.get("PENSTOCK_CHAOS_LOG"))

if __name__ == "__main__":
    print(summary(ChaosLog(sys.argv[1]).runs))  # noqa: T201
