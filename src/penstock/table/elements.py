"""Tables of Python values. Types are given, or inferred from the values (T22)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from decimal import Decimal
from typing import Any

from penstock.common.types import Row
from penstock.core.table.arrow import to_column
from penstock.core.table.type_rules import common_type
from penstock.core.table.types import DataType, DataTypes, NullType, RowField, RowType
from penstock.table.plan.nodes.base import Field, Rel
from penstock.table.plan.nodes.relational import ValuesRel
from penstock.util.exceptions import ValidationException


def table_of_elements(elements: Iterable[Any], schema: DataType | Sequence[str] | None, time_zone: str) -> Rel:
    """Return a relation of constants."""
    rows = list(elements)
    if isinstance(schema, RowType):
        return _typed(rows, schema)
    if isinstance(schema, DataType):
        return _typed([(row,) for row in rows], RowType((RowField("value", schema),)))
    names = None if schema is None else list(schema)
    tuples = [_as_tuple(row) for row in rows]
    if not tuples:
        raise ValidationException("types cannot be inferred without elements: pass a schema")
    width = max(map(len, tuples))
    if names is None:
        names = _names(rows[0], width)
    names += [f"_{index + 1}" for index in range(len(names), width)]
    types = [_column_type([row[index] if index < len(row) else None for row in tuples]) for index in range(width)]
    fields = tuple(RowField(name, type_) for name, type_ in zip(names, types, strict=True))
    return _typed(tuples, RowType(fields))


def _names(first: Any, width: int) -> list[str]:
    if isinstance(first, Row) and first.get_field_names() is not None:
        return list(first.get_field_names() or [])
    if isinstance(first, dict):
        return list(first)
    if is_dataclass(first) and not isinstance(first, type):
        return list(asdict(first))
    return [f"_{index + 1}" for index in range(width)]


def _as_tuple(row: Any) -> tuple[Any, ...]:
    if isinstance(row, dict):
        return tuple(row.values())
    if is_dataclass(row) and not isinstance(row, type):
        return tuple(asdict(row).values())
    if isinstance(row, (tuple, list, Row)):
        return tuple(row)
    return (row,)


def _typed(rows: list[Any], schema: RowType) -> Rel:
    names = schema.field_names()
    values = []
    for number, row in enumerate(rows):
        items = tuple(row.get(name) for name in names) if isinstance(row, dict) else _as_tuple(row)
        if len(items) != len(names):
            raise ValidationException(f"element {number} has {len(items)} fields, the schema has {len(names)}")
        values.append(items)
    for index, field in enumerate(schema.fields):
        try:
            to_column([row[index] for row in values], field.data_type)
        except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise ValidationException(f"field '{field.name}' cannot be {field.data_type}: {error}") from error
    fields = tuple(Field(field.name, field.data_type) for field in schema.fields)
    return ValuesRel(fields, tuple(values))


def _column_type(values: list[Any]) -> DataType:
    known = [infer_type(value) for value in values]
    result = common_type(known) if known else NullType()
    if result is None:
        shown = sorted({str(one) for one in known})
        raise ValidationException(f"a column has values of different types: {', '.join(shown)}")
    return DataTypes.STRING() if isinstance(result, NullType) else result.nullable()


def infer_type(value: Any) -> DataType:  # noqa: C901 - a case for each type
    """Return the SQL type of a Python value: int is BIGINT, float is DOUBLE, str is STRING."""
    match value:
        case None:
            return DataTypes.NULL()
        case bool():
            return DataTypes.BOOLEAN()
        case int():
            return DataTypes.BIGINT()
        case float():
            return DataTypes.DOUBLE()
        case str():
            return DataTypes.STRING()
        case bytes() | bytearray():
            return DataTypes.BYTES()
        case Decimal():
            return DataTypes.DECIMAL(38, 18)
        case dt.datetime():
            return DataTypes.TIMESTAMP_LTZ(6) if value.tzinfo is not None else DataTypes.TIMESTAMP(6)
        case dt.date():
            return DataTypes.DATE()
        case dt.time():
            return DataTypes.TIME(0)
        case dt.timedelta():
            return DataTypes.INTERVAL(DataTypes.DAY(), DataTypes.SECOND())
        case dict():
            key, item = _column_type(list(value)), _column_type(list(value.values()))
            return DataTypes.MAP(key, item)
        case list():
            return DataTypes.ARRAY(_column_type(value))
        case Row() | tuple():
            names = _names(value, len(value))
            names = [f"f{i}" for i in range(len(value))] if names and names[0] == "_1" else names
            pairs = zip(names, map(infer_type, value), strict=True)
            return DataTypes.ROW([DataTypes.FIELD(name, one) for name, one in pairs])
    raise ValidationException(f"{value!r} of type {type(value).__name__} has no SQL type: pass a schema")
