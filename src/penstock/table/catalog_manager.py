"""The names of catalogs, databases, tables, views and functions (T121)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.table.catalog_objects import CatalogExtras
from penstock.table.plan.nodes.base import Rel
from penstock.table.schema import Schema
from penstock.util.exceptions import CatalogException, ValidationException

DEFAULT_CATALOG, DEFAULT_DATABASE = "default_catalog", "default_database"

Path = tuple[str, str, str]
"""Catalog, database, object."""


@dataclass(frozen=True, slots=True)
class TableEntry:
    """The definition of a table in CREATE TABLE. Its connector is looked up when the table is used (T120)."""

    schema: Schema
    options: dict[str, str]
    partition_keys: tuple[str, ...] = ()
    comment: str | None = None

    kind = "TABLE"


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """A view: a relation, and the query it was created from, if any."""

    relation: Rel
    query: str | None = None
    comment: str | None = None

    kind = "VIEW"


Entry = TableEntry | ViewEntry


@dataclass(slots=True)
class Database:
    """Tables and functions of one database."""

    entries: dict[str, Entry] = field(default_factory=dict)
    functions: dict[str, Any] = field(default_factory=dict)
    comment: str | None = None
    options: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class InMemoryCatalog:
    """The databases of one catalog. They live as long as the environment."""

    databases: dict[str, Database] = field(default_factory=lambda: {DEFAULT_DATABASE: Database()})
    default_database: str = DEFAULT_DATABASE
    options: dict[str, str] = field(default_factory=dict)
    extras: CatalogExtras = field(default_factory=CatalogExtras)


class CatalogManager:
    """Resolves names and manages the objects behind them."""

    def __init__(self) -> None:
        self.catalogs: dict[str, InMemoryCatalog] = {DEFAULT_CATALOG: InMemoryCatalog()}
        self.current_catalog = DEFAULT_CATALOG
        self.current_database = DEFAULT_DATABASE
        self.temporary: dict[Path, Entry] = {}
        self.temporary_functions: dict[Path, Any] = {}
        self.system_functions: dict[str, Any] = {}

    # -- names --------------------------------------------------------------------------------------------------

    def qualify(self, path: tuple[str, ...]) -> Path:
        """Return the full path of a name."""
        match path:
            case (name,):
                return self.current_catalog, self.current_database, name
            case (database, name):
                return self.current_catalog, database, name
            case (catalog, database, name):
                return catalog, database, name
        raise ValidationException(f"'{'.'.join(path)}' is not the name of a table: it has more than three parts")

    def database(self, catalog: str, database: str) -> Database:
        """Return a database, or raise a CatalogException if it does not exist."""
        found = self.catalogs.get(catalog)
        if found is None:
            raise CatalogException(f"A catalog with name [{catalog}] does not exist.")
        if database not in found.databases:
            raise CatalogException(f"A database with name [{database}] does not exist in the catalog: [{catalog}].")
        return found.databases[database]

    # -- tables and views ---------------------------------------------------------------------------------------

    def find(self, path: tuple[str, ...]) -> Entry | None:
        """Return a table or view. Temporary ones hide permanent ones with the same path."""
        full = self.qualify(path)
        if full in self.temporary:
            return self.temporary[full]
        catalog = self.catalogs.get(full[0])
        database = None if catalog is None else catalog.databases.get(full[1])
        return None if database is None else database.entries.get(full[2])

    def create(self, path: tuple[str, ...], entry: Entry, *, temporary: bool, ignore_if_exists: bool = False) -> bool:
        """Create a table or view. Return whether it was created."""
        full = self.qualify(path)
        entries = self.temporary if temporary else self.database(full[0], full[1]).entries
        key: Any = full if temporary else full[2]
        if key in entries:
            if ignore_if_exists:
                return False
            what = "Temporary table" if temporary else "Could not execute CreateTable: a table"
            raise ValidationException(f"{what} '{'.'.join(full)}' already exists")
        entries[key] = entry
        return True

    def replace(self, path: tuple[str, ...], entry: Entry) -> None:
        """Replace the table or view of a name."""
        full = self.qualify(path)
        if full in self.temporary:
            self.temporary[full] = entry
        else:
            self.database(full[0], full[1]).entries[full[2]] = entry

    def drop(self, path: tuple[str, ...], kind: str, *, temporary: bool | None, if_exists: bool) -> bool:
        """Drop a table or view. Return whether it existed."""
        full = self.qualify(path)
        held = self.temporary.get(full)
        catalog = self.catalogs.get(full[0])
        database = None if catalog is None else catalog.databases.get(full[1])
        entry = None if database is None else database.entries.get(full[2])
        both = held is not None and held.kind == kind and entry is not None and entry.kind == kind
        if temporary is not False and held is not None and held.kind == kind and (temporary or not both):
            del self.temporary[full]
            return True
        if temporary is not True and database is not None and entry is not None and entry.kind == kind:
            if both and temporary is None:
                raise ValidationException(
                    f"Temporary {kind.lower()} with identifier '{'.'.join(full)}' exists. "
                    f"Drop it first before removing the permanent {kind.lower()}."
                )
            del database.entries[full[2]]
            return True
        if if_exists:
            return False
        raise ValidationException(f"{kind.title()} with identifier '{'.'.join(full)}' does not exist.")

    def rename(self, path: tuple[str, ...], new_name: tuple[str, ...]) -> None:
        """Rename a permanent table."""
        full, target = self.qualify(path), self.qualify(new_name)
        source, goal = self.database(full[0], full[1]).entries, self.database(target[0], target[1]).entries
        if target[2] in goal:
            raise ValidationException(f"Table with identifier '{'.'.join(target)}' already exists.")
        goal[target[2]] = source.pop(full[2])

    def names(self, wanted: Callable[[Entry], bool] = lambda entry: True, *, temporary: bool = False) -> list[str]:
        """Return the tables and views of the current database, sorted."""
        prefix = (self.current_catalog, self.current_database)
        found = {path[2] for path, entry in self.temporary.items() if path[:2] == prefix and wanted(entry)}
        if not temporary:
            entries = self.database(*prefix).entries
            found |= {name for name, entry in entries.items() if wanted(entry)}
        return sorted(found)

    # -- functions ----------------------------------------------------------------------------------------------

    def find_function(self, name: str) -> Any | None:
        """Return a user-defined function. Names are case-insensitive."""
        parts = tuple(name.split("."))
        if len(parts) == 1 and name.lower() in self.system_functions:
            return self.system_functions[name.lower()]
        full = self.qualify((*parts[:-1], parts[-1].lower()))
        if full in self.temporary_functions:
            return self.temporary_functions[full]
        catalog = self.catalogs.get(full[0])
        database = None if catalog is None else catalog.databases.get(full[1])
        return None if database is None else database.functions.get(full[2])

    # -- databases and catalogs ---------------------------------------------------------------------------------

    def use_catalog(self, name: str) -> None:
        """Make a catalog the current one."""
        if name not in self.catalogs:
            raise CatalogException(f"A catalog with name [{name}] does not exist.")
        self.current_catalog = name
        self.current_database = self.catalogs[name].default_database

    def use_database(self, name: str, catalog: str | None = None) -> None:
        """Make a database the current one."""
        self.database(catalog or self.current_catalog, name)
        if catalog is not None:
            self.current_catalog = catalog
        self.current_database = name

    def with_options(self, entry: TableEntry, options: dict[str, str]) -> TableEntry:
        """Return a table with the options of a hint (T122)."""
        return replace(entry, options={**entry.options, **options})
