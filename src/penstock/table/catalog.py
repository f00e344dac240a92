"""The catalog API: databases, tables and views by name (T121)."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.table.catalog_manager import Database, InMemoryCatalog, TableEntry, ViewEntry
from penstock.table.catalog_objects import (
    CatalogColumnStatistics,
    CatalogDatabase,
    CatalogDescriptor,
    CatalogFunction,
    CatalogPartition,
    CatalogPartitionSpec,
    CatalogTableStatistics,
    Constraint,
    ExtrasOfCatalog,
    imported,
)
from penstock.table.resolved_schema import (
    Column,
    ComputedColumn,
    MetadataColumn,
    PhysicalColumn,
    ResolvedSchema,
    UniqueConstraint,
    WatermarkSpec,
)
from penstock.table.schema import Schema
from penstock.util.exceptions import CatalogException

__all__ = [
    "Catalog",
    "CatalogBaseTable",
    "CatalogColumnStatistics",
    "CatalogDatabase",
    "CatalogDescriptor",
    "CatalogFunction",
    "CatalogPartition",
    "CatalogPartitionSpec",
    "CatalogTableStatistics",
    "Column",
    "ComputedColumn",
    "Constraint",
    "MetadataColumn",
    "ObjectIdentifier",
    "ObjectPath",
    "PhysicalColumn",
    "ResolvedSchema",
    "UniqueConstraint",
    "WatermarkSpec",
]


@dataclass(frozen=True)
class ObjectPath:
    """The path of an object: database and object name.

    >>> ObjectPath.from_string("shop.orders").get_object_name()
    'orders'
    """

    database_name: str
    object_name: str

    @staticmethod
    def from_string(full_name: str) -> ObjectPath:
        """Parse ``database.object``."""
        database, dot, name = full_name.partition(".")
        if not dot or not database or not name or "." in name:
            raise CatalogException(f"'{full_name}' is not a path: write 'database.object'")
        return ObjectPath(database, name)

    def get_database_name(self) -> str:
        return self.database_name

    def get_object_name(self) -> str:
        return self.object_name

    def get_full_name(self) -> str:
        return f"{self.database_name}.{self.object_name}"

    def compare_to(self, other: ObjectPath) -> int:
        """Compare full names. Return -1, 0 or 1."""
        one, two = self.get_full_name(), other.get_full_name()
        return (one > two) - (one < two)

    def __str__(self) -> str:
        return self.get_full_name()


@dataclass(frozen=True)
class ObjectIdentifier:
    """The full path of an object: catalog, database and object name.

    >>> ObjectIdentifier.of("c", "d", "o").as_serializable_string()
    '`c`.`d`.`o`'
    """

    catalog_name: str
    database_name: str
    object_name: str

    @staticmethod
    def of(catalog_name: str, database_name: str, object_name: str) -> ObjectIdentifier:
        """Create an identifier from its three parts."""
        return ObjectIdentifier(catalog_name, database_name, object_name)

    def get_catalog_name(self) -> str:
        return self.catalog_name

    def get_database_name(self) -> str:
        return self.database_name

    def get_object_name(self) -> str:
        return self.object_name

    def to_object_path(self) -> ObjectPath:
        return ObjectPath(self.database_name, self.object_name)

    def to_list(self) -> list[str]:
        return [self.catalog_name, self.database_name, self.object_name]

    def as_serializable_string(self) -> str:
        """Return the identifier with backticks."""
        return ".".join(f"`{part}`" for part in self.to_list())

    def as_summary_string(self) -> str:
        """Return the identifier without backticks."""
        return ".".join(self.to_list())


@dataclass(frozen=True)
class CatalogBaseTable:
    """A table of a catalog."""

    entry: TableEntry | ViewEntry

    @staticmethod
    def create_table(
        schema: Schema,
        partition_keys: list[str] | None = None,
        options: dict[str, str] | None = None,
        comment: str | None = None,
    ) -> CatalogBaseTable:
        """Create a table from its schema and options."""
        return CatalogBaseTable(TableEntry(schema, dict(options or {}), tuple(partition_keys or ()), comment))

    def get_options(self) -> dict[str, str]:
        return dict(self.entry.options) if isinstance(self.entry, TableEntry) else {}

    def get_unresolved_schema(self) -> Schema:
        """Return the declared schema. Views have none."""
        if isinstance(self.entry, TableEntry):
            return self.entry.schema
        raise CatalogException("a view has no schema of its own: use from_path(...).get_resolved_schema()")

    def get_comment(self) -> str | None:
        return self.entry.comment

    def get_description(self) -> str | None:
        return self.entry.comment

    def get_detailed_description(self) -> str | None:
        return self.entry.comment

    def copy(self) -> CatalogBaseTable:
        return CatalogBaseTable(self.entry)


class Catalog(ExtrasOfCatalog):
    """A catalog of an environment, which SHOW and CREATE use."""

    def __init__(self, name: str, catalog: InMemoryCatalog | None = None) -> None:
        self._name = name
        self._catalog = InMemoryCatalog() if catalog is None else catalog
        self._extras = self._catalog.extras

    @property
    def content(self) -> InMemoryCatalog:
        """The content of the catalog."""
        return self._catalog

    def _database(self, name: str) -> Database:
        found = self._catalog.databases.get(name)
        if found is None:
            raise CatalogException(f"Database {name} does not exist in Catalog {self._name}.")
        return found

    # Databases

    def get_default_database(self) -> str:
        return self._catalog.default_database

    def list_databases(self) -> list[str]:
        return sorted(self._catalog.databases)

    def database_exists(self, database_name: str) -> bool:
        return database_name in self._catalog.databases

    def get_database(self, database_name: str) -> CatalogDatabase:
        found = self._database(database_name)
        return CatalogDatabase(dict(found.options), found.comment)

    def create_database(self, name: str, database: CatalogDatabase, ignore_if_exists: bool) -> None:
        if name in self._catalog.databases:
            if ignore_if_exists:
                return
            raise CatalogException(f"Database {name} already exists in Catalog {self._name}.")
        self._catalog.databases[name] = Database(comment=database.comment, options=dict(database.properties))

    def drop_database(self, name: str, ignore_if_exists: bool) -> None:
        if name not in self._catalog.databases and ignore_if_exists:
            return
        if self._database(name).entries:
            raise CatalogException(f"Database {name} in catalog {self._name} is not empty.")
        del self._catalog.databases[name]

    def alter_database(self, name: str, new_database: CatalogDatabase, ignore_if_not_exists: bool) -> None:
        """Replace the properties and the comment of a database."""
        if ignore_if_not_exists and not self.database_exists(name):
            return
        found = self._database(name)
        found.comment, found.options = new_database.comment, dict(new_database.properties)

    # Tables and views

    def list_tables(self, database_name: str) -> list[str]:
        return sorted(self._database(database_name).entries)

    def list_views(self, database_name: str) -> list[str]:
        entries = self._database(database_name).entries
        return sorted(name for name, entry in entries.items() if isinstance(entry, ViewEntry))

    def table_exists(self, table_path: ObjectPath) -> bool:
        found = self._catalog.databases.get(table_path.database_name)
        return found is not None and table_path.object_name in found.entries

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        entry = self._database(table_path.database_name).entries.get(table_path.object_name)
        if entry is None:
            raise CatalogException(f"Table (or view) {table_path} does not exist in Catalog {self._name}.")
        return CatalogBaseTable(entry)

    def create_table(self, table_path: ObjectPath, table: CatalogBaseTable, ignore_if_exists: bool) -> None:
        entries = self._database(table_path.database_name).entries
        if table_path.object_name in entries:
            if ignore_if_exists:
                return
            raise CatalogException(f"Table (or view) {table_path} already exists in Catalog {self._name}.")
        entries[table_path.object_name] = table.entry

    def drop_table(self, table_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        entries = self._database(table_path.database_name).entries
        if table_path.object_name not in entries:
            if ignore_if_not_exists:
                return
            raise CatalogException(f"Table (or view) {table_path} does not exist in Catalog {self._name}.")
        del entries[table_path.object_name]

    def alter_table(self, table_path: ObjectPath, new_table: CatalogBaseTable, ignore_if_not_exists: bool) -> None:
        """Replace a table."""
        if ignore_if_not_exists and not self.table_exists(table_path):
            return
        self.get_table(table_path)
        self._database(table_path.database_name).entries[table_path.object_name] = new_table.entry

    def list_materialized_tables(self, database_name: str) -> list[str]:
        """Return an empty list: there are no materialized tables here."""
        self._database(database_name)
        return []

    def rename_table(self, table_path: ObjectPath, new_table_name: str, ignore_if_not_exists: bool) -> None:
        entries = self._database(table_path.database_name).entries
        if table_path.object_name not in entries and ignore_if_not_exists:
            return
        renamed = self.get_table(table_path).entry
        if new_table_name in entries:
            raise CatalogException(f"Table (or view) {new_table_name} already exists in Catalog {self._name}.")
        del entries[table_path.object_name]
        entries[new_table_name] = renamed

    # Functions

    def list_functions(self, database_name: str) -> list[str]:
        return sorted(self._database(database_name).functions)

    def get_function(self, function_path: ObjectPath) -> CatalogFunction:
        """Return a function as it was declared."""
        name = function_path.object_name.lower()
        if not self.function_exists(function_path):
            raise CatalogException(f"Function {function_path} does not exist in Catalog {self._name}.")
        known = self._extras.functions.get(f"{function_path.database_name}.{name}")
        return known or CatalogFunction(self._database(function_path.database_name).functions[name].name)

    def create_function(self, function_path: ObjectPath, function: CatalogFunction, ignore_if_exists: bool) -> None:
        """Create a function from the name of its Python object."""
        if self.function_exists(function_path):
            if ignore_if_exists:
                return
            raise CatalogException(f"Function {function_path} already exists in Catalog {self._name}.")
        self._declare(function_path, function)

    def alter_function(
        self, function_path: ObjectPath, new_function: CatalogFunction, ignore_if_not_exists: bool
    ) -> None:
        """Replace a function."""
        if ignore_if_not_exists and not self.function_exists(function_path):
            return
        self.get_function(function_path)
        self._declare(function_path, new_function)

    def drop_function(self, function_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        if ignore_if_not_exists and not self.function_exists(function_path):
            return
        self.get_function(function_path)
        name = function_path.object_name.lower()
        del self._database(function_path.database_name).functions[name]
        self._extras.functions.pop(f"{function_path.database_name}.{name}", None)

    def _declare(self, path: ObjectPath, function: CatalogFunction) -> None:
        from penstock.table.udf import as_function

        if function.function_language != "PYTHON":
            raise CatalogException(f"functions must be written in Python, not in {function.function_language}")
        name = path.object_name.lower()
        made = as_function(imported(function.class_name), name)
        self._database(path.database_name).functions[name] = made
        self._extras.functions[f"{path.database_name}.{name}"] = function

    # Procedures

    def list_procedures(self, database_name: str) -> list[str]:
        """Return an empty list: there are no procedures."""
        self._database(database_name)
        return []

    def get_procedure(self, procedure_path: ObjectPath) -> None:
        """Raise a CatalogException: there are no procedures."""
        raise CatalogException(f"Procedure {procedure_path} does not exist in Catalog {self._name}.")

    def function_exists(self, function_path: ObjectPath) -> bool:
        return function_path.object_name.lower() in self._database(function_path.database_name).functions
