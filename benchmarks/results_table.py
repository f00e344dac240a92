"""Results: medians, ratios, the table on the screen, the files and the plot."""

from __future__ import annotations

import importlib
import json
import os
import platform
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.jobs.catalogue import JOBS
from benchmarks.systems.catalogue import SYSTEMS


@dataclass(slots=True)
class Cell:
    """All repeats of one job on one system."""

    job: str
    system: str
    repeats: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None

    def values(self, name: str) -> list[float]:
        """One figure of every repeat."""
        return [float(repeat[name]) for repeat in self.repeats]

    def median(self, name: str) -> float:
        """The median over the repeats."""
        return statistics.median(self.values(name))


@dataclass(slots=True)
class Results:
    """What one session measured."""

    cells: list[Cell]
    about: dict[str, Any]

    def ratio(self, cell: Cell) -> str:
        """The cell's rate over the best of PyFlink's variants.

        No ratio unless every variant was measured: the missing one may be the best, and the ratio would flatter.
        """
        pyflink = [name for name, system in SYSTEMS.items() if system.package == "pyflink"]
        rates = {
            other.system: other.median("records_per_second")
            for other in self.cells
            if other.job == cell.job and other.system in pyflink and other.repeats
        }
        missing = [name for name in pyflink if name not in rates]
        if missing:
            return f"no {', '.join(missing)}"
        return f"{cell.median('records_per_second') / max(rates.values()):.2f}"

    def table(self) -> str:
        """Markdown, one table per kind of job."""
        rates = [self._rate_row(cell) for cell in self.cells if not JOBS[cell.job].measures_latency]
        latencies = [self._latency_row(cell) for cell in self.cells if JOBS[cell.job].measures_latency]
        rate_head = ["job", "system", "records/s", "spread", "x PyFlink's best", "CPU s/M records", "neighbours' cores"]
        latency_head = ["job", "system", "p50 ms", "p99 ms", "p50 of each repeat", "machine's cores"]
        return "\n\n".join(
            _markdown(head, rows) for head, rows in ((rate_head, rates), (latency_head, latencies)) if rows
        )

    def _rate_row(self, cell: Cell) -> list[str]:
        first = [f"({cell.job}) {JOBS[cell.job].title}", cell.system]
        if not cell.repeats:
            return [*first, cell.error or "n/a", "", "", "", ""]
        rates = cell.values("records_per_second")
        return [
            *first,
            f"{statistics.median(rates):,.0f}",
            f"{min(rates):,.0f} - {max(rates):,.0f}",
            self.ratio(cell),
            f"{cell.median('cpu_seconds_per_million'):.1f}",
            f"{cell.median('neighbour_cores'):.1f}",
        ]

    def _latency_row(self, cell: Cell) -> list[str]:
        first = [f"({cell.job}) {JOBS[cell.job].title}", cell.system]
        if not cell.repeats:
            return [*first, cell.error or "n/a", "", "", ""]
        return [
            *first,
            f"{cell.median('p50_ms'):,.0f}",
            f"{cell.median('p99_ms'):,.0f}",
            ", ".join(f"{value:,.0f}" for value in cell.values("p50_ms")),
            f"{cell.median('machine_cores'):.1f}",
        ]

    def save(self, directory: Path) -> list[Path]:
        """Write results.json, results.md and, where matplotlib is installed, results.png."""
        directory.mkdir(parents=True, exist_ok=True)
        data, text = directory / "results.json", directory / "results.md"
        data.write_text(json.dumps({"about": self.about, "cells": list(map(asdict, self.cells))}, indent=1) + "\n")
        lines = "\n".join(f"- {name}: {value}" for name, value in self.about.items())
        text.write_text(f"# Benchmark results\n\n{lines}\n\n{self.table()}\n")
        return [data, text, *self._plot(directory / "results.png")]

    def _plot(self, path: Path) -> list[Path]:
        try:
            pyplot = importlib.import_module("matplotlib.pyplot")
        except ImportError:
            return []
        pyplot.switch_backend("agg")
        letters = list(dict.fromkeys(cell.job for cell in self.cells if cell.repeats))
        if not letters:
            return []
        across = min(4, len(letters))
        down = -(-len(letters) // across)
        figure, grid = pyplot.subplots(down, across, figsize=(4 * across, 4 * down), squeeze=False)
        for axes in grid.flat[len(letters) :]:
            axes.set_visible(False)
        for letter, axes in zip(letters, grid.flat, strict=False):
            cells = [cell for cell in self.cells if cell.job == letter and cell.repeats]
            name = "p50_ms" if JOBS[letter].measures_latency else "records_per_second"
            middle = [cell.median(name) for cell in cells]
            spread = [
                [m - min(cell.values(name)) for m, cell in zip(middle, cells, strict=True)],
                [max(cell.values(name)) - m for m, cell in zip(middle, cells, strict=True)],
            ]
            colours = ["tab:blue" if cell.system.startswith("penstock") else "tab:gray" for cell in cells]
            axes.bar([cell.system for cell in cells], middle, yerr=spread, color=colours, capsize=3)
            axes.set_title(f"({letter}) {JOBS[letter].title}", fontsize=9)
            axes.set_ylabel("p50 ms (log)" if name == "p50_ms" else "records/s (log)")
            axes.set_yscale("log")
            axes.tick_params(axis="x", labelrotation=40, labelsize=8)
        figure.tight_layout()
        figure.savefig(path, dpi=120)
        return [path]


def describe_machine() -> dict[str, Any]:
    """What the figures depend on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")
    return {
        "cores": os.cpu_count(),
        "processor": model,
        "python": platform.python_version(),
        "load at start": os.getloadavg()[0],
    }


def _markdown(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    texts = [
        "| " + " | ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    texts.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(texts)
