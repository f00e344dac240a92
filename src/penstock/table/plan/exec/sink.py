"""Sinks: what they accept decides which changes are sent to them (T11, T124)."""

from __future__ import annotations

from penstock.core.sink import Sink
from penstock.graph.transformation import SinkTransformation, Transformation
from penstock.runtime.operators.sink import SinkOperator
from penstock.runtime.table.operators.output_conversion import OutputConversionOperator
from penstock.table.connectors.base import TableSink
from penstock.table.plan.nodes.base import Rel
from penstock.table.plan.planner import Planner, parallelism_of
from penstock.util.exceptions import TableException


def translate_sink(planner: Planner, rel: Rel, sink: TableSink, name: str) -> SinkTransformation:
    """Rows into a table."""
    rel = planner.optimize(rel)
    changes = planner.changelog(rel)
    if sink.accepts == "insert" and not changes.insert_only:
        raise TableException(
            f"Table sink '{name}' doesn't support consuming update and delete changes which is produced by node "
            f"{rel.describe()}"
        )
    source = planner.translate(rel, update_before=sink.accepts == "all")
    if sink.rows:
        conversion = OutputConversionOperator([field.type for field in rel.fields], None)
        source = planner.one_input(source, conversion, "SinkConversion")
    return _sink(source, sink.create(), f"Sink: {name}")


def translate_collect(planner: Planner, rel: Rel, sink: Sink) -> SinkTransformation:
    """Rows into the driver program, as Row objects with their kinds."""
    rel = planner.optimize(rel)
    source = planner.translate(rel, update_before=True)
    conversion = OutputConversionOperator([field.type for field in rel.fields], None)
    rows = planner.one_input(source, conversion, "SinkConversion")
    return _sink(rows, sink, "Sink: Collect table sink")


def _sink(source: Transformation, sink: Sink, name: str) -> SinkTransformation:
    return SinkTransformation(name=name, input=source, operator=SinkOperator(sink), parallelism=parallelism_of(source))
