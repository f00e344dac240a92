"""Converts a record to a statement and the values of its question marks."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from penstock.common import Row
from penstock.common.errors import InvalidProgramError, shorten
from penstock.common.time import Instant
from penstock.common.typeinfo import RowTypeInfo
from penstock.connectors.cassandra.mapping import insert_statement, is_mapped, mapped_fields
from penstock.connectors.cassandra.options import MapperOptions

__all__ = ["MappedStatements", "QueryStatements", "Statements"]


class Statements(ABC):
    """Converts records to statements."""

    consistency_level: int | None = None
    tracing: bool = False
    nulls_delete: bool = True
    """Whether None deletes a column's value; otherwise the column keeps it."""

    @abstractmethod
    def bind(self, record: Any) -> tuple[str, Sequence[Any]]:
        """Return the CQL text and its values."""


class QueryStatements(Statements):
    """Uses one query for all records, which are tuples or rows with a field for each question mark."""

    def __init__(self, query: str, row_type: RowTypeInfo | None, *, nulls_delete: bool) -> None:
        self._query = query
        self._row_type = row_type
        self.nulls_delete = nulls_delete

    def bind(self, record: Any) -> tuple[str, Sequence[Any]]:
        fields: Sequence[Any] | None
        if self._row_type is not None:
            fields = self._row_type._fields(record)
        elif isinstance(record, Row):
            fields = record._values
        else:
            fields = record if isinstance(record, (tuple, list)) else None
        if fields is None:
            raise InvalidProgramError(_not_a_row(record))
        return self._query, _driver_values(fields)


class MappedStatements(Statements):
    """Uses an INSERT for each mapped dataclass."""

    def __init__(self, options: MapperOptions, keyspace: str | None, *, nulls_delete: bool) -> None:
        self._options = options
        self._keyspace = keyspace
        self._of_class: dict[type, tuple[str, Callable[[Any], Any], bool]] = {}
        self.nulls_delete = nulls_delete and options.used_save_null_fields
        self.tracing = options.used_tracing
        if options.used_consistency_level is not None:
            self.consistency_level = options.used_consistency_level.value

    def bind(self, record: Any) -> tuple[str, Sequence[Any]]:
        cls = type(record)
        if cls not in self._of_class:
            self._of_class[cls] = self._statement(cls, record)
        query, values, single = self._of_class[cls]
        return query, _driver_values((values(record),) if single else values(record))

    def _statement(self, cls: type, record: Any) -> tuple[str, Callable[[Any], Any], bool]:
        if not is_mapped(cls):
            raise InvalidProgramError(
                f"without a query, records must be dataclasses with @table, got {shorten(record)}: set a query for "
                "tuples and rows"
            )
        names = mapped_fields(cls)
        return insert_statement(cls, self._options, self._keyspace), attrgetter(*names), len(names) == 1


def _not_a_row(record: Any) -> str:
    if dataclasses.is_dataclass(record):
        return f"a query is for tuples and rows, got the dataclass {shorten(record)}: use @table without a query"
    return f"a query takes tuples and rows with a field for each question mark, got {shorten(record)}"


def _driver_values(fields: Sequence[Any]) -> Sequence[Any]:
    """Convert the fields for the driver. Return the same object if nothing changes."""
    if any(isinstance(field, _CONVERTED) for field in fields):
        return [_driver_value(field) for field in fields]
    return fields


def _driver_value(value: Any) -> Any:
    if isinstance(value, Row):  # a user-defined type
        return tuple(_driver_value(part) for part in value._values)
    if isinstance(value, Instant):
        return value.to_epoch_milli()
    if isinstance(value, Mapping):
        return {_driver_value(key): _driver_value(part) for key, part in value.items()}
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(_driver_value(part) for part in value)
    return value


_CONVERTED = (Row, Instant, Mapping, list, tuple, set, frozenset)
