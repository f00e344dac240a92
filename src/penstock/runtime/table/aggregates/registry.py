"""The registry of aggregate functions: their arguments, result types and implementations.

To add one, register a definition in a module that is listed in `MODULES`:

    @aggregate("LISTAGG", gives=lambda types: STRING if is_character(types[0]) else None)
    def listagg(request):
        return ListAggWithRetract(...) if request.retracts else ListAgg(...)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import pyarrow as pa

from penstock.core.table.arrow import arrow_type
from penstock.core.table.types import DataType
from penstock.runtime.table.aggregates.base import Aggregate

MODULES = ("builtin", "values", "single_value", "statistics", "json_aggregates", "percentile")
"""Modules of this package that register aggregate functions."""


@dataclass(frozen=True, slots=True)
class AggregateRequest:
    """The types and options of an aggregate call."""

    types: tuple[DataType, ...]
    result: DataType
    retracts: bool
    """Whether rows may be retracted."""
    options: tuple[Any, ...] = ()

    @property
    def argument(self) -> pa.DataType:
        """The column type of the first argument."""
        return arrow_type(self.types[0])

    @property
    def result_type(self) -> pa.DataType:
        """The column type of the result."""
        return arrow_type(self.result)


@dataclass(frozen=True, slots=True)
class AggregateDefinition:
    """A named aggregate function."""

    name: str
    gives: Callable[[Sequence[DataType]], DataType | None]
    create: Callable[[AggregateRequest], Aggregate]
    arguments: tuple[int, int] = (1, 1)
    """The minimum and maximum number of arguments."""
    default: Any = None
    """The result without rows, for a global aggregate over nothing in batch mode."""

    def result_type(self, types: Sequence[DataType]) -> DataType | None:
        """Return the type of the result, or None if the arguments do not fit."""
        least, most = self.arguments
        return self.gives(types) if least <= len(types) <= most else None


_definitions: dict[str, AggregateDefinition] = {}


def aggregate(
    name: str, *aliases: str, gives: Callable[[Sequence[DataType]], DataType | None], **options: Any
) -> Callable[[Callable[[AggregateRequest], Aggregate]], Callable[[AggregateRequest], Aggregate]]:
    """Register an aggregate function. The decorated function creates the aggregate for a request."""

    def decorate(create: Callable[[AggregateRequest], Aggregate]) -> Callable[[AggregateRequest], Aggregate]:
        for one in (name, *aliases):
            if one in _definitions:
                raise ValueError(f"aggregate function {one} is registered twice")
            _definitions[one] = AggregateDefinition(name, gives, create, **options)
        return create

    return decorate


@cache
def load_aggregates() -> None:
    """Import all modules that register aggregate functions."""
    for module in MODULES:
        import_module(f"penstock.runtime.table.aggregates.{module}")


def find_aggregate(name: str) -> AggregateDefinition | None:
    """Return the function with this name in any case, or None."""
    load_aggregates()
    return _definitions.get(name.upper())


def aggregate_names() -> list[str]:
    """Return all names, sorted."""
    load_aggregates()
    return sorted(_definitions)
