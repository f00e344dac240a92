"""Resolved schemas, in which all types are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.core.table.types import DataType, RowField, RowType
from penstock.table.catalog_objects import Constraint

if TYPE_CHECKING:
    from penstock.table.plan.nodes.base import Rel

__all__ = [
    "Column",
    "ComputedColumn",
    "MetadataColumn",
    "PhysicalColumn",
    "ResolvedSchema",
    "UniqueConstraint",
    "WatermarkSpec",
    "resolved_schema",
]


@dataclass(frozen=True)
class Column:
    """A column of a resolved schema."""

    _name: str
    _type: DataType
    _comment: str | None = field(default=None, kw_only=True)
    _time: str | None = field(default=None, kw_only=True, compare=False)

    @staticmethod
    def physical(name: str, data_type: DataType) -> PhysicalColumn:
        """Create a physical column."""
        return PhysicalColumn(name, data_type)

    @staticmethod
    def computed(name: str, resolved_expression: Any) -> ComputedColumn:
        """Create a computed column."""
        return ComputedColumn(name, resolved_expression.type, resolved_expression)

    @staticmethod
    def metadata(name: str, data_type: DataType, metadata_key: str | None, is_virtual: bool) -> MetadataColumn:
        """Create a column with metadata of the connector."""
        return MetadataColumn(name, data_type, metadata_key, is_virtual)

    def get_name(self) -> str:
        return self._name

    def get_data_type(self) -> DataType:
        return self._type

    def get_comment(self) -> str | None:
        return self._comment

    def with_comment(self, comment: str | None) -> Column:
        return replace(self, _comment=comment)

    def rename(self, new_name: str) -> Column:
        return replace(self, _name=new_name)

    def copy(self, new_type: DataType) -> Column:
        return replace(self, _type=new_type)

    def is_physical(self) -> bool:
        return True

    def is_persisted(self) -> bool:
        return True

    def explain_extras(self) -> str | None:
        return None

    def as_summary_string(self) -> str:
        mark = "" if self._time is None else f" *{self._time}*"
        extras = self.explain_extras()
        return f"`{self._name}` {self._type}{mark}" + (f" {extras}" if extras else "")


@dataclass(frozen=True)
class PhysicalColumn(Column):
    """A physical column."""


@dataclass(frozen=True)
class ComputedColumn(Column):
    """A computed column."""

    expression: Any = None

    def is_physical(self) -> bool:
        return False

    def is_persisted(self) -> bool:
        return False

    def get_expression(self) -> Any:
        return self.expression

    def explain_extras(self) -> str | None:
        return "AS ..."


@dataclass(frozen=True)
class MetadataColumn(Column):
    """A column with metadata of the connector."""

    metadata_key: str | None = None
    virtual: bool = False

    def is_physical(self) -> bool:
        return False

    def is_persisted(self) -> bool:
        return not self.virtual

    def is_virtual(self) -> bool:
        return self.virtual

    def get_metadata_key(self) -> str | None:
        return self.metadata_key

    def explain_extras(self) -> str | None:
        key = f" FROM '{self.metadata_key}'" if self.metadata_key else ""
        return f"METADATA{key}{' VIRTUAL' if self.virtual else ''}"


@dataclass(frozen=True)
class WatermarkSpec:
    """WATERMARK FOR column AS expression."""

    column: str
    expression: Any

    @staticmethod
    def of(rowtime_attribute: str, watermark_expression: Any) -> WatermarkSpec:
        """Create a watermark specification."""
        return WatermarkSpec(rowtime_attribute, watermark_expression)

    def get_rowtime_attribute(self) -> str:
        return self.column

    def get_watermark_expression(self) -> Any:
        return self.expression

    def as_summary_string(self) -> str:
        return f"WATERMARK FOR `{self.column}` AS {self.expression}"


@dataclass(frozen=True)
class UniqueConstraint(Constraint):
    """A primary key, which is not enforced."""

    name: str
    columns: tuple[str, ...]

    @staticmethod
    def primary_key(name: str, columns: Sequence[str]) -> UniqueConstraint:
        """Create a primary key."""
        return UniqueConstraint(name, tuple(columns))

    def get_name(self) -> str:
        return self.name

    def get_columns(self) -> list[str]:
        return list(self.columns)

    def get_type_string(self) -> str:
        return "PRIMARY KEY"

    def as_summary_string(self) -> str:
        keys = ", ".join(f"`{column}`" for column in self.columns)
        return f"CONSTRAINT `{self.name}` PRIMARY KEY ({keys}) NOT ENFORCED"


@dataclass(frozen=True)
class ResolvedSchema:
    """Columns, watermarks, primary key."""

    columns: tuple[Column, ...] = ()
    watermarks: tuple[WatermarkSpec, ...] = ()
    key: UniqueConstraint | None = None

    @staticmethod
    def of(columns: Sequence[Column]) -> ResolvedSchema:
        """Create a schema from columns."""
        return ResolvedSchema(tuple(columns))

    @staticmethod
    def physical(column_names: Sequence[str], column_data_types: Sequence[DataType]) -> ResolvedSchema:
        """Create a schema of physical columns."""
        pairs = zip(column_names, column_data_types, strict=True)
        return ResolvedSchema(tuple(PhysicalColumn(name, data_type) for name, data_type in pairs))

    def get_column_count(self) -> int:
        return len(self.columns)

    def get_columns(self) -> list[Column]:
        return list(self.columns)

    def get_column(self, column_index_or_name: int | str) -> Column | None:
        if isinstance(column_index_or_name, int):
            inside = 0 <= column_index_or_name < len(self.columns)
            return self.columns[column_index_or_name] if inside else None
        return next((column for column in self.columns if column.get_name() == column_index_or_name), None)

    def get_column_names(self) -> list[str]:
        return [column.get_name() for column in self.columns]

    def get_column_data_types(self) -> list[DataType]:
        return [column.get_data_type() for column in self.columns]

    def get_watermark_specs(self) -> list[WatermarkSpec]:
        return list(self.watermarks)

    def get_primary_key(self) -> UniqueConstraint | None:
        return self.key

    def get_primary_key_indexes(self) -> list[int]:
        names = self.get_column_names()
        return [] if self.key is None else [names.index(name) for name in self.key.columns]

    def to_physical_row_data_type(self) -> DataType:
        return self._row([column for column in self.columns if column.is_physical()])

    def to_source_row_data_type(self) -> DataType:
        return self._row(self.columns)

    def to_sink_row_data_type(self) -> DataType:
        return self._row([column for column in self.columns if column.is_persisted()])

    def _row(self, columns: Sequence[Column]) -> DataType:
        return RowType(tuple(RowField(one.get_name(), one.get_data_type()) for one in columns), _nullable=False)

    def __str__(self) -> str:
        lines = [f"  {column.as_summary_string()}" for column in self.columns]
        lines += [f"  {spec.as_summary_string()}" for spec in self.watermarks]
        lines += [] if self.key is None else [f"  {self.key.as_summary_string()}"]
        return "(\n" + ",\n".join(lines) + "\n)"


def resolved_schema(relation: Rel) -> ResolvedSchema:
    """Return the columns of a relation."""
    return ResolvedSchema.of(
        [
            PhysicalColumn(field.name, field.type, _time=None if field.time is None else field.time.value)
            for field in relation.fields
        ]
    )
