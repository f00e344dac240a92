"""Results: what was measured, medians, ratios, the tables and the files."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import plots
from benchmarks.jobs.catalogue import JOBS
from benchmarks.systems.catalogue import SYSTEMS

_PYFLINK = tuple(name for name, system in SYSTEMS.items() if system.package == "pyflink")
_OTHERS = ("spark", "bytewax", "pathway", "quix")  # by package


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

    @property
    def figure(self) -> float:
        """Records per second, or p50 in milliseconds."""
        return self.median("p50_ms" if JOBS[self.job].measures_latency else "records_per_second")


@dataclass(slots=True)
class Results:
    """What was measured, in one session or in several that were resumed."""

    cells: list[Cell]
    about: dict[str, Any]

    @staticmethod
    def load(directory: Path) -> Results:
        """What an earlier session left in a directory; nothing if there was none."""
        file = directory / "results.json"
        return Results.read(file) if file.exists() else Results([], {})

    @staticmethod
    def read(file: Path) -> Results:
        """What is in a results file, as far as the jobs and systems still exist."""
        data = json.loads(file.read_text())
        cells = [Cell(**cell) for cell in data["cells"] if cell["job"] in JOBS and cell["system"] in SYSTEMS]
        return Results(cells, data["about"])

    def cell(self, job: str, system: str) -> Cell:
        """The cell of a job and a system, made if there is none."""
        for cell in self.cells:
            if (cell.job, cell.system) == (job, system):
                return cell
        cell = Cell(job, system)
        self.cells.append(cell)
        jobs, systems = list(JOBS), list(SYSTEMS)
        self.cells.sort(key=lambda each: (jobs.index(each.job), systems.index(each.system)))
        return cell

    def measured(self, job: str) -> dict[str, Cell]:
        """The cells of a job that have a figure, by system."""
        return {cell.system: cell for cell in self.cells if cell.job == job and cell.repeats}

    def best_pyflink(self, job: str) -> Cell | str:
        """The fastest of PyFlink's variants, or why there is none.

        None unless every variant was tried: the missing one may be the best, and a ratio would flatter.
        """
        tried = {cell.system for cell in self.cells if cell.job == job and (cell.repeats or cell.error)}
        missing = [name for name in _PYFLINK if name not in tried]
        if missing:
            return f"no {', '.join(missing)}"
        figures = [cell for name, cell in self.measured(job).items() if name in _PYFLINK]
        if not figures:
            return "no figure of PyFlink"
        best = min if JOBS[job].measures_latency else max
        return best(figures, key=lambda cell: cell.figure)

    def ratio(self, cell: Cell) -> str:
        """The cell's rate over the best of PyFlink's variants."""
        if all(cell.job not in SYSTEMS[name].jobs for name in _PYFLINK):
            return ""
        best = self.best_pyflink(cell.job)
        return best if isinstance(best, str) else times(cell.figure / best.figure)

    # -- tables -------------------------------------------------------------------------------------------------------

    def summary(self) -> str:
        """Markdown: a line for every job, Penstock beside the best variant of each other system."""
        head = ["job", "Penstock", "PyFlink's best", "ratio", "plain Spark", "Bytewax", "Pathway", "Quix Streams"]
        rates = [job for job in self._jobs() if not JOBS[job].measures_latency]
        latencies = [job for job in self._jobs() if JOBS[job].measures_latency]
        parts = []
        if rates:
            parts.append("Records per second:\n\n" + _markdown(head, map(self._summary_row, rates)))
        if latencies:
            head[3] = "p50's ratio"
            parts.append("Latency, p50 / p99 in milliseconds:\n\n" + _markdown(head, map(self._summary_row, latencies)))
        return "\n\n".join(parts)

    def short(self, jobs: Iterable[str]) -> str:
        """Markdown: some throughputs beside PyFlink's."""
        rows = [self._summary_row(job)[:4] for job in jobs if job in self._jobs()]
        return _markdown(["records per second", "Penstock", "PyFlink's best", "ratio"], rows)

    def _jobs(self) -> list[str]:
        return list(dict.fromkeys(cell.job for cell in self.cells if cell.repeats or cell.error))

    def _summary_row(self, job: str) -> list[str]:
        measured = self.measured(job)
        pyflink = self.best_pyflink(job)
        can = any(job in SYSTEMS[name].jobs for name in _PYFLINK)
        row = [f"({job}) {JOBS[job].title}", self._figure(job, "penstock")]
        if isinstance(pyflink, str):
            row += [pyflink if can else "-", ""]
        else:
            ratio = times(measured["penstock"].figure / pyflink.figure) if "penstock" in measured else ""
            row += [f"{_text(pyflink)} ({_variant(pyflink.system)})", ratio]
        for package in _OTHERS:
            if package == "spark" and "spark-calls" in measured:
                row.append(self._spark(measured))
                continue
            systems = [name for name, system in SYSTEMS.items() if system.package == package]
            found = [measured[name] for name in systems if name in measured]
            best = min if JOBS[job].measures_latency else max
            row.append(
                _text(best(found, key=lambda cell: cell.figure)) if found else self._figure(job, *systems),
            )
        return row

    def _spark(self, measured: dict[str, Cell]) -> str:
        """The program as it is written for Flink, and the faster one that spares Spark most calls to its state."""
        rewritten = [cell for name, cell in measured.items() if name in {"spark", "spark-20k"}]
        best = max(rewritten, key=lambda cell: cell.figure, default=None)
        same = _text(measured["spark-calls"])
        return same if best is None else f"{same}; rewritten {_text(best)}"

    def _figure(self, job: str, *systems: str) -> str:
        """A figure, or what is known instead."""
        if all(job not in SYSTEMS[name].jobs for name in systems):
            return "-"
        for cell in self.cells:
            if cell.job == job and cell.system in systems and (cell.repeats or cell.error):
                return _text(cell)
        return ""

    def table(self) -> str:
        """Markdown: a line for every cell, one table per kind of job."""
        rates = [self._rate_row(cell) for cell in self.cells if not JOBS[cell.job].measures_latency]
        latencies = [self._latency_row(cell) for cell in self.cells if JOBS[cell.job].measures_latency]
        rate_head = [
            *("job", "system", "records/s", "spread", "x PyFlink's best", "CPU s/M records"),
            *("neighbours' cores", "machine's speed"),
        ]
        latency_head = ["job", "system", "p50 ms", "p99 ms", "p50 of each repeat", "machine's cores", "machine's speed"]
        return "\n\n".join(
            _markdown(head, rows) for head, rows in ((rate_head, rates), (latency_head, latencies)) if rows
        )

    def _rate_row(self, cell: Cell) -> list[str]:
        first = [f"({cell.job}) {JOBS[cell.job].title}", cell.system]
        if not cell.repeats:
            return [*first, cell.error or "n/a", "", "", "", "", ""]
        rates = cell.values("records_per_second")
        return [
            *first,
            f"{statistics.median(rates):,.0f}",
            f"{min(rates):,.0f} - {max(rates):,.0f}" if len(rates) > 1 else "",
            self.ratio(cell),
            f"{cell.median('cpu_seconds_per_million'):.1f}",
            f"{cell.median('neighbour_cores'):.1f}",
            _speed(cell),
        ]

    def _latency_row(self, cell: Cell) -> list[str]:
        first = [f"({cell.job}) {JOBS[cell.job].title}", cell.system]
        if not cell.repeats:
            return [*first, cell.error or "n/a", "", "", "", ""]
        return [
            *first,
            _milliseconds(cell.median("p50_ms")),
            _milliseconds(cell.median("p99_ms")),
            ", ".join(map(_milliseconds, cell.values("p50_ms"))),
            f"{cell.median('machine_cores'):.1f}",
            _speed(cell),
        ]

    # -- files --------------------------------------------------------------------------------------------------------

    def save(self, directory: Path, *, plot: bool = True) -> list[Path]:
        """Write results.json, results.md and, where matplotlib is installed, results.png."""
        directory.mkdir(parents=True, exist_ok=True)
        data, text = directory / "results.json", directory / "results.md"
        written = data.with_suffix(".tmp")
        written.write_text(json.dumps({"about": self.about, "cells": list(map(asdict, self.cells))}, indent=1) + "\n")
        written.replace(data)
        lines = "\n".join(f"- {name}: {value}" for name, value in self.about.items())
        text.write_text(
            f"# Benchmark results\n\n{lines}\n\n{self.summary()}\n\n## Every measurement\n\n{self.table()}\n"
        )
        return [data, text, *(plots.draw(self._bars(), directory / "results.png") if plot else ())]

    def _bars(self) -> Iterator[plots.Bar]:
        for cell in self.cells:
            if cell.repeats:
                job, latency = JOBS[cell.job], JOBS[cell.job].measures_latency
                values = cell.values("p50_ms" if latency else "records_per_second")
                best = self.best_pyflink(cell.job)
                yield plots.Bar(
                    job=f"({cell.job}) {job.title}",
                    group=job.group,
                    system=cell.system,
                    value=statistics.median(values),
                    lowest=min(values),
                    highest=cell.median("p99_ms") if latency else max(values),
                    ratio=None if isinstance(best, str) else cell.figure / best.figure,
                    latency=latency,
                )


def describe_machine() -> dict[str, Any]:
    """What the figures depend on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")
    return {
        "cores": os.cpu_count(),
        "processor": model,
        "python": platform.python_version(),
    }


def _text(cell: Cell) -> str:
    if not cell.repeats:
        return cell.error or ""
    if JOBS[cell.job].measures_latency:
        return f"{_milliseconds(cell.median('p50_ms'))} / {_milliseconds(cell.median('p99_ms'))}"
    return f"{cell.figure:,.0f}"


def _milliseconds(value: float) -> str:
    """Whole milliseconds, with one decimal where a tenth says something.

    >>> _milliseconds(1.26), _milliseconds(68.4)
    ('1.3', '68')
    """
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def times(ratio: float) -> str:
    """A ratio with three digits that mean something.

    >>> times(2318.4), times(21.66), times(0.0344)
    ('2,318', '21.7', '0.0344')
    """
    return f"{ratio:,.0f}" if ratio >= 1_000 else f"{ratio:.3g}"


def _variant(system: str) -> str:
    return system.partition("-")[2] or "default"


def _speed(cell: Cell) -> str:
    """Of a plain Python loop before each repeat, in million additions a second."""
    speeds = [repeat["loop_speed"] for repeat in cell.repeats if "loop_speed" in repeat]
    return f"{statistics.median(speeds):.1f}" if speeds else ""


def _markdown(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    texts = [
        "| " + " | ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    texts.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(texts)
