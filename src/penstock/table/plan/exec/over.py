"""Translates OVER: by time, by other columns, in batch jobs (T80 to T82).

This module imports one operator for each kind of OVER.
"""

from __future__ import annotations

from penstock.core.table.arrow import arrow_type
from penstock.graph.transformation import Transformation
from penstock.runtime.table.aggregates.base import Aggregate
from penstock.runtime.table.aggregates.numeric import CountAggregate
from penstock.runtime.table.aggregates.over import LagAggregate, RankAggregate
from penstock.runtime.table.operator import TableOperator
from penstock.runtime.table.operators.over_aggregate import OverAggregateOperator
from penstock.runtime.table.operators.over_partitions import BatchOverOperator, NonTimeOverOperator
from penstock.runtime.table.over_functions import OverCall, OverFrame
from penstock.table.plan.exec.aggregate import aggregate_call
from penstock.table.plan.exec.rank import sort_columns
from penstock.table.plan.exec.registry import translates
from penstock.table.plan.nodes.aggregate import AggregateSpec
from penstock.table.plan.nodes.base import TimeAttribute
from penstock.table.plan.nodes.rank import OverRel
from penstock.table.plan.over import RANKING
from penstock.table.plan.planner import Planner
from penstock.util.exceptions import TableException


@translates(OverRel)
def translate_over(planner: Planner, rel: OverRel, update_before: bool) -> Transformation:
    """Translate to an operator that adds the results to the input's columns."""
    (source,) = planner.inputs(rel, update_before)
    window = rel.window
    frame = OverFrame(window.frame.rows, window.frame.preceding, window.frame.following)
    source_schema, schema = rel.input.schema(), rel.schema()
    operator: TableOperator
    if planner.settings.batch:
        calls = [_whole_call(rel, spec) for spec in rel.calls]
        operator = BatchOverOperator(window.partition, sort_columns(window.order), frame, calls, source_schema, schema)
    elif rel.by_time:
        _check_time_order(planner, rel)
        field = rel.input.fields[window.order[0].column]
        column = window.order[0].column if field.time is TimeAttribute.ROWTIME else None
        calls = [_running_call(rel, spec) for spec in rel.calls]
        operator = OverAggregateOperator(window.partition, column, frame, calls, source_schema, schema)
    else:
        _check_other_order(rel)
        calls = [_whole_call(rel, spec) for spec in rel.calls]
        operator = NonTimeOverOperator(
            window.partition,
            sort_columns(window.order),
            frame,
            calls,
            source_schema,
            schema,
            emits_update_before=update_before,
        )
    exchanged, parallelism = planner.exchange(source, window.partition)
    return planner.one_input(exchanged, operator, "OverAggregate", rel.describe(), parallelism=parallelism)


def _check_time_order(planner: Planner, rel: OverRel) -> None:
    window = rel.window
    if window.order[0].descending:
        raise TableException("OVER windows' ordering in stream mode must be ascending: remove DESC.")
    if len(window.order) > 1:
        raise TableException("The window can only be ordered by a single time column.")
    if window.frame.following != 0:
        raise TableException("OVER windows that end after the current row are not supported in stream mode.")
    if not planner.changelog(rel.input).insert_only:
        raise TableException(
            "OverAggregate doesn't support consuming update and delete changes which is produced by node "
            f"{rel.input.describe()}"
        )


def _check_other_order(rel: OverRel) -> None:
    window = rel.window
    if not window.order:
        raise TableException("OVER windows in stream mode need an ORDER BY: add a time attribute to order by.")
    if window.frame.preceding is not None or window.frame.following != 0:
        raise TableException(
            "OVER windows by a column that is not a time attribute support only UNBOUNDED PRECEDING to CURRENT ROW in "
            "stream mode."
        )


def _whole_call(rel: OverRel, spec: AggregateSpec) -> OverCall:
    """Return the call for complete partitions."""
    if spec.function in (*RANKING, "LAG", "LEAD"):
        return OverCall(list(spec.arguments), position_function=spec.function, result_type=arrow_type(spec.type))
    made = aggregate_call(spec, rel.input, retracts=_leaves_frame(rel))
    return OverCall(made.arguments, made.aggregate)


def _running_call(rel: OverRel, spec: AggregateSpec) -> OverCall:
    """Return the call for rows in the order of time."""
    order = [key.column for key in rel.window.order]
    aggregate: Aggregate
    match spec.function:
        case "ROW_NUMBER":
            return OverCall([], CountAggregate(), by_row=True)
        case "RANK" | "DENSE_RANK":
            return OverCall(order, RankAggregate(dense=spec.function == "DENSE_RANK"), by_row=True)
        case "LAG":
            types = tuple(rel.input.fields[index].type for index in spec.arguments)
            aggregate = LagAggregate(types, spec.type, arrow_type(spec.type))
            return OverCall(list(spec.arguments), aggregate, by_row=True)
        case "LEAD" | "NTILE" | "PERCENT_RANK" | "CUME_DIST":
            raise TableException(f"{spec.function} Function is not supported in stream mode: it needs later rows.")
    made = aggregate_call(spec, rel.input, retracts=_leaves_frame(rel))
    return OverCall(made.arguments, made.aggregate)


def _leaves_frame(rel: OverRel) -> bool:
    """Whether rows leave the frame again."""
    return rel.window.frame.preceding is not None
