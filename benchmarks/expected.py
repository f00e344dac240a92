"""Guesses of each system's rate, so that a measurement begins with runs of the right length.

A guess decides how many records the first run has and nothing else; what was measured last on this machine, kept in
a file beside the environments, goes before the table here. A bad guess costs time: the runs are repeated with more or
fewer records until their length is right (`harness/slope.py`).
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.systems.environment import HOME

_LAST_SEEN = HOME / "rates.json"

# Records per second on two cores. The second entry of a system is for jobs that are not named.
_TABLE: dict[str, tuple[dict[str, float], float]] = {
    "penstock": ({"a": 5e6, "b": 6e5, "c": 2e5, "d": 3e5, "e": 3e5, "f": 3e5, "g": 3e5, "k": 1e5, "n": 1e5}, 1e5),
    "pyflink": ({"a": 6e4, "b": 5e3, "c": 5e3, "e": 100, "q0": 2e4, "q1": 2e4, "q2": 2e4}, 3e3),
    "pyflink-process": ({"a": 1e5, "b": 3e4, "c": 2e4, "e": 300, "q0": 3e4, "q1": 3e4, "q2": 3e4}, 6e3),
    "pyflink-thread": ({"a": 1.2e5, "b": 1e4, "c": 1e4, "e": 300, "q0": 4e4, "q1": 4e4, "q2": 4e4}, 5e3),
    "spark-calls": ({"c": 1e3}, 1e4),
    "spark": ({"c": 5e3}, 2.5e4),
    "spark-20k": ({"c": 2e3}, 5e3),
    "flink-java": ({}, 1e5),
    "bytewax": ({"a": 1e6, "b": 2e5, "c": 2e5, "e": 5e3}, 4e4),
    "pathway": ({"a": 1e5}, 5e4),
    "quix": ({"a": 3e4, "e": 200}, 1e4),
}


def expected_rate(system: str, job: str, last_seen: Path = _LAST_SEEN) -> float:
    """Records per second to begin with."""
    seen = _read(last_seen).get(system, {}).get(job)
    if seen:
        return seen
    by_job, otherwise = _TABLE["penstock" if system == "penstock-continuous" else system]
    return by_job.get(job, otherwise)


def remember_rate(system: str, job: str, rate: float, last_seen: Path = _LAST_SEEN) -> None:
    """Begin the next measurement with this rate."""
    rates = _read(last_seen)
    rates.setdefault(system, {})[job] = round(rate)
    last_seen.parent.mkdir(parents=True, exist_ok=True)
    last_seen.write_text(json.dumps(rates, indent=1, sort_keys=True) + "\n")


def _read(path: Path) -> dict[str, dict[str, float]]:
    return json.loads(path.read_text()) if path.exists() else {}
