"""Translates Top-N, deduplication, sorting and limits."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.graph.transformation import Transformation
from penstock.runtime.table.operator import TableOperator
from penstock.runtime.table.operators.deduplicate import KeepFirstRow, KeepFirstRowByRowtime, KeepLastRow
from penstock.runtime.table.operators.rank import RankOperator, RankRange
from penstock.runtime.table.operators.sort import LimitOperator, SortOperator, TemporalSortOperator
from penstock.runtime.table.operators.window_rank import WindowRankOperator
from penstock.runtime.table.sort_keys import SortColumn
from penstock.table.plan.exec.registry import translates
from penstock.table.plan.nodes.base import TimeAttribute
from penstock.table.plan.nodes.rank import DeduplicateRel, RankRel, SortKey, SortRel, WindowRankRel
from penstock.table.plan.planner import Planner
from penstock.table.plan.windows import window_columns
from penstock.util.exceptions import TableException


def sort_columns(keys: Sequence[SortKey]) -> list[SortColumn]:
    """Convert sort keys for operators."""
    return [SortColumn(key.column, key.descending, key.nulls_last) for key in keys]


@translates(RankRel)
def translate_rank(planner: Planner, rel: RankRel, update_before: bool) -> Transformation:
    """Translate a Top-N that is updated with each row."""
    (source,) = planner.inputs(rel, update_before)
    exchanged, parallelism = planner.exchange(source, rel.partition)
    operator = RankOperator(
        rel.partition,
        sort_columns(rel.order),
        RankRange(rel.start, rel.end, rel.with_rank),
        rel.input.schema(),
        rel.schema(),
        retracts=not planner.changelog(rel.input).insert_only,
        emits_update_before=update_before,
    )
    operator.expire_state(planner.state_ttl())
    return planner.one_input(exchanged, operator, "Rank", rel.describe(), parallelism=parallelism)


@translates(WindowRankRel)
def translate_window_rank(planner: Planner, rel: WindowRankRel, update_before: bool) -> Transformation:
    """Translate a Top-N for each window."""
    (source,) = planner.inputs(rel, update_before)
    columns = window_columns(rel.input)
    assert columns is not None
    exchanged, parallelism = planner.exchange(source, rel.partition)
    operator = WindowRankOperator(
        rel.partition,
        sort_columns(rel.order),
        RankRange(rel.start, rel.end, rel.with_rank),
        rel.input.schema(),
        rel.schema(),
        retracts=not planner.changelog(rel.input).insert_only,
        ties_replace=rel.ties_replace,
        window_end=next(place for place, key in enumerate(rel.partition) if key in columns.ends),
        zone=None if columns.local else planner.settings.time_zone,
        processing_time=columns.processing_time,
    )
    return planner.one_input(exchanged, operator, "WindowRank", rel.describe(), parallelism=parallelism)


@translates(DeduplicateRel)
def translate_deduplicate(planner: Planner, rel: DeduplicateRel, update_before: bool) -> Transformation:
    """Translate the deduplication to the first or last row of each key."""
    (source,) = planner.inputs(rel, update_before)
    exchanged, parallelism = planner.exchange(source, rel.keys)
    time_column = rel.time_column if rel.rowtime else None
    operator: TableOperator
    if rel.last:
        operator = KeepLastRow(rel.keys, rel.schema(), time_column, emits_update_before=update_before)
    elif rel.rowtime:
        operator = KeepFirstRowByRowtime(rel.keys, rel.schema(), time_column)
    else:
        operator = KeepFirstRow(rel.keys, rel.schema())
    if not isinstance(operator, KeepFirstRowByRowtime):  # the watermark cleans up there
        operator.expire_state(planner.state_ttl())
    return planner.one_input(exchanged, operator, "Deduplicate", rel.describe(), parallelism=parallelism)


@translates(SortRel)
def translate_sort(planner: Planner, rel: SortRel, update_before: bool) -> Transformation:
    """Translate a sort by time or in a batch job, or a limit. ORDER BY with LIMIT is already a Top-N."""
    (source,) = planner.inputs(rel, update_before)
    exchanged, parallelism = planner.exchange(source, ())
    operator: TableOperator
    if planner.settings.batch:
        operator = SortOperator(sort_columns(rel.order), rel.offset, rel.fetch)
    elif not rel.order or rel.fetch == 0:
        if rel.fetch is None:
            raise TableException("FETCH is missed, which on streaming table is not supported currently: add LIMIT n.")
        operator = LimitOperator(rel.offset, rel.fetch)
    else:
        operator = _temporal_sort(planner, rel)
    return planner.one_input(exchanged, operator, "Sort", rel.describe(), parallelism=parallelism)


def _temporal_sort(planner: Planner, rel: SortRel) -> TableOperator:
    first = rel.order[0]
    field = rel.input.fields[first.column]
    if field.time is None:
        raise TableException(
            "Sort on a non-time-attribute field is not supported: in streaming mode ORDER BY begins with an ascending "
            f"time attribute, or has a LIMIT (column '{field.name}' is not a time attribute)."
        )
    if first.descending:
        raise TableException(
            "Sort: Primary sort order of a streaming table must be ascending on time. Add a LIMIT, or sort ascending "
            f"(column '{field.name}')."
        )
    if rel.offset:
        raise TableException("FETCH is missed, which on streaming table is not supported currently: add LIMIT n.")
    if not planner.changelog(rel.input).insert_only:
        raise TableException(
            "Sort by time doesn't support consuming update and delete changes which is produced by node "
            f"{rel.input.describe()}"
        )
    if field.time is TimeAttribute.PROCTIME:
        return LimitOperator(0, None)
    return TemporalSortOperator(sort_columns(rel.order), rel.schema())
