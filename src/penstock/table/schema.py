"""Unresolved schemas: columns, watermark, primary key. They are resolved when a table is used."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from penstock.core.table.types import DataType, RowType
from penstock.table.expression import Expression
from penstock.table.plan import ast

__all__ = ["Schema"]


@dataclass(frozen=True, slots=True)
class UnresolvedColumn:
    """A column: physical, computed (``expression``) or metadata (``metadata_key``)."""

    name: str
    type: DataType | str | None = None
    expression: ast.Node | str | None = None
    metadata_key: str | None = None
    is_metadata: bool = False
    is_virtual: bool = False
    comment: str | None = None

    @property
    def is_physical(self) -> bool:
        """Whether the column is physical."""
        return self.expression is None and not self.is_metadata


@dataclass(frozen=True, slots=True)
class UnresolvedWatermark:
    """WATERMARK FOR column AS expression."""

    column: str
    expression: ast.Node | str


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of a table.

    >>> from penstock.core.table.types import DataTypes
    >>> schema = Schema.new_builder().column("id", DataTypes.BIGINT()).primary_key("id").build()
    >>> [column.name for column in schema.columns], schema.primary_key
    (['id'], ('id',))
    """

    columns: tuple[UnresolvedColumn, ...] = ()
    watermark: UnresolvedWatermark | None = None
    primary_key: tuple[str, ...] | None = None
    key_name: str | None = field(default=None, compare=False)

    @staticmethod
    def new_builder() -> SchemaBuilder:
        """Create a builder."""
        return SchemaBuilder()


class SchemaBuilder:
    """Collects the parts of a schema."""

    def __init__(self) -> None:
        self._schema = Schema()

    def _add(self, column: UnresolvedColumn) -> SchemaBuilder:
        self._schema = replace(self._schema, columns=(*self._schema.columns, column))
        return self

    def from_schema(self, unresolved_schema: Schema) -> SchemaBuilder:
        """Add all columns of another schema, and its watermark and key."""
        for column in unresolved_schema.columns:
            self._add(column)
        self._schema = replace(
            self._schema,
            watermark=unresolved_schema.watermark or self._schema.watermark,
            primary_key=unresolved_schema.primary_key or self._schema.primary_key,
        )
        return self

    def from_row_data_type(self, data_type: RowType) -> SchemaBuilder:
        """Add the fields of a row type as columns."""
        return self.from_fields(data_type.field_names(), data_type.field_types())

    def from_fields(self, field_names: list[str], field_data_types: list[DataType]) -> SchemaBuilder:
        """Add columns by names and types."""
        for name, data_type in zip(field_names, field_data_types, strict=True):
            self.column(name, data_type)
        return self

    def column(self, column_name: str, data_type: DataType | str) -> SchemaBuilder:
        """Add a physical column. The type may be text."""
        return self._add(UnresolvedColumn(column_name, data_type))

    def column_by_expression(self, column_name: str, expr: Expression[Any] | str) -> SchemaBuilder:
        """Add a computed column."""
        return self._add(UnresolvedColumn(column_name, expression=_unresolved(expr)))

    def column_by_metadata(
        self,
        column_name: str,
        data_type: DataType | str,
        metadata_key: str | None = None,
        is_virtual: bool = False,
    ) -> SchemaBuilder:
        """Add a column with metadata of the connector."""
        return self._add(
            UnresolvedColumn(column_name, data_type, metadata_key=metadata_key, is_metadata=True, is_virtual=is_virtual)
        )

    def watermark(self, column_name: str, watermark_expr: Expression[Any] | str) -> SchemaBuilder:
        """Declare the rowtime column and its watermark."""
        self._schema = replace(self._schema, watermark=UnresolvedWatermark(column_name, _unresolved(watermark_expr)))
        return self

    def primary_key(self, *column_names: str) -> SchemaBuilder:
        """Set the primary key, which is not enforced."""
        return self.primary_key_named(f"PK_{'_'.join(column_names)}", *column_names)

    def primary_key_named(self, constraint_name: str, *column_names: str) -> SchemaBuilder:
        """Set the primary key with a name."""
        self._schema = replace(self._schema, primary_key=column_names, key_name=constraint_name)
        return self

    def build(self) -> Schema:
        """Build the schema."""
        return self._schema


Schema.Builder = SchemaBuilder  # type: ignore[attr-defined]


def _unresolved(expression: Expression[Any] | str) -> ast.Node | str:
    return expression.node if isinstance(expression, Expression) else expression
