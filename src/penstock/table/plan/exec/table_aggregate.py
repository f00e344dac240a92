"""Translates table aggregates."""

from __future__ import annotations

from penstock.graph.transformation import Transformation
from penstock.runtime.table.operators.group_table_agg import GroupTableAggFunction
from penstock.table.plan.exec.aggregate import check_retraction
from penstock.table.plan.exec.registry import translates
from penstock.table.plan.nodes.table_aggregate import TableAggregateRel
from penstock.table.plan.planner import Planner


@translates(TableAggregateRel)
def translate_table_aggregate(planner: Planner, rel: TableAggregateRel, update_before: bool) -> Transformation:
    """Translate a table aggregate."""
    (source,) = planner.inputs(rel, update_before)
    if not planner.changelog(rel.input).insert_only:
        check_retraction(rel.function)
    exchanged, parallelism = planner.exchange(source, rel.keys)
    operator = GroupTableAggFunction(
        rel.keys,
        rel.function,
        rel.arguments,
        [rel.input.fields[index].type for index in rel.arguments],
        rel.schema(),
    )
    operator.expire_state(planner.state_ttl())
    return planner.one_input(exchanged, operator, "GroupTableAggregate", rel.describe(), parallelism=parallelism)
