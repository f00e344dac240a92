"""Translates projections, filters, unions and watermarks."""

from __future__ import annotations

from penstock.graph.transformation import Transformation, UnionTransformation
from penstock.runtime.table.operators.calc import Calc
from penstock.runtime.table.operators.watermark_assigner import WatermarkAssignerOperator
from penstock.table.plan.exec.registry import translates
from penstock.table.plan.nodes.relational import FilterRel, ProjectRel, UnionRel, WatermarkRel
from penstock.table.plan.planner import Planner


@translates(ProjectRel)
def translate_project(planner: Planner, rel: ProjectRel, update_before: bool) -> Transformation:
    """Translate a projection, together with a filter below it."""
    condition, source_rel = None, rel.input
    if isinstance(source_rel, FilterRel):
        condition = source_rel.condition
        (source,) = planner.inputs(source_rel, planner.changelog(source_rel).updates)
    else:
        (source,) = planner.inputs(rel, update_before)
    operator = Calc(condition, rel.expressions, rel.schema(), planner.context())
    return planner.one_input(source, operator, "Calc", rel.describe())


@translates(FilterRel)
def translate_filter(planner: Planner, rel: FilterRel, update_before: bool) -> Transformation:
    """Translate a filter."""
    (source,) = planner.inputs(rel, update_before)
    return planner.one_input(source, Calc(rel.condition, None, rel.schema(), planner.context()), "Calc", rel.describe())


@translates(UnionRel)
def translate_union(planner: Planner, rel: UnionRel, update_before: bool) -> Transformation:
    """Translate a union."""
    return UnionTransformation(name="Union", streams=planner.inputs(rel, update_before))


@translates(WatermarkRel)
def translate_watermarks(planner: Planner, rel: WatermarkRel, update_before: bool) -> Transformation:
    """Translate watermarks of a column."""
    (source,) = planner.inputs(rel, update_before)
    if planner.settings.batch:
        return source
    interval = planner.settings.watermark_interval
    operator = WatermarkAssignerOperator(rel.column, rel.expression, interval, planner.context(), planner.cuts)
    return planner.one_input(source, operator, "WatermarkAssigner", rel.describe())
