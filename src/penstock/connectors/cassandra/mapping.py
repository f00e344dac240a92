"""Maps dataclasses to rows of a table.

>>> @table(keyspace="example", name="sensors")
... @dataclass
... class Reading:
...     sensor_id: str = column("sensorId")
...     temperature: float
...     comment: str = column(transient=True, default="")
>>> print(insert_statement(Reading, MapperOptions(ttl=60)))
INSERT INTO example.sensors (sensorId, temperature) VALUES (?, ?) USING TTL 60
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from penstock.common.errors import InvalidProgramError
from penstock.connectors.cassandra.options import MapperOptions

__all__ = ["column", "insert_statement", "is_mapped", "mapped_fields", "table"]

_ATTRIBUTE = "__cassandra_table__"
_COLUMN = "penstock.cassandra.column"
_TRANSIENT = "penstock.cassandra.transient"
_IDENTIFIER = re.compile(r'[A-Za-z][A-Za-z0-9_]*|"([^"]|"")+"')

C = TypeVar("C", bound=type)


@dataclass(frozen=True)
class _Table:
    keyspace: str | None
    name: str


def table(name: str, *, keyspace: str | None = None) -> Callable[[C], C]:
    """Map a dataclass to a table (class decorator).

    Names follow Cassandra's rules: they are case-insensitive unless in double quotes.

    :param keyspace: the default is that of the sink
    """
    mapped = _Table(None if keyspace is None else _identifier(keyspace), _identifier(name))

    def decorate(cls: C) -> C:
        if not dataclasses.is_dataclass(cls):
            raise InvalidProgramError(f"@table belongs above @dataclass: {cls.__name__} is not a dataclass yet")
        setattr(cls, _ATTRIBUTE, mapped)
        return cls

    return decorate


def column(name: str | None = None, *, transient: bool = False, **field: Any) -> Any:
    """Define a field with another column name, or without a column. ``field`` is passed to ``dataclasses.field``.

    :param name: the column; the default is the field's name
    :param transient: leave the field out of the table
    """
    metadata = {**field.pop("metadata", {}), _TRANSIENT: transient}
    if name is not None:
        metadata[_COLUMN] = _identifier(name)
    return dataclasses.field(metadata=metadata, **field)


def is_mapped(cls: type) -> bool:
    """Whether the class has the :func:`table` decorator."""
    return hasattr(cls, _ATTRIBUTE)


def mapped_fields(cls: type) -> list[str]:
    """Return the fields of a mapped dataclass that are columns."""
    return [field.name for field in dataclasses.fields(cls) if not field.metadata.get(_TRANSIENT, False)]


def insert_statement(cls: type, options: MapperOptions, default_keyspace: str | None = None) -> str:
    """Return the CQL that writes an object of a mapped dataclass, with a question mark for each mapped field."""
    mapped: _Table = getattr(cls, _ATTRIBUTE)
    keyspace = mapped.keyspace or default_keyspace
    if keyspace is None:
        raise InvalidProgramError(
            f"the table {mapped.name} of {cls.__name__} has no keyspace: pass one to @table, or a default to the sink"
        )
    columns = {field.name: field.metadata.get(_COLUMN, field.name) for field in dataclasses.fields(cls)}
    names = [columns[name] for name in mapped_fields(cls)]
    marks = ", ".join("?" * len(names))
    text = f"INSERT INTO {keyspace}.{mapped.name} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - checked names
    if options.used_if_not_exists:
        text += " IF NOT EXISTS"
    using = [("TTL", options.used_ttl), ("TIMESTAMP", options.used_timestamp)]
    given = " AND ".join(f"{word} {value}" for word, value in using if value is not None)
    return f"{text} USING {given}" if given else text


def _identifier(name: str) -> str:
    if not _IDENTIFIER.fullmatch(name):
        raise InvalidProgramError(
            f"{name!r} is not a valid name in Cassandra: put double quotes around special characters"
        )
    return name
