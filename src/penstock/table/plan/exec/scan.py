"""Translates sources: tables of connectors, constants, streams."""

from __future__ import annotations

from penstock.core.table.arrow import to_column
from penstock.graph.transformation import SourceTransformation, Transformation
from penstock.table.connectors.base import TableSource
from penstock.table.connectors.values import ValuesSource, batch_of
from penstock.table.plan.exec.registry import translates
from penstock.table.plan.nodes.relational import ScanRel, ValuesRel
from penstock.table.plan.planner import Planner
from penstock.util.exceptions import TableException


@translates(ScanRel)
def translate_scan(planner: Planner, rel: ScanRel, update_before: bool) -> Transformation:
    """Translate the source of a connector, or a stream."""
    origin = rel.origin
    if not isinstance(origin, TableSource):
        made: Transformation = origin(planner)
        return made
    source = origin.create()
    if planner.settings.batch and not source.is_bounded:
        raise TableException(f"Querying an unbounded table '{rel.name}' in batch mode is not allowed.")
    return SourceTransformation(
        name=f"Source: {rel.name}",
        description=rel.describe(),
        source=source,
        parallelism=None if origin.parallel else 1,
        force_non_parallel=not origin.parallel,
    )


@translates(ValuesRel)
def translate_values(planner: Planner, rel: ValuesRel, update_before: bool) -> Transformation:
    """Translate constants, which one task reads in order."""
    columns = list(zip(*rel.rows, strict=True)) if rel.rows else [()] * len(rel.fields)
    arrays = [to_column(list(column), field.type) for column, field in zip(columns, rel.fields, strict=True)]
    source = ValuesSource(batch_of(arrays, rel.schema()))
    return SourceTransformation(name="Source: Values", source=source, parallelism=1, force_non_parallel=True)
