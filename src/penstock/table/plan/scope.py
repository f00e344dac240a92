"""Scopes: the names that an expression may use, and their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from penstock.core.table.types import RowType
from penstock.runtime.table.expressions import Call, CorrelRef, Expr, InputRef
from penstock.table.plan.nodes.base import Field
from penstock.util.exceptions import ValidationException


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column and its table. Names may use the end of ``qualifier`` (``db.t.a``, ``t.a``)."""

    field: Field
    qualifier: tuple[str, ...] = ()


@dataclass(slots=True)
class Scope:
    """The columns of the relation on which an expression is evaluated, and outer queries."""

    columns: list[ScopeColumn]
    outer: Scope | None = None
    style: str = "table"  # the wording of messages: "sql" or "table"
    correlated: set[int] = field(default_factory=set)
    """Columns of this scope that inner queries refer to."""
    aliases: list[tuple[tuple[str, ...], str, int]] = field(default_factory=list)
    """Other names of columns, as qualifier, name and index, for columns merged by USING."""

    @staticmethod
    def of(
        fields: Sequence[Field], qualifier: tuple[str, ...] = (), outer: Scope | None = None, style: str = "table"
    ) -> Scope:
        """Create the scope of one relation."""
        return Scope([ScopeColumn(one, qualifier) for one in fields], outer, style)

    def extended(self, fields: Sequence[Field], qualifier: tuple[str, ...] = (), names: Sequence[str] = ()) -> Scope:
        """The scope with the columns of another relation after its own, perhaps under new names."""
        if names:
            if len(names) != len(fields):
                raise ValidationException(f"{len(names)} names are given to {len(fields)} columns")
            fields = [replace(one, name=name) for one, name in zip(fields, names, strict=True)]
        return Scope([*self.columns, *(ScopeColumn(one, qualifier) for one in fields)], self.outer, self.style)

    @property
    def fields(self) -> list[Field]:
        """The columns."""
        return [column.field for column in self.columns]

    def resolve(self, path: tuple[str, ...]) -> Expr:
        """Return the column of a name, or a field of it. Raise a ValidationException if it is missing or ambiguous."""
        scope: Scope | None = self
        depth = 0
        while scope is not None:
            found = scope.find(path)
            if found is not None:
                index, rest = found
                column: Expr
                if depth:
                    scope.correlated.add(index)
                    column = CorrelRef(scope.columns[index].field.type, index, depth)
                else:
                    column = InputRef(scope.columns[index].field.type, index)
                return _nested(column, rest, path)
            scope, depth = scope.outer, depth + 1
        raise self._unknown(path)

    def row_at(self, path: tuple[str, ...]) -> RowType | None:
        """The type of the column of a name, if its values are rows. A table of this name precedes it."""
        if any(_ends_with(column.qualifier, path) for column in self.columns):
            return None
        found = self.find(path)
        type_ = None if found is None or found[1] else self.columns[found[0]].field.type
        return type_ if isinstance(type_, RowType) else None

    def find(self, path: tuple[str, ...]) -> tuple[int, tuple[str, ...]] | None:
        """Return the index of the column and the path after it. A longer qualifier precedes a field of a row."""
        for length in range(len(path) - 1, -1, -1):
            qualifier, name, rest = path[:length], path[length], path[length + 1 :]
            matches = [
                index
                for index, column in enumerate(self.columns)
                if column.field.name == name and _ends_with(column.qualifier, qualifier)
            ]
            if len(matches) > 1:
                raise ValidationException(f"Column '{name}' is ambiguous")
            matches = matches or [
                index
                for known, alias, index in self.aliases
                if qualifier and alias == name and _ends_with(known, qualifier)
            ]
            if matches:
                return matches[0], rest
        return None

    def _unknown(self, path: tuple[str, ...]) -> ValidationException:
        if self.style == "sql":
            if len(path) > 1 and not any(_ends_with(column.qualifier, path[:-1]) for column in self.columns):
                return ValidationException(f"SQL validation failed. Table '{'.'.join(path[:-1])}' not found")
            known = ", ".join(column.field.name for column in self.columns)
            return ValidationException(
                f"SQL validation failed. Column '{path[-1]}' not found in any table; known columns are: {known}"
            )
        known = ", ".join(column.field.name for column in self.columns)
        return ValidationException(f"Cannot resolve field [{'.'.join(path)}], input field list:[{known}].")

    def columns_of(self, qualifier: tuple[str, ...]) -> list[int]:
        """Return the columns of a table, or of all tables."""
        found = [index for index, column in enumerate(self.columns) if _ends_with(column.qualifier, qualifier)]
        if not found and qualifier:
            raise ValidationException(f"SQL validation failed. Table '{'.'.join(qualifier)}' not found")
        return found


def _ends_with(qualifier: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return not wanted or qualifier[-len(wanted) :] == wanted


def _nested(expr: Expr, rest: tuple[str, ...], path: tuple[str, ...]) -> Expr:
    for name in rest:
        expr = row_field(expr, name, ".".join(path))
    return expr


def row_field(expr: Expr, name: str | int, what: str = "") -> Expr:
    """Return a field of a row by its name or position."""
    row = expr.type
    if not isinstance(row, RowType):
        raise ValidationException(f"'{what or name}': a value of type {row} has no field '{name}'")
    names = row.field_names()
    index = name if isinstance(name, int) else names.index(name) if name in names else -1
    if not 0 <= index < len(names):
        raise ValidationException(f"'{what or name}': {row} has no field '{name}'")
    type_ = row.field_types()[index]
    if row.is_nullable:
        type_ = type_.nullable()
    return Call(type_, "FIELD", (expr,), (index,))
