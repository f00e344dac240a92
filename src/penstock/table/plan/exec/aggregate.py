"""Translates GROUP BY and grouping sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.core.table.types import DataType
from penstock.graph.transformation import Transformation, UnionTransformation
from penstock.runtime.table.aggregates.base import Aggregate
from penstock.runtime.table.aggregates.registry import AggregateRequest, find_aggregate
from penstock.runtime.table.aggregates.retractable import DistinctAggregate
from penstock.runtime.table.operators.calc import Calc
from penstock.runtime.table.operators.group_agg import AggregateCall, GroupAggFunction
from penstock.table.plan.exec.registry import translates
from penstock.table.plan.nodes.aggregate import AggregateRel, AggregateSpec, ExpandRel
from penstock.table.plan.nodes.base import Rel
from penstock.table.plan.planner import Planner
from penstock.util.exceptions import TableException


def aggregate_call(spec: AggregateSpec, source: Rel, *, retracts: bool) -> AggregateCall:
    """Return the runtime form of an aggregate."""
    types = tuple(source.fields[index].type for index in spec.arguments)
    made = _aggregate(spec.function, types, spec.type, spec.options, retracts=retracts)
    if spec.distinct and spec.function not in ("MIN", "MAX"):
        made = DistinctAggregate(made)
    return AggregateCall(made, list(spec.arguments), spec.filter)


def _aggregate(
    function: Any, types: Sequence[DataType], result: DataType, options: tuple[Any, ...], *, retracts: bool
) -> Aggregate:
    if isinstance(function, str):
        definition = find_aggregate(function)
        assert definition is not None, function
        return definition.create(AggregateRequest(tuple(types), result, retracts, options))
    if retracts:
        check_retraction(function)
    made: Aggregate = function.create_aggregate(types)
    return made


def check_retraction(function: Any) -> None:
    """Check that a user-defined function supports retraction."""
    if not function.can_retract:
        raise TableException(
            f"Aggregate function '{function.name}' has no retract(), but its input is updated: implement retract()"
        )


@translates(AggregateRel)
def translate_aggregate(planner: Planner, rel: AggregateRel, update_before: bool) -> Transformation:
    """Translate an aggregate that updates its results."""
    pandas = [one.function.name for one in rel.calls if getattr(one.function, "func_type", "") == "pandas"]
    if pandas and not planner.settings.batch:
        raise TableException(
            f"Pandas UDAF '{pandas[0]}' is not supported in a streaming GROUP BY without a window: use a window, OVER "
            "or batch mode"
        )
    (source,) = planner.inputs(rel, update_before)
    retracts = not planner.changelog(rel.input).insert_only
    exchanged, parallelism = planner.exchange(source, rel.keys)
    ttl = planner.state_ttl(rel.state_ttl)
    operator = GroupAggFunction(
        rel.keys,
        [aggregate_call(spec, rel.input, retracts=retracts) for spec in rel.calls],
        rel.schema(),
        emits_update_before=update_before,
        mini_batch=planner.settings.mini_batch,
        always_emits=ttl > 0,
        emits_default=planner.settings.batch and not rel.keys,
    )
    operator.expire_state(ttl)
    return planner.one_input(exchanged, operator, "GroupAggregate", rel.describe(), parallelism=parallelism)


@translates(ExpandRel)
def translate_expand(planner: Planner, rel: ExpandRel, update_before: bool) -> Transformation:
    """Translate an Expand: one Calc for each grouping set."""
    (source,) = planner.inputs(rel, update_before)
    copies = [
        planner.one_input(source, Calc(None, projection, rel.schema(), planner.context()), "Expand", rel.describe())
        for projection in rel.projections
    ]
    return UnionTransformation(name="Expand", streams=copies)
