"""Types of records with fields: rows and tuples."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.common.errors import InvalidProgramError
from penstock.common.typeinfo.base import TypeInformation, attributes_of, checked_type, mismatch
from penstock.common.types import Row

__all__ = ["ExternalTypeInfo", "RowTypeInfo", "TupleTypeInfo"]

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _quoted(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _check_types(field_types: Sequence[TypeInformation], label: str) -> list[TypeInformation]:
    return [
        checked_type(field_type, f"field {position} of a {label} type")
        for position, field_type in enumerate(field_types)
    ]


class RowTypeInfo(TypeInformation):
    """Rows. Tuples and lists of the same length are also valid, and dicts and objects with these names.

    If the type has names, the fields of a row with names are matched by name. A name that is missing in a dict is a
    field without a value.

    >>> from penstock.common.typeinfo import Types
    >>> person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> person.validate(Row("Alice", "eleven"))
    "field 'age': expected INT, got str 'eleven'"
    >>> person.format(Row("Alice", 11)), person.to_ddl()
    ('+I[Alice, 11]', 'struct<name:string,age:int>')
    """

    __slots__ = ("_field_names", "_field_types")

    def __init__(self, field_types: Sequence[TypeInformation], field_names: Sequence[str] | None = None) -> None:
        self._field_types = _check_types(field_types, "row")
        names = [f"f{i}" for i in range(len(field_types))] if field_names is None else list(field_names)
        if len(names) != len(self._field_types):
            raise InvalidProgramError(
                f"a row type has {len(self._field_types)} types but {len(names)} names: {', '.join(map(str, names))}"
            )
        if len(set(names)) != len(names):
            raise InvalidProgramError(f"the field names of a row type must differ: {', '.join(names)}")
        self._field_names = names

    @property
    def has_default_names(self) -> bool:
        """Whether the fields are called f0, f1, ..., as in a type without names."""
        return self._field_names == [f"f{i}" for i in range(len(self._field_names))]

    def get_field_types(self) -> list[TypeInformation]:
        return self._field_types

    def get_field_names(self) -> list[str]:
        return self._field_names

    def get_field_index(self, field_name: str) -> int:
        """Return the position of a field, or -1 if no field has that name."""
        return self._field_names.index(field_name) if field_name in self._field_names else -1

    def _fields(self, value: Any) -> Sequence[Any] | None:
        """Return the value's fields in order, or ``None`` if it is not a row of this shape."""
        fields: Sequence[Any]
        if isinstance(value, Row):
            own = value._fields
            if own is not None and list(own) != self._field_names and not self.has_default_names:
                return value.get_fields_by_names(self._field_names) if set(own) == set(self._field_names) else None
            fields = value._values
        elif isinstance(value, (tuple, list)):
            fields = value
        elif isinstance(value, Mapping):
            if not set(value) <= set(self._field_names):
                return None
            fields = [value.get(name) for name in self._field_names]
        elif attributes_of(value) is not None and all(hasattr(value, name) for name in self._field_names):
            fields = [getattr(value, name) for name in self._field_names]
        else:
            return None
        return fields if len(fields) == len(self._field_types) else None

    def validate(self, value: Any) -> str | None:
        if value is None:
            return None
        fields = self._fields(value)
        if fields is None:
            return mismatch(f"a row of {len(self._field_types)} fields ({', '.join(self._field_names)})", value)
        for position, field in enumerate(fields):
            reason = self._field_types[position].validate(field)
            if reason is not None:
                return f"field {self._field_names[position]!r}: {reason}"
        return None

    def format(self, value: Any) -> str:
        if value is None:
            return "null"
        kind = value._row_kind.short_string if isinstance(value, Row) else "+I"
        return f"{kind}[{', '.join(_format_fields(self._field_types, self._fields(value), value))}]"

    def to_ddl(self) -> str:
        fields = zip(self._field_names, self._field_types, strict=True)
        return f"struct<{','.join(f'{_quoted(name)}:{kind.to_ddl()}' for name, kind in fields)}>"

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> Any:
        if obj is None:
            return None
        fields = self._fields(obj)
        if fields is None:
            raise ValueError(self.validate(obj))
        return tuple(kind.to_internal_type(field) for kind, field in zip(self._field_types, fields, strict=True))

    def from_internal_type(self, obj: Any) -> Any:
        if obj is None:
            return None
        values = obj.values() if isinstance(obj, Mapping) else obj
        row = Row(*(kind.from_internal_type(field) for kind, field in zip(self._field_types, values, strict=True)))
        row.set_field_names(self._field_names)
        return row

    def _identity(self) -> tuple[Any, ...]:
        return (tuple(self._field_names), tuple(self._field_types))

    def __repr__(self) -> str:
        fields = zip(self._field_names, self._field_types, strict=True)
        return f"RowTypeInfo({', '.join(f'{name}: {kind!r}' for name, kind in fields)})"


class TupleTypeInfo(TypeInformation):
    """Tuples of a fixed length. Lists are also valid.

    >>> from penstock.common.typeinfo import Types
    >>> Types.TUPLE([Types.STRING(), Types.INT()]).format(("a", 1))
    '(a,1)'
    """

    __slots__ = ("_field_types",)

    def __init__(self, field_types: Sequence[TypeInformation]) -> None:
        self._field_types = _check_types(field_types, "tuple")

    def get_field_types(self) -> list[TypeInformation]:
        return self._field_types

    def validate(self, value: Any) -> str | None:
        if value is None:
            return None
        if not isinstance(value, (tuple, list, Row)) or len(value) != len(self._field_types):
            return mismatch(f"a tuple of {len(self._field_types)} fields", value)
        for position, field in enumerate(value):
            reason = self._field_types[position].validate(field)
            if reason is not None:
                return f"field {position}: {reason}"
        return None

    def format(self, value: Any) -> str:
        return "null" if value is None else f"({','.join(_format_fields(self._field_types, value, value))})"

    def to_ddl(self) -> str:
        return f"struct<{','.join(f'f{i}:{kind.to_ddl()}' for i, kind in enumerate(self._field_types))}>"

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> Any:
        if obj is None:
            return None
        return tuple(kind.to_internal_type(field) for kind, field in zip(self._field_types, obj, strict=True))

    def from_internal_type(self, obj: Any) -> Any:
        if obj is None:
            return None
        values = obj.values() if isinstance(obj, Mapping) else obj
        return tuple(kind.from_internal_type(field) for kind, field in zip(self._field_types, values, strict=True))

    def _identity(self) -> tuple[Any, ...]:
        return tuple(self._field_types)

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(repr, self._field_types))})"


def _format_fields(types: Sequence[TypeInformation], fields: Sequence[Any] | None, value: object) -> list[str]:
    if fields is None or len(fields) != len(types):
        raise ValueError(mismatch(f"{len(types)} fields", value))
    return [kind.format(field) for kind, field in zip(types, fields, strict=True)]


class ExternalTypeInfo(TypeInformation):
    """A type that wraps another one."""

    __slots__ = ("_type_info",)

    def __init__(self, type_info: TypeInformation) -> None:
        self._type_info = type_info

    def validate(self, value: Any) -> str | None:
        return self._type_info.validate(value)

    def format(self, value: Any) -> str:
        return self._type_info.format(value)

    def to_ddl(self) -> str:
        return self._type_info.to_ddl()

    def need_conversion(self) -> bool:
        return self._type_info.need_conversion()

    def to_internal_type(self, obj: Any) -> Any:
        return self._type_info.to_internal_type(obj)

    def from_internal_type(self, obj: Any) -> Any:
        return self._type_info.from_internal_type(obj)

    def _identity(self) -> tuple[Any, ...]:
        return (self._type_info,)

    def __repr__(self) -> str:
        return f"ExternalTypeInfo<{self._type_info!r}>"
