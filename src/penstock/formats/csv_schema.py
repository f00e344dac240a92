"""The columns and the dialect of CSV files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from penstock.common.errors import InvalidProgramError
from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types
from penstock.core.table.type_information import as_type_information

__all__ = ["CsvSchema", "CsvSchemaBuilder"]


@dataclass(frozen=True)
class Dialect:
    """The characters that separate and quote fields."""

    separator: str = ","
    quote: str | None = '"'
    escape: str | None = None
    null: str | None = None
    line_separator: str = "\n"
    array_separator: str | None = ";"
    column_array_separators: Mapping[str, str] = field(default_factory=dict)
    comments: bool = False

    def array_separator_of(self, column: str) -> str | None:
        """Return the separator between the elements of a column."""
        return self.column_array_separators.get(column, self.array_separator)


@dataclass(frozen=True)
class CsvSchema:
    """Columns, their types, and the dialect.

    >>> schema = CsvSchema.builder().add_string_column("name").add_number_column("age", Types.INT()).build()
    >>> len(schema), schema.row_type
    (2, RowTypeInfo(name: String, age: Integer))
    """

    row_type: RowTypeInfo
    dialect: Dialect = field(default_factory=Dialect)
    use_header: bool = False
    skip_first_data_row: bool = False
    strict_headers: bool = False

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        return CsvSchemaBuilder()

    def size(self) -> int:
        """Return the number of columns."""
        return len(self.row_type.get_field_names())

    def __len__(self) -> int:
        return self.size()

    def __iter__(self) -> Iterator[str]:
        return iter(self.row_type.get_field_names())


class CsvSchemaBuilder:
    """Collects columns and settings."""

    def __init__(self) -> None:
        self._columns: dict[str, TypeInformation] = {}
        self._dialect = Dialect()
        self._use_header = self._skip_first = self._strict = False

    def _with(self, **changes: object) -> CsvSchemaBuilder:
        self._dialect = replace(self._dialect, **changes)  # type: ignore[arg-type]
        return self

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        return self._add(name, Types.STRING())

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        return self._add(name, Types.BOOLEAN())

    def add_number_column(self, name: str, number_type: TypeInformation | None = None) -> CsvSchemaBuilder:
        """Add a column of numbers. The default type is ``Types.BIG_INT()``."""
        return self._add(name, as_type_information(number_type) or Types.BIG_INT())

    def add_array_column(
        self, name: str, separator: str = ";", element_type: TypeInformation | None = None
    ) -> CsvSchemaBuilder:
        """Add a column of several values with a separator between them."""
        self._with(column_array_separators={**self._dialect.column_array_separators, name: separator})
        return self._add(name, Types.BASIC_ARRAY(as_type_information(element_type) or Types.STRING()))

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """Add the columns of another schema, with the separators of their arrays."""
        separators = {**self._dialect.column_array_separators, **schema.dialect.column_array_separators}
        self._with(column_array_separators=separators)
        for name, kind in zip(schema, schema.row_type.get_field_types(), strict=True):
            self._add(name, kind)
        return self

    def _add(self, name: str, kind: TypeInformation) -> CsvSchemaBuilder:
        if name in self._columns:
            raise InvalidProgramError(f"the CSV schema has two columns {name!r}")
        self._columns[name] = kind
        return self

    def clear_columns(self) -> CsvSchemaBuilder:
        self._columns.clear()
        return self._with(column_array_separators={})

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        return self._with(separator=_one(char, "column separator"))

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        return self._with(quote=_one(char, "quote character"))

    def disable_quote_char(self) -> CsvSchemaBuilder:
        return self._with(quote=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        return self._with(escape=_one(char, "escape character"))

    def disable_escape_char(self) -> CsvSchemaBuilder:
        return self._with(escape=None)

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        return self._with(line_separator=separator)

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """Set the default separator of array elements."""
        return self._with(array_separator=separator)

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        return self._with(array_separator=None)

    remove_array_element_separator = disable_array_element_separator

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """Set the text that means NULL."""
        return self._with(null=null_value)

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Set whether to skip lines that begin with ``#``."""
        return self._with(comments=allow)

    def set_any_property_name(self, name: str) -> CsvSchemaBuilder:
        """Raise an error. Flink collects fields without a column under this name; here they are an error."""
        raise InvalidProgramError("CSV fields without a column are an error: a name for them is not supported")

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Set whether to skip the first line of each file."""
        self._skip_first = skip
        return self

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """Set whether to reject files whose header differs from the columns in name or order."""
        self._strict = strict
        return self

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Set whether the first line of each file names its columns, in any order. Unknown names are skipped."""
        self._use_header = use
        return self

    def size(self) -> int:
        return len(self._columns)

    def __len__(self) -> int:
        return self.size()

    def build(self) -> CsvSchema:
        if not self._columns:
            raise InvalidProgramError("a CSV schema needs at least one column")
        row_type = Types.ROW_NAMED(list(self._columns), list(self._columns.values()))
        return CsvSchema(row_type, self._dialect, self._use_header, self._skip_first, self._strict)


def _one(char: str, label: str) -> str:
    if len(char) != 1:
        raise InvalidProgramError(f"the {label} must be one character, got {char!r}")
    return char
