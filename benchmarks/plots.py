"""The picture of the results: a panel for every group of jobs, a bar for every system, logarithmic."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_COLOURS = {
    "penstock": "#1f77b4",
    "pyflink": "#f2b134",
    "pyflink-process": "#e07b39",
    "pyflink-thread": "#a8442a",
    "spark": "#7f7f7f",
    "spark-20k": "#b5b5b5",
    "bytewax": "#4d9221",
    "pathway": "#8e5ea2",
    "quix": "#17becf",
}
_BAR = 0.8


@dataclass(slots=True, frozen=True)
class Bar:
    """One cell of the table."""

    job: str
    group: str
    system: str
    value: float
    lowest: float
    highest: float
    ratio: float | None  # of PyFlink's best
    latency: bool


def draw(bars: Iterable[Bar], path: Path) -> list[Path]:
    """Draw all; nothing where matplotlib is not installed."""
    try:
        pyplot: Any = importlib.import_module("matplotlib.pyplot")
    except ImportError:
        return []
    groups: dict[str, list[Bar]] = {}
    for bar in bars:
        groups.setdefault(bar.group, []).append(bar)
    if not groups:
        return []
    pyplot.switch_backend("agg")
    heights = [max(2.2, 0.9 + 0.24 * len(group) + 0.25 * len({bar.job for bar in group})) for group in groups.values()]
    figure, grid = pyplot.subplots(
        len(groups), 1, figsize=(11, sum(heights)), squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    for (title, group), axes in zip(groups.items(), grid.flat, strict=True):
        _panel(axes, title, group)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return [path]


def _panel(axes: Any, title: str, bars: list[Bar]) -> None:
    """Jobs from top to bottom, and in each its systems."""
    place, ticks, labels, previous = 0.0, [], [], ""
    for bar in bars:
        if bar.job != previous:
            place -= 0.25 if not previous else 1.1
            axes.text(
                0.0, place, bar.job, transform=axes.get_yaxis_transform(), fontsize=9, fontweight="bold", va="center"
            )
            previous = bar.job
        place -= 1
        axes.barh(place, bar.value, height=_BAR, color=_COLOURS[bar.system])
        if bar.highest > bar.lowest:
            axes.plot([bar.lowest, bar.highest], [place, place], color="black", linewidth=1)
        axes.annotate(
            _label(bar), (bar.highest, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8
        )
        ticks.append(place)
        labels.append(bar.system)
    axes.set_yticks(ticks, labels, fontsize=8)
    axes.set_ylim(place - 0.7, 0.6)
    axes.set_xscale("log")
    lowest, highest = min(bar.lowest for bar in bars), max(bar.highest for bar in bars)
    axes.set_xlim(lowest / 3, highest * 8)
    latency = bars[0].latency
    axes.set_xlabel("milliseconds, p50 (bar) to p99 (line); less is better" if latency else "records per second")
    axes.set_title(title, loc="left", fontsize=11)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)


def _label(bar: Bar) -> str:
    if bar.latency:
        return f"{bar.value:,.0f} / {bar.highest:,.0f} ms"
    ratio = "" if bar.ratio is None else f"  ({bar.ratio:.2g}x PyFlink's best)"
    return f"{bar.value:,.0f}{ratio}"
