"""Objects of a catalog besides tables: functions, partitions, statistics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from importlib import import_module
from typing import Any, Self

from penstock.common.configuration import Configuration
from penstock.util.exceptions import CatalogException, ValidationException


class _ConstraintType(Enum):
    """The kinds of constraints."""

    PRIMARY_KEY = 0
    UNIQUE_KEY = 1


class Constraint:
    """A constraint of a table. The only kind is the primary key, which is not enforced."""

    ConstraintType = _ConstraintType

    def get_name(self) -> str:
        """Return the name."""
        raise NotImplementedError

    def get_type(self) -> _ConstraintType:
        """Return the kind."""
        return _ConstraintType.PRIMARY_KEY

    def is_enforced(self) -> bool:
        """Return False: constraints are not enforced."""
        return False

    def as_summary_string(self) -> str:
        """Return the constraint in SQL."""
        raise NotImplementedError


@dataclass(frozen=True)
class CatalogFunction:
    """A function, identified by the name of its Python object.

    >>> CatalogFunction.create_instance("shop.functions.discount").get_function_language()
    'PYTHON'
    """

    class_name: str
    function_language: str = "PYTHON"

    @staticmethod
    def create_instance(class_name: str, function_language: str = "Python") -> CatalogFunction:
        """Create a function from module and name."""
        return CatalogFunction(class_name, function_language.upper())

    def get_class_name(self) -> str:
        return self.class_name

    def get_function_language(self) -> str:
        return self.function_language

    def get_options(self) -> dict[str, str]:
        return {}

    def get_description(self) -> str | None:
        return "This is a user-defined function"

    def get_detailed_description(self) -> str | None:
        return f"This is a user-defined function '{self.class_name}'"

    def copy(self) -> CatalogFunction:
        return replace(self)


@dataclass(frozen=True)
class CatalogPartitionSpec:
    """The values of partition columns.

    >>> CatalogPartitionSpec({"day": "2024-01-01"}).get_partition_spec()
    {'day': '2024-01-01'}
    """

    partition_spec: dict[str, str]

    def get_partition_spec(self) -> dict[str, str]:
        return dict(self.partition_spec)


@dataclass(frozen=True)
class CatalogObject:
    """A catalog object that has only properties and a comment."""

    properties: dict[str, str] = field(default_factory=dict)
    comment: str | None = None

    @classmethod
    def create_instance(cls, properties: dict[str, str], comment: str | None = None) -> Self:
        """Create it from properties and a comment."""
        return cls(dict(properties), comment)

    def get_properties(self) -> dict[str, str]:
        return dict(self.properties)

    def get_comment(self) -> str | None:
        return self.comment

    def get_description(self) -> str | None:
        return self.comment

    def get_detailed_description(self) -> str | None:
        return self.comment

    def copy(self) -> Self:
        return type(self)(dict(self.properties), self.comment)


class CatalogDatabase(CatalogObject):
    """A database: its properties and its comment."""


class CatalogPartition(CatalogObject):
    """The properties of a partition."""


@dataclass(frozen=True)
class CatalogTableStatistics:
    """Statistics about the size of a table."""

    row_count: int | None = None
    field_count: int | None = None
    total_size: int | None = None
    raw_data_size: int | None = None
    properties: dict[str, str] | None = None

    def get_row_count(self) -> int | None:
        return self.row_count

    def get_field_count(self) -> int | None:
        return self.field_count

    def get_total_size(self) -> int | None:
        return self.total_size

    def get_raw_data_size(self) -> int | None:
        return self.raw_data_size

    def get_properties(self) -> dict[str, str]:
        return dict(self.properties or {})

    def copy(self) -> CatalogTableStatistics:
        return replace(self)


@dataclass(frozen=True)
class CatalogColumnStatistics:
    """Statistics about the columns of a table."""

    column_statistics_data: dict[str, Any] | None = None
    properties: dict[str, str] | None = None

    def get_column_statistics_data(self) -> dict[str, Any]:
        return dict(self.column_statistics_data or {})

    def get_properties(self) -> dict[str, str]:
        return dict(self.properties or {})

    def copy(self) -> CatalogColumnStatistics:
        return replace(self)


@dataclass(frozen=True)
class CatalogDescriptor:
    """The definition of a catalog: its name, configuration and comment."""

    catalog_name: str
    configuration: Configuration
    comment: str | None = None

    @staticmethod
    def of(catalog_name: str, configuration: Configuration, comment: str | None = None) -> CatalogDescriptor:
        """Create a descriptor from its parts."""
        return CatalogDescriptor(catalog_name, configuration, comment)


Partitioned = tuple[str, frozenset[tuple[str, str]]]
"""A table and the values of its partition columns; without values for the table as a whole."""


@dataclass(slots=True)
class CatalogExtras:
    """The partitions and statistics of the tables of one catalog."""

    partitions: dict[Partitioned, CatalogPartition] = field(default_factory=dict)
    statistics: dict[Partitioned, CatalogTableStatistics] = field(default_factory=dict)
    column_statistics: dict[Partitioned, CatalogColumnStatistics] = field(default_factory=dict)
    functions: dict[str, CatalogFunction] = field(default_factory=dict)
    """Functions as they were declared, by database and name."""


class ExtrasOfCatalog:
    """The methods of a catalog for partitions and statistics."""

    _extras: CatalogExtras

    def get_table(self, table_path: Any) -> Any:
        """Return a table, or raise a CatalogException if it does not exist."""
        raise NotImplementedError

    def _table(self, path: Any, *, missing: bool = False) -> bool:
        """Return whether the table exists. Raise an error if it does not, unless `missing` is True."""
        try:
            self.get_table(path)
        except CatalogException:
            if missing:
                return False
            raise
        return True

    def _partition(self, path: Any, spec: CatalogPartitionSpec) -> Partitioned:
        key = _key(path, spec)
        if key not in self._extras.partitions:
            raise CatalogException(f"Partition {spec.partition_spec} of table {path} does not exist.")
        return key

    # Partitions

    def list_partitions(self, table_path: Any, partition_spec: CatalogPartitionSpec | None = None) -> list[Any]:
        """Return the partitions of a table, or those with some values."""
        self._table(table_path)
        wanted = set() if partition_spec is None else set(partition_spec.partition_spec.items())
        return [
            CatalogPartitionSpec(dict(sorted(values)))
            for name, values in self._extras.partitions
            if name == str(table_path) and wanted <= values
        ]

    def get_partition(self, table_path: Any, partition_spec: CatalogPartitionSpec) -> CatalogPartition:
        return self._extras.partitions[self._partition(table_path, partition_spec)]

    def partition_exists(self, table_path: Any, partition_spec: CatalogPartitionSpec) -> bool:
        return _key(table_path, partition_spec) in self._extras.partitions

    def create_partition(
        self, table_path: Any, partition_spec: CatalogPartitionSpec, partition: CatalogPartition, ignore_if_exists: bool
    ) -> None:
        """Create a partition. All partition columns of the table need a value."""
        keys = set(self.get_table(table_path).entry.partition_keys)
        if keys != set(partition_spec.partition_spec):
            raise CatalogException(
                f"PartitionSpec {partition_spec.partition_spec} does not match partition keys {sorted(keys)} of table "
                f"{table_path}."
            )
        if self.partition_exists(table_path, partition_spec):
            if ignore_if_exists:
                return
            raise CatalogException(f"Partition {partition_spec.partition_spec} of table {table_path} already exists.")
        self._extras.partitions[_key(table_path, partition_spec)] = partition

    def alter_partition(
        self,
        table_path: Any,
        partition_spec: CatalogPartitionSpec,
        new_partition: CatalogPartition,
        ignore_if_not_exists: bool,
    ) -> None:
        if ignore_if_not_exists and not self.partition_exists(table_path, partition_spec):
            return
        self._extras.partitions[self._partition(table_path, partition_spec)] = new_partition

    def drop_partition(self, table_path: Any, partition_spec: CatalogPartitionSpec, ignore_if_not_exists: bool) -> None:
        if ignore_if_not_exists and not self.partition_exists(table_path, partition_spec):
            return
        del self._extras.partitions[self._partition(table_path, partition_spec)]

    # Statistics

    def get_table_statistics(self, table_path: Any) -> CatalogTableStatistics:
        self._table(table_path)
        return self._extras.statistics.get(_key(table_path), CatalogTableStatistics(-1, -1, -1, -1, {}))

    def get_table_column_statistics(self, table_path: Any) -> CatalogColumnStatistics:
        self._table(table_path)
        return self._extras.column_statistics.get(_key(table_path), CatalogColumnStatistics({}, {}))

    def get_partition_statistics(self, table_path: Any, partition_spec: CatalogPartitionSpec) -> CatalogTableStatistics:
        key = self._partition(table_path, partition_spec)
        return self._extras.statistics.get(key, CatalogTableStatistics(-1, -1, -1, -1, {}))

    def get_partition_column_statistics(
        self, table_path: Any, partition_spec: CatalogPartitionSpec
    ) -> CatalogColumnStatistics:
        key = self._partition(table_path, partition_spec)
        return self._extras.column_statistics.get(key, CatalogColumnStatistics({}, {}))

    def bulk_get_partition_statistics(
        self, table_path: Any, partition_specs: list[CatalogPartitionSpec]
    ) -> list[CatalogTableStatistics]:
        return [self.get_partition_statistics(table_path, spec) for spec in partition_specs]

    def bulk_get_partition_column_statistics(
        self, table_path: Any, partition_specs: list[CatalogPartitionSpec]
    ) -> list[CatalogColumnStatistics]:
        return [self.get_partition_column_statistics(table_path, spec) for spec in partition_specs]

    def alter_table_statistics(
        self, table_path: Any, table_statistics: CatalogTableStatistics, ignore_if_not_exists: bool
    ) -> None:
        if self._table(table_path, missing=ignore_if_not_exists):
            self._extras.statistics[_key(table_path)] = table_statistics

    def alter_table_column_statistics(
        self, table_path: Any, column_statistics: CatalogColumnStatistics, ignore_if_not_exists: bool
    ) -> None:
        if self._table(table_path, missing=ignore_if_not_exists):
            self._extras.column_statistics[_key(table_path)] = column_statistics

    def alter_partition_statistics(
        self,
        table_path: Any,
        partition_spec: CatalogPartitionSpec,
        partition_statistics: CatalogTableStatistics,
        ignore_if_not_exists: bool,
    ) -> None:
        if not ignore_if_not_exists or self.partition_exists(table_path, partition_spec):
            self._extras.statistics[self._partition(table_path, partition_spec)] = partition_statistics

    def alter_partition_column_statistics(
        self,
        table_path: Any,
        partition_spec: CatalogPartitionSpec,
        column_statistics: CatalogColumnStatistics,
        ignore_if_not_exists: bool,
    ) -> None:
        if not ignore_if_not_exists or self.partition_exists(table_path, partition_spec):
            self._extras.column_statistics[self._partition(table_path, partition_spec)] = column_statistics


def _key(path: Any, spec: CatalogPartitionSpec | None = None) -> Partitioned:
    return str(path), frozenset(() if spec is None else spec.partition_spec.items())


def imported(target: str) -> Any:
    """Import the Python object ``module.name``."""
    module, _, name = target.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValidationException(f"function '{target}' cannot be imported: {error}") from error
