"""The contract of table connectors.

    @connector("datagen")
    class DataGenFactory(ConnectorFactory):
        options = {"rows-per-second": "10000", "number-of-rows": None}

        def source(self, table):
            return DataGenTableSource(table)

A source declares the row kinds that it produces, and creates the transformation that emits column batches with the
table's physical columns, in order. A sink declares the row kinds that it accepts, and creates a
:class:`~penstock.core.sink.Sink` whose writer gets column batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

from penstock.core.sink import Sink
from penstock.core.source import Source
from penstock.core.table.types import DataType
from penstock.runtime.operators.operator import StreamOperator
from penstock.table.plan.nodes.base import INSERT_ONLY, Changelog, Field
from penstock.util.exceptions import ValidationException

MODULES = ("print", "blackhole", "datagen", "filesystem", "kafka", "jdbc")
"""The modules of this package that register connectors."""


@dataclass(frozen=True, slots=True)
class ResolvedTable:
    """A table from the connector's view."""

    name: str
    fields: tuple[Field, ...]
    """The physical columns."""
    options: dict[str, str]
    primary_key: tuple[int, ...] = ()
    """The positions of the key columns among the physical ones."""
    partition_keys: tuple[str, ...] = ()
    metadata: tuple[tuple[str, DataType], ...] = ()
    """Key and type of the requested metadata columns, which follow the physical ones."""

    @property
    def identity(self) -> Any:
        """The identity of the table, which equal tables share."""
        options = frozenset(self.options.items())
        return self.name, self.fields, options, self.primary_key, self.partition_keys, self.metadata

    def option(self, key: str, default: str | None = None) -> str | None:
        """Return the value of an option."""
        return self.options.get(key, default)


class LookupFunction(ABC):
    """Looks up rows by key, one at a time, in a lookup join (T75)."""

    name: str

    @abstractmethod
    def open(self, function_context: Any) -> None:
        """Called before the first row."""

    @abstractmethod
    def close(self) -> None:
        """Called at the end."""

    @abstractmethod
    def eval(self, *keys: Any) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a key."""


class TableSource(ABC):
    """A table as a source."""

    changelog: Changelog = INSERT_ONLY
    upsert: bool = False
    """Whether rows are upserts and deletions by primary key, without `-U` rows."""
    parallel: bool = True
    """Whether several tasks may read in parallel."""

    @abstractmethod
    def create(self) -> Source:
        """Create the source. Its readers yield column batches."""

    def lookup(self, keys: Sequence[int]) -> LookupFunction | None:
        """Return the lookup by some columns, given by position, or None if it is not supported."""
        return None

    def project(self, columns: Sequence[int]) -> TableSource | None:
        """Return the source with only some columns, given by position, or None if that saves nothing."""
        return None


class TableSink(ABC):
    """A table as a sink."""

    accepts: str = "all"
    """``insert``: only inserts; ``upsert``: changes by primary key, without -U; ``all``: all row kinds."""

    rows: bool = False
    """Whether writers get lists of Row objects with row kinds instead of column batches."""

    @abstractmethod
    def create(self) -> Sink:
        """Create the sink. Its writers get column batches, Rows, or the output of the conversion."""

    def conversion(self) -> StreamOperator | None:
        """Return the operator that converts column batches for the writers, or None if they need no conversion."""
        return None


class ConnectorFactory:
    """Creates the sources and sinks of one connector."""

    options: ClassVar[dict[str, str | None]] = {}
    """The known options and their defaults. A key that ends with ``...`` allows all keys with that prefix."""
    required: ClassVar[Sequence[str]] = ()
    formats: ClassVar[bool] = False
    """Whether there is a format with its own options."""
    metadata: ClassVar[dict[str, DataType]] = {}
    """The metadata columns that a source supports."""

    def source(self, table: ResolvedTable) -> TableSource:
        """Return the table as a source."""
        raise ValidationException(f"Connector '{table.options['connector']}' can only be used as a sink.")

    def sink(self, table: ResolvedTable) -> TableSink:
        """Return the table as a sink."""
        raise ValidationException(f"Connector '{table.options['connector']}' can only be used as a source.")

    def check(self, table: ResolvedTable) -> None:
        """Reject missing and unknown options (T120)."""
        missing = [key for key in self.required if key not in table.options]
        if missing:
            raise ValidationException(
                f"One or more required options are missing for table '{table.name}': {', '.join(missing)}"
            )
        known = {"connector", *self.options, *self.required, "scan.parallelism", "sink.parallelism"}
        prefixes = tuple(key[:-3] for key in self.options if key.endswith("..."))
        if self.formats:
            known.add("format")
            known |= {"value.format", "key.format"}
            for prefix in ("", "key.", "value."):
                name = table.options.get(f"{prefix}format")
                if name is not None:
                    prefixes += (f"{prefix}{name}.",)
        unknown = [key for key in table.options if key not in known and not (prefixes and key.startswith(prefixes))]
        if unknown:
            raise ValidationException(
                f"Unsupported options found for '{table.options['connector']}' of table '{table.name}': "
                f"{', '.join(sorted(unknown))}. Supported options: {', '.join(sorted(known))}"
            )


_factories: dict[str, ConnectorFactory] = {}


def connector(name: str) -> Callable[[type[ConnectorFactory]], type[ConnectorFactory]]:
    """Register a connector."""

    def decorate(factory: type[ConnectorFactory]) -> type[ConnectorFactory]:
        _factories[name] = factory()
        return factory

    return decorate


@cache
def load_connectors() -> None:
    """Import all modules that register connectors."""
    for module in MODULES:
        import_module(f"penstock.table.connectors.{module}")


def factory_for(table: ResolvedTable) -> ConnectorFactory:
    """Return the factory of a table's connector after checking the options."""
    load_connectors()
    name = table.options.get("connector")
    if name is None:
        raise ValidationException(
            f"Table '{table.name}' has no option 'connector'. Known connectors: {', '.join(sorted(_factories))}"
        )
    factory = _factories.get(name)
    if factory is None:
        raise ValidationException(
            f"Could not find any connector '{name}' for table '{table.name}'. "
            f"Known connectors: {', '.join(sorted(_factories))}"
        )
    factory.check(table)
    return factory


def is_true(value: Any) -> bool:
    """Whether an option is true."""
    return str(value).strip().lower() == "true"
