"""Stored descriptions of state types, whether a later type is compatible, and how older values are converted.

A state keeps the description of its registered type. When a program registers another type, compatibility is decided
here, at registration and not when a value is read (rules J09 and J10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.common.typeinfo import (
    BasicTypeInfo,
    GenericTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    PickledBytesTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from penstock.common.typeinfo.avro import GenericRecordAvroTypeInfo
from penstock.common.types import Row
from penstock.runtime.state.avro_evolution import avro_adapter, avro_mismatch

TypeDescription = dict[str, Any]
"""``{"type": name, ...}``, serializable as JSON."""

Adapter = Callable[[Any], Any]

PYTHON = "PYTHON"
"""The type of a state without a declared type. Its description contains the types found in it."""

AVRO = "AVRO"

_INTEGERS = ("BYTE", "SHORT", "INT", "LONG", "BIG_INT")
_FLOATS = ("FLOAT", "DOUBLE")
_PYTHON_TYPES = {
    "STRING": {"str"},
    "CHAR": {"str"},
    "BOOLEAN": {"bool"},
    **{name: {"int", "bool"} for name in _INTEGERS},
    **{name: {"float", "int"} for name in _FLOATS},
    "BIG_DEC": {"Decimal", "int"},
    AVRO: {"dict"},
}
# User-defined classes may also be rows, lists or tuples: only types that certainly differ are rejected.
_COLLECTIONS = {"LIST": {"list", "tuple"}, "MAP": {"dict"}, "ROW": {"Row", "tuple", "dict"}, "TUPLE": {"tuple", "Row"}}
_TIMES = {
    "INSTANT": {"Instant", "datetime"},
    "SqlDate": {"date", "datetime"},
    "LocalDate": {"date", "datetime"},
    "SqlTime": {"time"},
    "LocalTime": {"time"},
    "SqlTimestamp": {"datetime"},
    "LocalDateTime": {"datetime"},
}
_SCALARS = {"str", "bytes", "bool", "int", "float", "Decimal", "date", "time", "datetime", "Instant"}


def describe(type_info: TypeInformation | None) -> TypeDescription | None:
    """Return the description of a type as JSON, or None if nothing is known.

    >>> from penstock.common.typeinfo import Types
    >>> describe(Types.ROW_NAMED(["a"], [Types.INT()]))
    {'type': 'ROW', 'fields': [['a', {'type': 'INT'}]]}
    """
    if isinstance(type_info, GenericRecordAvroTypeInfo):
        return {"type": AVRO, "schema": type_info.avro_schema.definition}
    if type_info is None or isinstance(type_info, (PickledBytesTypeInfo, GenericTypeInfo)):
        return None
    if isinstance(type_info, BasicTypeInfo):
        return {"type": type_info.basic_type.name}
    if isinstance(type_info, RowTypeInfo):
        pairs = zip(type_info.get_field_names(), type_info.get_field_types(), strict=True)
        return {"type": "ROW", "fields": [[name, describe(kind)] for name, kind in pairs]}
    if isinstance(type_info, TupleTypeInfo):
        return {"type": "TUPLE", "fields": [describe(kind) for kind in type_info.get_field_types()]}
    if isinstance(type_info, ListTypeInfo):
        return {"type": "LIST", "element": describe(type_info.element_type)}
    if isinstance(type_info, MapTypeInfo):
        return {"type": "MAP", "key": describe(type_info.key_type), "value": describe(type_info.value_type)}
    return {"type": repr(type_info)}


def seen_in(content: list[Any] | dict[Any, Any], declared: TypeDescription | None) -> TypeDescription:
    """Return the type of a list or map: the declared type, completed by the Python types in the content.

    >>> seen_in([1, "a"], None)
    {'type': 'LIST', 'element': {'type': 'PYTHON', 'seen': ['int', 'str']}}
    """
    parts = declared or {}
    if isinstance(content, dict):
        key, value = parts.get("key") or _seen(content), parts.get("value") or _seen(content.values())
        return {"type": "MAP", "key": key, "value": value}
    return {"type": "LIST", "element": parts.get("element") or _seen(content)}


def _seen(values: Iterable[Any]) -> TypeDescription:
    return {"type": PYTHON, "seen": sorted(kind.__name__ for kind in set(map(type, values)) if kind is not type(None))}


def is_complete(known: TypeDescription | None) -> bool:
    """Whether a type is fully known. A list or map may be declared without its element types."""
    return known is not None and all(known.get(part, known) is not None for part in ("element", "key", "value"))


def merged(one: TypeDescription, other: TypeDescription) -> TypeDescription:
    """Combine the descriptions of one state from two subtasks."""
    if one["type"] == PYTHON == other["type"]:
        return {"type": PYTHON, "seen": sorted({*one["seen"], *other["seen"]})}
    if one["type"] in ("LIST", "MAP") and one["type"] == other["type"]:
        both = {part: (one[part], other[part]) for part in ("element", "key", "value") if part in one}
        return {**one, **{part: merged(a, b) if a and b else a or b for part, (a, b) in both.items()}}
    return one


def mismatch(known: TypeDescription | None, wanted: TypeDescription | None) -> str | None:
    """Return why values of the known type cannot be used as the wanted one, or None if they can.

    >>> mismatch({"type": "INT"}, {"type": "LONG"}), mismatch({"type": "STRING"}, {"type": "DOUBLE"})
    (None, 'STRING cannot become DOUBLE')
    """
    if known is None or wanted is None or known == wanted:
        return None
    old, new = known["type"], wanted["type"]
    if old == PYTHON:  # never declared: compare the types found in it
        incompatible = sorted(_incompatible(set(known["seen"]), new))
        return f"it has values of type {incompatible[0]}, which cannot become {new}" if incompatible else None
    if new == PYTHON:
        return None
    if any(old in family and new in family[family.index(old) :] for family in (_INTEGERS, _FLOATS)):
        return None
    return f"{old} cannot become {new}" if old != new else _part_mismatch(known, wanted)


def _incompatible(seen: set[str], wanted: str) -> set[str]:
    """Return the Python types whose values cannot be of the wanted type."""
    accepted = _COLLECTIONS.get(wanted) or _TIMES.get(wanted)
    if accepted is not None:
        return (seen & (_SCALARS | {"list", "dict", "set"})) - accepted
    return seen - _PYTHON_TYPES.get(wanted, seen)


def _part_mismatch(known: TypeDescription, wanted: TypeDescription) -> str | None:
    """Like `mismatch`, for the fields of rows and tuples and the elements of lists and maps."""
    if known["type"] == AVRO:
        return avro_mismatch(known["schema"], wanted["schema"])
    if known["type"] == "ROW":
        before = dict(_fields_before(known, wanted))
        for name, kind in wanted["fields"]:
            if name in before and (reason := mismatch(before[name], kind)) is not None:
                return f"field '{name}': {reason}"
        return None
    if known["type"] == "TUPLE":
        if len(known["fields"]) != len(wanted["fields"]):
            return f"a tuple of {len(known['fields'])} fields cannot become one of {len(wanted['fields'])}"
        reasons = map(mismatch, known["fields"], wanted["fields"])
        return next((reason for reason in reasons if reason is not None), None)
    if known["type"] == "MAP" and (reason := key_mismatch(known["key"], wanted["key"])) is not None:
        return reason
    for part in ("element", "value"):
        if part in known and (reason := mismatch(known[part], wanted[part])) is not None:
            return reason
    return None


def key_mismatch(known: TypeDescription | None, wanted: TypeDescription | None) -> str | None:
    """Like `mismatch`, for keys: state under a key of another form would never be found."""
    if known is not None and known["type"] == PYTHON:
        # A user-defined class may be a subclass of str.
        known = {**known, "seen": sorted(_SCALARS.intersection(known["seen"]))}
    reason = mismatch(known, wanted)
    if reason is None and _adapter(known, wanted) is not None:
        reason = "the fields of keys cannot change"
    return reason


def key_types_mismatch(known: list[TypeDescription], wanted: list[TypeDescription | None]) -> str | None:
    """Like `mismatch`, for the keys of all inputs of an operator. Each input may declare its own type."""
    reasons = (key_mismatch(known[0], each) for each in wanted if known and each not in known)
    return next((reason for reason in reasons if reason is not None), None)


def slot_adapter(kind: str, known: TypeDescription | None, wanted: TypeDescription | None) -> Adapter | None:
    """Return a function that converts the stored form of a state to the wanted type, or None if none is needed."""
    if known is None or wanted is None or known == wanted:
        return None
    windowed, stamped = kind.startswith("windowed "), kind.endswith(" with TTL")
    plain = kind.removeprefix("windowed ").removesuffix(" with TTL")
    part = {"list state": "element", "map state": "value"}.get(plain)
    inner = _adapter(known.get(part), wanted.get(part)) if part is not None else _adapter(known, wanted)
    if inner is None:
        return None
    adapt: Adapter = inner
    if stamped:
        adapt = _stamped(adapt)
    if plain == "list state":
        adapt = _each(adapt)
    elif plain == "map state":
        adapt = _values(adapt)
    return _values(adapt) if windowed else adapt


def _stamped(adapt: Adapter) -> Adapter:
    return lambda stamped: (adapt(stamped[0]), stamped[1])


def _each(adapt: Adapter) -> Adapter:
    return lambda elements: [adapt(element) for element in elements]


def _values(adapt: Adapter) -> Adapter:
    return lambda mapping: {key: adapt(value) for key, value in mapping.items()}


def _adapter(known: TypeDescription | None, wanted: TypeDescription | None) -> Adapter | None:
    if known is None or wanted is None or known == wanted or known["type"] != wanted["type"]:
        return None
    if wanted["type"] == AVRO:
        return avro_adapter(known["schema"], wanted["schema"])
    if wanted["type"] == "ROW":
        return _row_adapter(known, wanted)
    if wanted["type"] == "TUPLE":
        parts = list(map(_adapter, known["fields"], wanted["fields"]))
        return _tuple_adapter(parts) if any(parts) else None
    if wanted["type"] == "LIST":
        inner = _adapter(known["element"], wanted["element"])
        return None if inner is None else _each(inner)
    if wanted["type"] == "MAP":
        inner = _adapter(known["value"], wanted["value"])
        return None if inner is None else _values(inner)
    return None


def _fields_before(known: TypeDescription, wanted: TypeDescription) -> list[list[Any]]:
    """Return the fields of the known row type, with their names in the wanted type.

    Fields without names are called f0, f1, ... by position. A type that names them means the same fields.
    """
    fields: list[list[Any]] = known["fields"]
    names = [name for name, _ in wanted["fields"]]
    if _named(fields) == _named(wanted["fields"]):
        return fields
    return [[now, kind] for now, (_, kind) in zip(names, fields, strict=False)]


def _named(fields: list[list[Any]]) -> bool:
    return [name for name, _ in fields] != [f"f{place}" for place in range(len(fields))]


def _row_adapter(known: TypeDescription, wanted: TypeDescription) -> Adapter:
    """Convert rows by field name: removed fields are dropped, new fields are None."""
    fields_before = _fields_before(known, wanted)
    old_names = [name for name, _ in fields_before]
    renamed = {name: now for (name, _), now in zip(known["fields"], old_names, strict=False)}
    names = [name for name, _ in wanted["fields"]]
    before = dict(fields_before)
    inner = {name: _adapter(before.get(name), kind) for name, kind in wanted["fields"]}

    def adapt(value: Any) -> Any:
        if type(value) is tuple and len(value) == len(known["fields"]):  # a row without names
            held = dict(zip(old_names, value, strict=False))
            return tuple(_apply(inner[name], held.get(name)) for name in names)
        if not isinstance(value, Row):
            return value
        fields = value.get_field_names()
        if fields == names and not any(inner.values()):
            return value
        if fields is None:  # a row without names keeps the shape with which it was written
            fields = old_names if len(value) == len(known["fields"]) else names
        held = dict(zip([renamed.get(name, name) for name in fields], value, strict=False))
        made = Row(*(_apply(inner[name], held.get(name)) for name in names))
        made.set_field_names(names)
        made.set_row_kind(value.get_row_kind())
        return made

    return adapt


def _tuple_adapter(parts: list[Adapter | None]) -> Adapter:
    def adapt(value: Any) -> Any:
        return tuple(map(_apply, parts, value)) if type(value) is tuple and len(value) == len(parts) else value

    return adapt


def _apply(adapt: Adapter | None, value: Any) -> Any:
    return value if adapt is None or value is None else adapt(value)
