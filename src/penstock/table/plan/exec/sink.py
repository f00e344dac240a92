"""Translates sinks. The changelog mode of a sink determines the changes sent to it (T11, T124)."""

from __future__ import annotations

from penstock.core.sink import Sink
from penstock.graph.transformation import SinkTransformation, Transformation
from penstock.runtime.operators.sink import SinkOperator
from penstock.runtime.table.operators.output_conversion import OutputConversionOperator
from penstock.runtime.table.operators.upsert_materializer import MovedRowsOperator, NotNullEnforcer, UpsertMaterializer
from penstock.table.connectors.base import ResolvedTable, TableSink
from penstock.table.plan.nodes.base import Rel
from penstock.table.plan.planner import Planner, parallelism_of
from penstock.util.exceptions import TableException, ValidationException


def translate_sink(planner: Planner, rel: Rel, sink: TableSink, name: str, table: ResolvedTable) -> SinkTransformation:
    """Translate an INSERT."""
    rel = planner.optimize(rel)
    changes = planner.changelog(rel)
    if sink.accepts == "insert" and not changes.insert_only:
        raise TableException(
            f"Table sink '{name}' doesn't support consuming update and delete changes which is produced by node "
            f"{rel.describe()}"
        )
    source = _changes(planner, rel, sink, table)
    source = _without_null(planner, source, rel, table)
    conversion = sink.conversion()
    if sink.rows:
        conversion = OutputConversionOperator([field.type for field in rel.fields], None)
    if conversion is not None:
        source = planner.one_input(source, conversion, "SinkConversion")
    return _sink(source, sink.create(), f"Sink: {name}")


def _changes(planner: Planner, rel: Rel, sink: TableSink, table: ResolvedTable) -> Transformation:
    """Return the changes for a sink: all, or upserts by its own key (not by that of the query) (T124)."""
    mode = _option(planner, "table.exec.sink.upsert-materialize", ("AUTO", "FORCE", "NONE"))
    if sink.accepts != "upsert" or not table.primary_key or planner.changelog(rel).insert_only:
        return planner.translate_root(rel, update_before=sink.accepts == "all")
    keys = [rel.names.index(table.fields[place].name) for place in table.primary_key]
    known = planner.upsert_keys(rel)
    if mode != "FORCE" and (mode == "NONE" or frozenset(keys) in known):
        return planner.translate_root(rel, update_before=False)
    source = planner.translate_root(rel, update_before=True)
    if mode == "AUTO" and any(one <= frozenset(keys) for one in known):
        return planner.one_input(source, MovedRowsOperator(keys), "MovedRows")
    upsert_key = min((sorted(one) for one in known), key=lambda one: (len(one), one), default=[])
    exchanged, parallelism = planner.exchange(source, keys)
    operator = UpsertMaterializer(keys, upsert_key, rel.schema())
    operator.expire_state(planner.state_ttl())
    description = f"SinkMaterializer(pk=[{', '.join(rel.names[key] for key in keys)}])"
    return planner.one_input(exchanged, operator, "SinkMaterializer", description, parallelism=parallelism)


def _without_null(planner: Planner, source: Transformation, rel: Rel, table: ResolvedTable) -> Transformation:
    """Handle NULL in columns that are NOT NULL (T123)."""
    mode = _option(planner, "table.exec.sink.not-null-enforcer", ("ERROR", "DROP"))
    columns = [(rel.names.index(one.name), one.name) for one in table.fields if not one.type.is_nullable]
    if not columns:
        return source
    names = ", ".join(name for _, name in columns)
    operator = NotNullEnforcer(columns, drops=mode == "DROP")
    return planner.one_input(source, operator, "ConstraintEnforcer", f"ConstraintEnforcer(notNull=[{names}])")


def _option(planner: Planner, key: str, values: tuple[str, ...]) -> str:
    value = planner.settings.options.get(key, values[0]).upper()
    if value not in values:
        raise ValidationException(f"Option '{key}' is '{value}': it must be one of {', '.join(values)}")
    return value


def translate_collect(planner: Planner, rel: Rel, sink: Sink) -> SinkTransformation:
    """Collect rows in the driver program, as Row objects with row kinds."""
    rel = planner.optimize(rel)
    source = planner.translate_root(rel, update_before=True)
    conversion = OutputConversionOperator([field.type for field in rel.fields], None)
    rows = planner.one_input(source, conversion, "SinkConversion")
    return _sink(rows, sink, "Sink: Collect table sink")


def _sink(source: Transformation, sink: Sink, name: str) -> SinkTransformation:
    return SinkTransformation(name=name, input=source, operator=SinkOperator(sink), parallelism=parallelism_of(source))
