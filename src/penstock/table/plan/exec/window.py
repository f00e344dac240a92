"""Translates window table functions and window aggregates."""

from __future__ import annotations

from penstock.graph.transformation import Transformation
from penstock.runtime.table.operators.window_agg import WindowAggOperator
from penstock.runtime.table.operators.window_table_function import (
    SessionWindowOperator,
    WindowClock,
    WindowTableFunctionOperator,
)
from penstock.runtime.table.window_assigners import (
    CumulatingWindows,
    HoppingWindows,
    TumblingWindows,
    WindowAssigner,
)
from penstock.table.plan.exec.aggregate import aggregate_call
from penstock.table.plan.exec.local_window import MergedInput, two_phases
from penstock.table.plan.exec.registry import translates
from penstock.table.plan.nodes.aggregate import WindowAggregateRel, WindowSpec, WindowTableFunctionRel
from penstock.table.plan.nodes.base import TimeAttribute
from penstock.table.plan.nodes.relational import ProjectRel
from penstock.table.plan.planner import Planner
from penstock.table.plan.windows import window_columns


@translates(WindowTableFunctionRel)
def translate_window(planner: Planner, rel: WindowTableFunctionRel, update_before: bool) -> Transformation:
    """Translate to an operator that adds windows to rows. Sessions are known only when they end."""
    (source,) = planner.inputs(rel, update_before)
    window = rel.window
    clock = _clock(planner, rel)
    if window.kind != "SESSION":
        operator = WindowTableFunctionOperator(_assigner(window), clock, rel.schema())
        return planner.one_input(source, operator, "WindowTableFunction", rel.describe())
    exchanged, parallelism = planner.exchange(source, window.partition)
    sessions = SessionWindowOperator(list(window.partition), window.size, clock, rel.schema())
    return planner.one_input(exchanged, sessions, "WindowTableFunction", rel.describe(), parallelism=parallelism)


def _clock(planner: Planner, rel: WindowTableFunctionRel) -> WindowClock:
    columns = window_columns(rel)
    assert columns is not None
    return WindowClock(
        rel.window.time_column,
        planner.settings.time_zone,
        local=columns.local,
        processing_time=rel.input.fields[rel.window.time_column].time is TimeAttribute.PROCTIME,
    )


def _assigner(window: WindowSpec) -> WindowAssigner:
    match window.kind:
        case "HOP":
            return HoppingWindows(window.size, window.slide, window.offset)
        case "CUMULATE":
            return CumulatingWindows(window.size, window.slide, window.offset)
    return TumblingWindows(window.size, window.offset)


@translates(WindowAggregateRel)
def translate_window_aggregate(planner: Planner, rel: WindowAggregateRel, update_before: bool) -> Transformation:
    """Translate a window aggregate, in two phases if rows are in several windows."""
    columns = window_columns(rel.input)
    assert columns is not None
    merged = _merged_input(planner, rel)
    if merged is None:
        (source,) = planner.inputs(rel, update_before)
        retracts = not planner.changelog(rel.input).insert_only
        keys, calls = list(rel.keys), [aggregate_call(spec, rel.input, retracts=retracts) for spec in rel.calls]
    else:
        source, keys, calls = merged.source, merged.keys, merged.calls
    exchanged, parallelism = planner.exchange(source, keys)
    operator = WindowAggOperator(
        keys,
        calls,
        rel.schema(),
        window_end=next(place for place, key in enumerate(rel.keys) if key in columns.ends),
        zone=None if columns.local else planner.settings.time_zone,
        processing_time=columns.processing_time,
    )
    return planner.one_input(exchanged, operator, "WindowAggregate", rel.describe(), parallelism=parallelism)


def _merged_input(planner: Planner, rel: WindowAggregateRel) -> MergedInput | None:
    if not isinstance(rel.input, ProjectRel) or not isinstance(rel.input.input, WindowTableFunctionRel):
        return None
    windows = rel.input.input
    if windows.window.kind == "SESSION":
        return None
    return two_phases(planner, rel, _assigner(windows.window), _clock(planner, windows))
