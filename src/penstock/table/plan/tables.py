"""Converts tables of the catalog to relations: scan, computed columns, watermark (T41, T120)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from penstock.core.table.type_rules import casts_implicitly, is_timestamp
from penstock.core.table.types import DataType
from penstock.runtime.table.expressions import Call, Expr, InputRef
from penstock.table.catalog_manager import TableEntry
from penstock.table.connectors.base import ResolvedTable, TableSink, TableSource, factory_for
from penstock.table.plan import ast
from penstock.table.plan.bind import Binder
from penstock.table.plan.build import project
from penstock.table.plan.nodes.base import NO_KEYS, Field, Rel, TimeAttribute
from penstock.table.plan.nodes.normalize import ChangelogNormalizeRel
from penstock.table.plan.nodes.relational import ScanRel, WatermarkRel
from penstock.table.plan.scope import Scope
from penstock.table.schema import Schema
from penstock.util.exceptions import ValidationException

ParseExpression = Callable[[str], ast.Node]
ParseType = Callable[[str], DataType]


@dataclass(slots=True)
class SchemaColumn:
    """A column with a resolved type."""

    name: str
    type: DataType
    expression: Expr | None = None
    metadata_key: str | None = None
    is_virtual: bool = False
    time: TimeAttribute | None = None

    @property
    def is_physical(self) -> bool:
        """Whether the column is physical."""
        return self.expression is None and self.metadata_key is None

    @property
    def is_persisted(self) -> bool:
        """Whether INSERT INTO writes the column."""
        return self.expression is None and not self.is_virtual


@dataclass(slots=True)
class TableSchemaPlan:
    """A resolved schema. Computed columns are bound to the other columns."""

    columns: list[SchemaColumn]
    watermark: tuple[int, Expr] | None
    primary_key: tuple[str, ...]

    @property
    def fields(self) -> list[Field]:
        """The columns for queries."""
        return [Field(column.name, column.type, column.time) for column in self.columns]


class TableResolver:
    """Resolves schemas and converts tables to relations."""

    def __init__(self, binder: Binder, parse_expression: ParseExpression, parse_type: ParseType) -> None:
        self.binder = binder
        self._parse_expression = parse_expression
        self._parse_type = parse_type

    def schema(self, schema: Schema) -> TableSchemaPlan:
        """Resolve all columns and their types."""
        columns: list[SchemaColumn] = []
        for column in schema.columns:
            if any(known.name == column.name for known in columns):
                raise ValidationException(f"A column named '{column.name}' already exists in the table.")
            if column.expression is None:
                columns.append(self._plain(column.name, column.type, column))
        stored = [Field(column.name, column.type) for column in columns]
        result: list[SchemaColumn] = []
        plain = iter(columns)
        for column in schema.columns:
            if column.expression is None:
                result.append(next(plain))
                continue
            node = self.node(column.expression)
            bound = self.binder.bind(node, Scope.of(stored))
            time = TimeAttribute.PROCTIME if isinstance(bound, Call) and bound.function == "PROCTIME" else None
            result.append(SchemaColumn(column.name, bound.type, bound, time=time))
        self._check_key(schema, result)
        watermark = self._watermark(schema, result)
        key = schema.primary_key or ()
        for made in result:
            if made.name in key:
                made.type = made.type.not_null()
        return TableSchemaPlan(result, watermark, tuple(key))

    def _plain(self, name: str, type_: DataType | str | None, column: object) -> SchemaColumn:
        resolved = self._parse_type(type_) if isinstance(type_, str) else type_
        if resolved is None:
            raise ValidationException(f"column '{name}' has no type")
        is_metadata = getattr(column, "is_metadata", False)
        key = (getattr(column, "metadata_key", None) or name) if is_metadata else None
        return SchemaColumn(name, resolved, None, key, getattr(column, "is_virtual", False))

    def node(self, expression: ast.Node | str) -> ast.Node:
        return self._parse_expression(expression) if isinstance(expression, str) else expression

    def _check_key(self, schema: Schema, columns: list[SchemaColumn]) -> None:
        known = {column.name: column for column in columns}
        for name in schema.primary_key or ():
            if name not in known:
                raise ValidationException(f"Invalid primary key: column '{name}' does not exist.")
            if known[name].expression is not None:
                raise ValidationException(f"Invalid primary key: column '{name}' is a computed column.")

    def _watermark(self, schema: Schema, columns: list[SchemaColumn]) -> tuple[int, Expr] | None:
        spec = schema.watermark
        if spec is None:
            return None
        places = {column.name: index for index, column in enumerate(columns)}
        if spec.column not in places:
            raise ValidationException(
                f"Invalid column name '{spec.column}' for rowtime attribute in watermark declaration. "
                f"Available columns are: [{', '.join(places)}]"
            )
        index = places[spec.column]
        column = columns[index]
        if not is_timestamp(column.type) or column.type.precision > 3:  # type: ignore[attr-defined]
            raise ValidationException(
                "Invalid data type of time field for watermark definition. The field must be of type TIMESTAMP(p) or "
                f"TIMESTAMP_LTZ(p), the supported precision 'p' is from 0 to 3, but the field's type is {column.type}"
            )
        fields = [Field(one.name, one.type) for one in columns]
        expression = self.binder.bind(self.node(spec.expression), Scope.of(fields))
        if not is_timestamp(expression.type):
            raise ValidationException(f"Invalid data type of expression for watermark definition: {expression.type}")
        column.time = TimeAttribute.ROWTIME
        return index, expression

    # -- relations ----------------------------------------------------------------------------------------------

    def resolved(self, name: str, entry: TableEntry, plan: TableSchemaPlan) -> ResolvedTable:
        """Return the table for its connector."""
        physical = [column for column in plan.columns if column.is_physical]
        names = [column.name for column in physical]
        metadata = [column for column in plan.columns if column.metadata_key is not None]
        return ResolvedTable(
            name=name,
            fields=tuple(Field(column.name, column.type) for column in physical),
            options=entry.options,
            primary_key=tuple(names.index(key) for key in plan.primary_key if key in names),
            partition_keys=entry.partition_keys,
            metadata=tuple((column.metadata_key or "", column.type) for column in metadata),
        )

    def scan(self, name: str, entry: TableEntry) -> Rel:
        """Return a table as a relation."""
        plan = self.schema(entry.schema)
        table = self.resolved(name, entry, plan)
        factory = factory_for(table)
        for key, _ in table.metadata:
            if key not in factory.metadata:
                known = ", ".join(sorted(factory.metadata)) or "none"
                raise ValidationException(
                    f"Invalid metadata key '{key}' in column of table '{name}': the connector has {known}"
                )
        source = factory.source(table)
        return self.relation(name, plan, source, table)

    def relation(self, name: str, plan: TableSchemaPlan, source: TableSource, table: ResolvedTable) -> Rel:
        """Build the scan, the computed columns and the watermark of a table."""
        declared = [column for column in plan.columns if column.expression is None]
        ordered = [column for column in declared if column.is_physical] + [
            column for column in declared if not column.is_physical
        ]
        keys = frozenset({frozenset(table.primary_key)}) if table.primary_key else NO_KEYS
        fields = tuple(Field(column.name, column.type) for column in ordered)
        rel: Rel = ScanRel(fields, source, name, source.changelog, keys, table.identity)
        if source.upsert:
            rel = ChangelogNormalizeRel(fields, rel, table.primary_key)
        if any(column.expression is not None for column in plan.columns) or ordered != declared:
            rel = self._computed(rel, plan, declared, ordered)
        if plan.watermark is not None:
            index, expression = plan.watermark
            marked = [
                replace(field, time=TimeAttribute.ROWTIME) if position == index else field
                for position, field in enumerate(rel.fields)
            ]
            rel = WatermarkRel(tuple(marked), rel, index, expression)
        return rel

    def _computed(
        self, rel: Rel, plan: TableSchemaPlan, declared: list[SchemaColumn], ordered: list[SchemaColumn]
    ) -> Rel:
        from penstock.runtime.table.expressions import shifted

        place = [next(i for i, other in enumerate(ordered) if other is column) for column in declared]
        expressions: list[Expr] = []
        for column in plan.columns:
            if column.expression is not None:
                expressions.append(shifted(column.expression, lambda index: place[index]))
            else:
                index = next(i for i, other in enumerate(ordered) if other is column)
                expressions.append(InputRef(column.type, index))
        return project(rel, expressions, [column.name for column in plan.columns])

    def sink(self, name: str, entry: TableEntry) -> tuple[TableSink, ResolvedTable, list[SchemaColumn]]:
        """Return a table as a sink, and the columns to write."""
        plan = self.schema(entry.schema)
        table = self.resolved(name, entry, plan)
        return factory_for(table).sink(table), table, [column for column in plan.columns if column.is_persisted]


def check_insert(source: Rel, columns: list[SchemaColumn], name: str) -> None:
    """Check that a query fits a table by position, with implicit casts that lose no data (T123)."""
    query = ", ".join(f"{field.name}: {field.type}" for field in source.fields)
    sink = ", ".join(f"{column.name}: {column.type}" for column in columns)
    where = f"\nQuery schema: [{query}]\nSink schema:  [{sink}]"
    if len(source.fields) != len(columns):
        raise ValidationException(
            f"Column types of query result and sink for '{name}' do not match.\n"
            f"Cause: Different number of columns.{where}"
        )
    for position, (field, column) in enumerate(zip(source.fields, columns, strict=True)):
        if not casts_implicitly(field.type, column.type):
            raise ValidationException(
                f"Column types of query result and sink for '{name}' do not match.\nCause: Incompatible types for sink "
                f"column '{column.name}' at position {position}.{where}"
            )
