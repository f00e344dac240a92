"""The contract of table connectors.

    @connector("datagen")
    class DataGenFactory(ConnectorFactory):
        options = {"rows-per-second": "10000", "number-of-rows": None}

        def source(self, table):
            return DataGenTableSource(table)

A source says which row kinds it produces and makes the transformation that emits column batches with the table's
physical columns, in order. A sink says which row kinds it takes and makes a :class:`~penstock.core.sink.Sink` whose
writer gets column batches.
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
"""Modules of this package that register connectors."""


@dataclass(frozen=True, slots=True)
class ResolvedTable:
    """A table as its connector sees it."""

    name: str
    fields: tuple[Field, ...]
    """The physical columns."""
    options: dict[str, str]
    primary_key: tuple[int, ...] = ()
    """Positions of the key columns among the physical ones."""
    partition_keys: tuple[str, ...] = ()
    metadata: tuple[tuple[str, DataType], ...] = ()
    """Key and type of the metadata columns that are wanted; they come after the physical ones."""

    @property
    def identity(self) -> Any:
        """What tells one table from another one, whatever their objects."""
        options = frozenset(self.options.items())
        return self.name, self.fields, options, self.primary_key, self.partition_keys, self.metadata

    def option(self, key: str, default: str | None = None) -> str | None:
        """The value of an option."""
        return self.options.get(key, default)


class LookupFunction(ABC):
    """Looks rows up by key, row by row, in a lookup join (T75)."""

    name: str

    @abstractmethod
    def open(self, function_context: Any) -> None:
        """Called before the first row."""

    @abstractmethod
    def close(self) -> None:
        """Called at the end."""

    @abstractmethod
    def eval(self, *keys: Any) -> Sequence[tuple[Any, ...]]:
        """The rows of a key."""


class TableSource(ABC):
    """Where rows come from."""

    changelog: Changelog = INSERT_ONLY
    upsert: bool = False
    """Whether rows are upserts and deletions by primary key, without the rows that they replace."""
    parallel: bool = True
    """Whether several tasks may read."""

    @abstractmethod
    def create(self) -> Source:
        """The source; its readers yield column batches."""

    def lookup(self, keys: Sequence[int]) -> LookupFunction | None:
        """Looks up rows by some of the columns, given by position; None if the connector cannot."""
        return None

    def project(self, columns: Sequence[int]) -> TableSource | None:
        """The same source with some of its columns, given by position; None if that saves nothing."""
        return None


class TableSink(ABC):
    """Where rows go."""

    accepts: str = "all"
    """``insert``: only inserts; ``upsert``: changes by primary key, without -U; ``all``: every row kind."""

    rows: bool = False
    """Whether writers get lists of Row objects with their kinds instead of column batches."""

    @abstractmethod
    def create(self) -> Sink:
        """The sink; its writers get column batches, Rows, or what the conversion makes."""

    def conversion(self) -> StreamOperator | None:
        """An operator that turns column batches into what writers take; None if they take these or Rows."""
        return None


class ConnectorFactory:
    """Makes sources and sinks of one connector."""

    options: ClassVar[dict[str, str | None]] = {}
    """Known options and their defaults; ``...`` at the end of a key allows any that begin so."""
    required: ClassVar[Sequence[str]] = ()
    formats: ClassVar[bool] = False
    """Whether there is a format with options of its own."""
    metadata: ClassVar[dict[str, DataType]] = {}
    """Metadata columns that a source can give."""

    def source(self, table: ResolvedTable) -> TableSource:
        """The table as a source."""
        raise ValidationException(f"Connector '{table.options['connector']}' can only be used as a sink.")

    def sink(self, table: ResolvedTable) -> TableSink:
        """The table as a sink."""
        raise ValidationException(f"Connector '{table.options['connector']}' can only be used as a source.")

    def check(self, table: ResolvedTable) -> None:
        """Refuse options that are missing or unknown (T120)."""
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
    """The factory of a table's connector, with its options checked."""
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
    """Whether an option is switched on."""
    return str(value).strip().lower() == "true"
