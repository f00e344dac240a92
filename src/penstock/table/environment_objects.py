"""Methods of a table environment for catalog objects, modules, and pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.core.table.types import DataType, DataTypes, RowType
from penstock.table.catalog import Catalog, CatalogDescriptor
from penstock.table.catalog_manager import CatalogManager, Database, InMemoryCatalog
from penstock.table.module import Module, ModuleEntry
from penstock.util.exceptions import CatalogException, ValidationException

if TYPE_CHECKING:
    from penstock.table.table import Table

_CORE = "core"


class ObjectsOfEnvironment:
    """The methods for catalogs, modules and pandas."""

    catalogs: CatalogManager

    if TYPE_CHECKING:

        def from_elements(self, elements: Any, schema: Any = None, verify_schema: bool = True) -> Table:
            """Create a table of Python values."""

    # Catalogs

    def create_catalog(self, catalog_name: str, catalog_descriptor: CatalogDescriptor) -> None:
        """Create an empty catalog."""
        self._check_new(catalog_name)
        options = catalog_descriptor.configuration.to_dict()
        database = options.get("default-database", "default")
        self.catalogs.catalogs[catalog_name] = InMemoryCatalog({database: Database()}, database, options)

    def register_catalog(self, catalog_name: str, catalog: Catalog) -> None:
        """Register a catalog under a name."""
        self._check_new(catalog_name)
        self.catalogs.catalogs[catalog_name] = catalog.content

    def _check_new(self, name: str) -> None:
        if name in self.catalogs.catalogs:
            raise CatalogException(f"Catalog {name} already exists.")

    def drop_function(self, path: str) -> bool:
        """Drop a function of a catalog. Return whether it existed."""
        *prefix, name = parse_path(path)
        catalog, database, function = self.catalogs.qualify((*prefix, name.lower()))
        found = self.catalogs.catalogs.get(catalog)
        if found is None or database not in found.databases:
            return False
        found.extras.functions.pop(f"{database}.{function}", None)
        return found.databases[database].functions.pop(function, None) is not None

    def list_materialized_tables(self) -> list[str]:
        """Return an empty list: there are no materialized tables here."""
        return []

    # Modules

    def list_modules(self) -> list[str]:
        """Return the modules in use."""
        return [entry.name() for entry in self.list_full_modules() if entry.used()]

    def list_full_modules(self) -> list[ModuleEntry]:
        """Return all modules. The only one is `core`, with the built-in functions."""
        return [ModuleEntry(_CORE, True)]

    def use_modules(self, *module_names: str) -> None:
        """Set the modules in use. Only `core` exists, and it is always in use."""
        unknown = [name for name in module_names if name != _CORE]
        if unknown:
            raise ValidationException(f"No module with name '{unknown[0]}' exists")
        if _CORE not in module_names:
            raise ValidationException("the module 'core' has the built-in functions and cannot be left out")

    def load_module(self, module_name: str, module: Module) -> None:
        """Raise an error: `core` is the only module. Register your own functions in a catalog."""
        if module_name == _CORE:
            raise ValidationException("A module with name 'core' already exists")
        raise ValidationException(
            f"module '{module_name}' cannot be loaded: register functions with create_temporary_system_function"
        )

    def unload_module(self, module_name: str) -> None:
        """Raise an error: `core` is the only module, and it cannot be unloaded."""
        if module_name == _CORE:
            raise ValidationException("the module 'core' has the built-in functions and cannot be unloaded")
        raise ValidationException(f"No module with name '{module_name}' exists")

    # pandas

    def from_pandas(self, pdf: Any, schema: Any = None, splits_num: int = 1) -> Table:
        """Create a table from a pandas DataFrame. `schema` is a row type, or the column names or types.

        One task reads the rows; `splits_num` has no effect.
        """
        data = pa.Table.from_pandas(pdf, preserve_index=False)
        if isinstance(schema, RowType):
            return self.from_elements(_rows(data), schema)
        names = list(map(str, data.column_names))
        types = [sql_type(field.type) for field in data.schema]
        given: Sequence[Any] = () if schema is None else list(schema)
        if given and len(given) != len(names):
            raise ValidationException(f"the schema has {len(given)} columns, the DataFrame {len(names)}")
        if given and all(isinstance(one, DataType) for one in given):
            types = list(given)
        elif given:
            names = list(map(str, given))
        fields = [DataTypes.FIELD(name, type_) for name, type_ in zip(names, types, strict=True)]
        return self.from_elements(_rows(data), DataTypes.ROW(fields))


def parse_path(path: str) -> tuple[str, ...]:
    """Return the parts of a path, which may have backticks.

    >>> parse_path("a.`b.c`.d")
    ('a', 'b.c', 'd')
    """
    if not path:
        raise ValidationException(f"{path!r} is not the name of a table")
    parts, current, quoted = [], "", False
    for character in path:
        if character == "`":
            quoted = not quoted
        elif character == "." and not quoted:
            parts.append(current)
            current = ""
        else:
            current += character
    return (*parts, current)


def _rows(data: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in data.columns), strict=True)) if data.num_columns else []


def sql_type(one: pa.DataType) -> DataType:  # noqa: C901 - a case for each type
    """Return the SQL type of an Arrow column.

    >>> sql_type(pa.list_(pa.int32()))
    ARRAY<INT>
    """
    types = pa.types
    if types.is_boolean(one):
        return DataTypes.BOOLEAN()
    if types.is_integer(one):
        bits = one.bit_width if types.is_signed_integer(one) else one.bit_width * 2
        small = {8: DataTypes.TINYINT, 16: DataTypes.SMALLINT, 32: DataTypes.INT}
        return small.get(bits, DataTypes.BIGINT)()
    if types.is_floating(one):
        return DataTypes.DOUBLE() if one.bit_width == 64 else DataTypes.FLOAT()
    if types.is_string(one) or types.is_large_string(one) or types.is_null(one):
        return DataTypes.STRING()
    if types.is_binary(one) or types.is_large_binary(one):
        return DataTypes.BYTES()
    if types.is_decimal(one):
        return DataTypes.DECIMAL(one.precision, one.scale)
    if types.is_date(one):
        return DataTypes.DATE()
    if types.is_time(one):
        return DataTypes.TIME()
    if types.is_timestamp(one):
        precision = {"s": 0, "ms": 3}.get(one.unit, 6)
        return DataTypes.TIMESTAMP(precision) if one.tz is None else DataTypes.TIMESTAMP_LTZ(precision)
    if types.is_list(one) or types.is_large_list(one):
        return DataTypes.ARRAY(sql_type(one.value_type))
    if types.is_map(one):
        return DataTypes.MAP(sql_type(one.key_type), sql_type(one.item_type))
    if types.is_struct(one):
        return DataTypes.ROW(
            [DataTypes.FIELD(one.field(i).name, sql_type(one.field(i).type)) for i in range(one.num_fields)]
        )
    if types.is_dictionary(one):
        return sql_type(one.value_type)
    raise ValidationException(f"columns of type {one} have no SQL type")
