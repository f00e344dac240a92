"""The legacy schema: names and types."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.table.types import DataType, RowField, RowType

__all__ = ["TableSchema"]


class TableSchema:
    """Names and types of columns."""

    def __init__(self, field_names: Sequence[str] = (), data_types: Sequence[DataType] = ()) -> None:
        self.names = list(field_names)
        self.types = list(data_types)

    def copy(self) -> TableSchema:
        return TableSchema(self.names, self.types)

    def get_field_data_types(self) -> list[DataType]:
        return list(self.types)

    def get_field_data_type(self, field: int | str) -> DataType | None:
        index = self.names.index(field) if isinstance(field, str) and field in self.names else field
        return self.types[index] if isinstance(index, int) and 0 <= index < len(self.types) else None

    def get_field_count(self) -> int:
        return len(self.names)

    def get_field_names(self) -> list[str]:
        return list(self.names)

    def get_field_name(self, field_index: int) -> str | None:
        return self.names[field_index] if 0 <= field_index < len(self.names) else None

    def to_row_data_type(self) -> RowType:
        fields = tuple(RowField(*pair) for pair in zip(self.names, self.types, strict=True))
        return RowType(fields, _nullable=False)

    def __repr__(self) -> str:
        lines = [f" |-- {name}: {data_type}" for name, data_type in zip(self.names, self.types, strict=True)]
        return "root\n" + "\n".join(lines) + "\n"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableSchema) and (self.names, self.types) == (other.names, other.types)

    def __hash__(self) -> int:
        return hash((tuple(self.names), tuple(self.types)))

    @classmethod
    def builder(cls) -> Builder:
        """Create a builder."""
        return Builder()


class Builder:
    """Collects fields."""

    def __init__(self) -> None:
        self._schema = TableSchema()

    def field(self, name: str, data_type: DataType) -> Builder:
        """Add a field."""
        self._schema.names.append(name)
        self._schema.types.append(data_type)
        return self

    def build(self) -> TableSchema:
        """Build the schema."""
        return self._schema.copy()


TableSchema.Builder = Builder  # type: ignore[attr-defined]
