"""Translates UNNEST and table functions."""

from __future__ import annotations

from penstock.core.table.types import MultisetType
from penstock.graph.transformation import Transformation
from penstock.runtime.table.operators.correlate import (
    CorrelateOperator,
    Replicate,
    RowFunction,
    TableFunctionCall,
    Unnest,
)
from penstock.table.plan.exec.registry import translates
from penstock.table.plan.nodes.correlate import REPLICATE, UNNEST, CorrelateRel
from penstock.table.plan.planner import Planner


@translates(CorrelateRel)
def translate_correlate(planner: Planner, rel: CorrelateRel, update_before: bool) -> Transformation:
    """Translate to one operator without state."""
    (source,) = planner.inputs(rel, update_before)
    function: RowFunction
    if rel.function == UNNEST:
        function = Unnest(multiset=isinstance(rel.arguments[0].type, MultisetType))
    elif rel.function == REPLICATE:
        function = Replicate()
    else:
        types = [one.type for one in rel.fields[len(rel.input.fields) :]]
        if rel.ordinality:
            types.pop()
        function = TableFunctionCall(rel.function, [one.type for one in rel.arguments], types)
    operator = CorrelateOperator(
        function, rel.arguments, rel.schema(), planner.context(), outer=rel.outer, ordinality=rel.ordinality
    )
    return planner.one_input(source, operator, "Correlate", rel.describe())
