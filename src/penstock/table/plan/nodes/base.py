"""The base of all nodes: fields, inputs, and the propagation of changelogs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import pyarrow as pa

from penstock.core.table.arrow import arrow_type
from penstock.core.table.types import DataType


class TimeAttribute(Enum):
    """Marks a column as a time attribute, which windows and joins in time can use (T41, T45)."""

    ROWTIME = "ROWTIME"
    PROCTIME = "PROCTIME"


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a node's output."""

    name: str
    type: DataType
    time: TimeAttribute | None = None

    def describe(self) -> str:
        """Return the column as in messages and DESCRIBE."""
        mark = "" if self.time is None else f" *{self.time.value}*"
        text = self.type.summary() + mark
        return text if self.type.is_nullable else f"{text} NOT NULL"


@dataclass(frozen=True, slots=True)
class Changelog:
    """The row kinds that a node may produce besides inserts."""

    updates: bool = False
    deletes: bool = False

    @property
    def insert_only(self) -> bool:
        """Whether all rows are inserts."""
        return not self.updates and not self.deletes

    def __or__(self, other: Changelog) -> Changelog:
        return Changelog(self.updates or other.updates, self.deletes or other.deletes)


INSERT_ONLY = Changelog()
ALL_CHANGES = Changelog(updates=True, deletes=True)

UpsertKeys = frozenset[frozenset[int]]
NO_KEYS: UpsertKeys = frozenset()


@dataclass(frozen=True, eq=False, slots=True)
class Rel:
    """A relation. Subclasses define how changelogs pass through them. The default is for stateless nodes."""

    fields: tuple[Field, ...]

    @property
    def inputs(self) -> Sequence[Rel]:
        """Return the relations that this one reads."""
        return ()

    def with_inputs(self, inputs: Sequence[Rel]) -> Rel:
        """Return the same node over other inputs with the same fields."""
        assert not inputs
        return self

    def changelog(self, inputs: Sequence[Changelog]) -> Changelog:
        """Return the changelog that the node produces, given those of its inputs."""
        return inputs[0] if inputs else INSERT_ONLY

    def needs_update_before(self, demanded: bool, inputs: Sequence[Changelog]) -> list[bool]:
        """Return, for each input, whether it must emit `-U`. `demanded` is whether the node's reader needs them."""
        return [demanded for _ in inputs]

    def upsert_keys(self, inputs: Sequence[UpsertKeys]) -> UpsertKeys:
        """Return sets of columns that identify a row: an update of a row is an update under its key."""
        return NO_KEYS

    def describe(self) -> str:
        """Return one line for EXPLAIN."""
        return type(self).__name__.removesuffix("Rel")

    @property
    def names(self) -> list[str]:
        """Return the names of the columns."""
        return [field.name for field in self.fields]

    def schema(self) -> pa.Schema:
        """Return the Arrow schema. Since column names may repeat, its names are positions."""
        return schema_of(self.fields)


@dataclass(frozen=True, eq=False, slots=True)
class SingleInputRel(Rel):
    """A relation that reads one other relation."""

    input: Rel

    @property
    def inputs(self) -> Sequence[Rel]:
        """Return the input."""
        return (self.input,)

    def with_inputs(self, inputs: Sequence[Rel]) -> Rel:
        """Return the same node over another input."""
        return replace(self, input=inputs[0])


def schema_of(fields: Sequence[Field]) -> pa.Schema:
    """Return the Arrow schema of fields."""
    return pa.schema([pa.field(f"{index}", arrow_type(field.type)) for index, field in enumerate(fields)])


def walk(rel: Rel) -> Iterator[Rel]:
    """Yield the relation and all its inputs."""
    yield rel
    for one in rel.inputs:
        yield from walk(one)
