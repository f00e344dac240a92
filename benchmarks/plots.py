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
    "spark-calls": "#4a4a4a",
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
    columns = _columns({title: _height(group) for title, group in groups.items()})
    tallest = max(sum(column.values()) for column in columns)
    figure = pyplot.figure(figsize=(9.5 * len(columns), tallest))
    for place, column in enumerate(columns):
        top = 1.0
        for title, height in column.items():
            share = height / tallest
            left, bottom = (place + 0.11) / len(columns), top - share + 0.55 / tallest
            axes = figure.add_axes((left, bottom, 0.87 / len(columns), share - 0.9 / tallest))
            _panel(axes, title, groups[title])
            top -= share
    figure.savefig(path, dpi=100)
    pyplot.close(figure)
    return [path]


def _height(bars: list[Bar]) -> float:
    """Inches."""
    return 1.1 + 0.19 * (len(bars) + len({bar.job for bar in bars}))


def _columns(heights: dict[str, float]) -> list[dict[str, float]]:
    """The panels in two columns of about the same height; few need but one."""
    left: set[str] = set()
    right: set[str] = set()
    for title in sorted(heights, key=lambda title: -heights[title]):
        shorter = min(left, right, key=lambda column: sum(heights[title] for title in column))
        shorter.add(title)
    columns = [{title: height for title, height in heights.items() if title in column} for column in (left, right)]
    columns.sort(key=lambda column: next(iter(heights)) not in column)  # what comes first stands on the left
    return [column for column in columns if column]


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
    axes.set_xlim(lowest / 3, highest * 2 * (6 * highest / lowest) ** 0.35)  # room for the labels
    latency = bars[0].latency
    axes.set_xlabel("milliseconds, p50 (bar) to p99 (line); less is better" if latency else "records per second")
    axes.set_title(title, loc="left", fontsize=11)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)


def _times(ratio: float) -> str:
    """
    >>> _times(170.4), _times(1.75), _times(0.0531)
    ('170x', '1.8x', '0.053x')
    """
    return f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.2g}x"


def _label(bar: Bar) -> str:
    if bar.latency:
        return f"{bar.value:,.0f} / {bar.highest:,.0f} ms"
    ratio = "" if bar.ratio is None else f"  ({_times(bar.ratio)} PyFlink's best)"
    return f"{bar.value:,.0f}{ratio}"
