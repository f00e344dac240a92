"""Two-phase window aggregates: which ones can be split, and how (see LocalWindowAggOperator).

This module imports the operators of both phases and their nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.core.table.arrow import arrow_type
from penstock.core.table.type_rules import is_timestamp
from penstock.core.table.types import DoubleType, FloatType
from penstock.graph.transformation import Transformation
from penstock.runtime.table.aggregates.base import Aggregate
from penstock.runtime.table.aggregates.numeric import ExtremeAggregate, Sum0Aggregate, SumAggregate
from penstock.runtime.table.expressions import Expr, InputRef, input_columns
from penstock.runtime.table.operators.calc import Calc
from penstock.runtime.table.operators.group_agg import AggregateCall
from penstock.runtime.table.operators.local_window_agg import LocalWindowAggOperator
from penstock.runtime.table.operators.window_table_function import WindowClock, WindowTableFunctionOperator
from penstock.runtime.table.window_assigners import WindowAssigner
from penstock.table.plan.exec.aggregate import aggregate_call
from penstock.table.plan.nodes.aggregate import AggregateSpec, WindowAggregateRel, WindowTableFunctionRel
from penstock.table.plan.nodes.base import Field, TimeAttribute, schema_of
from penstock.table.plan.nodes.relational import ProjectRel
from penstock.table.plan.planner import Planner

_MERGED = ("COUNT", "SUM", "$SUM0", "MIN", "MAX")


@dataclass(frozen=True, slots=True)
class MergedInput:
    """The input of the second phase: rows with windows, the positions of its keys, and the merging aggregates."""

    source: Transformation
    keys: list[int]
    calls: list[AggregateCall]


def two_phases(
    planner: Planner, rel: WindowAggregateRel, assigner: WindowAssigner, clock: WindowClock
) -> MergedInput | None:
    """Return the first phase and the windows after it, or None if the aggregate is not split."""
    project = rel.input
    if not isinstance(project, ProjectRel) or not isinstance(project.input, WindowTableFunctionRel):
        return None
    windows = project.input
    source_rel = windows.input
    width = len(source_rel.fields)
    time_field = source_rel.fields[windows.window.time_column]
    parts = [_window_part(expr, width) for expr in project.expressions]
    if not clock.local and clock.zone != "UTC":
        return None  # the end of a slice may be a time that daylight saving skips
    if not _splits(planner, rel, project, windows, parts):
        return None
    plain_keys = [key for key in rel.keys if parts[key] is None]
    read = sorted({index for call in rel.calls for index in _reads(call)})
    expressions = [project.expressions[index] for index in (*plain_keys, *read)]
    place = {index: len(plain_keys) + position for position, index in enumerate(read)}
    expressions.append(InputRef(time_field.type, windows.window.time_column))
    calc_fields = [Field(f"$c{index}", expr.type) for index, expr in enumerate(expressions)]
    (source,) = planner.inputs(windows, update_before=False)
    calc = planner.one_input(source, Calc(None, expressions, schema_of(calc_fields), planner.context()), "Calc")
    local_calls = []
    for spec in rel.calls:
        made = aggregate_call(spec, project, retracts=False)
        where = [place[index] for index in spec.arguments]
        local_calls.append(AggregateCall(made.aggregate, where, None if spec.filter is None else place[spec.filter]))
    local_fields = [
        *calc_fields[: len(plain_keys)],
        *(Field(f"$p{index}", spec.type) for index, spec in enumerate(rel.calls)),
        replace(time_field, name="$time"),
    ]
    window = windows.window
    slice_length = window.slide or window.size
    local = LocalWindowAggOperator(
        range(len(plain_keys)),
        local_calls,
        WindowClock(len(calc_fields) - 1, clock.zone, local=clock.local, processing_time=False),
        slice_length,
        window.offset % slice_length,
        schema_of(local_fields),
    )
    first = planner.one_input(calc, local, "LocalWindowAggregate", f"Local{rel.describe()}")
    wide = [*local_fields, *windows.fields[width:]]
    function = WindowTableFunctionOperator(
        assigner,
        WindowClock(len(local_fields) - 1, clock.zone, local=clock.local, processing_time=False),
        schema_of(wide),
    )
    windowed = planner.one_input(first, function, "WindowTableFunction", windows.describe())
    ordinary = iter(range(len(plain_keys)))
    keys = []
    for key in rel.keys:
        part = parts[key]
        keys.append(next(ordinary) if part is None else len(local_fields) + part)
    calls = [AggregateCall(_merging(spec), [len(plain_keys) + index]) for index, spec in enumerate(rel.calls)]
    return MergedInput(windowed, keys, calls)


def _window_part(expr: Expr, width: int) -> int | None:
    """Return 0 to 2 for the start, the end and the time of the window."""
    return expr.index - width if isinstance(expr, InputRef) and expr.index >= width else None


def _reads(spec: AggregateSpec) -> Sequence[int]:
    return spec.arguments if spec.filter is None else (*spec.arguments, spec.filter)


def _splits(
    planner: Planner,
    rel: WindowAggregateRel,
    project: ProjectRel,
    windows: WindowTableFunctionRel,
    parts: Sequence[int | None],
) -> bool:
    """Whether two phases give the same results with less work."""
    kind = windows.window.kind
    width = len(windows.input.fields)
    if kind == "SESSION" or (kind == "TUMBLE" and any(parts[key] is None for key in rel.keys)):
        return False
    if windows.input.fields[windows.window.time_column].time is TimeAttribute.PROCTIME:
        return False
    if not is_timestamp(windows.input.fields[windows.window.time_column].type):
        return False
    if not planner.changelog(windows.input).insert_only:
        return False
    for expr, part in zip(project.expressions, parts, strict=True):
        if part is None and any(index >= width for index in input_columns(expr)):
            return False
    for spec in rel.calls:
        if spec.function not in _MERGED or spec.distinct or any(parts[index] is not None for index in _reads(spec)):
            return False
        if spec.function in ("SUM", "$SUM0") and isinstance(spec.type, FloatType | DoubleType):
            return False  # the result depends on the order of additions
    return True


def _merging(spec: AggregateSpec) -> Aggregate:
    """Return the aggregate over partial results."""
    type_ = arrow_type(spec.type)
    match spec.function:
        case "COUNT" | "$SUM0":
            return Sum0Aggregate(type_, type_)
        case "SUM":
            return SumAggregate(type_, type_)
    return ExtremeAggregate(type_, largest=spec.function == "MAX")
