"""Functions that rebuild the values in a savepoint.

A savepoint refers to these functions by name, so they are part of the format. A released name keeps its meaning
forever, even if the classes behind it change.
"""

from __future__ import annotations

import dataclasses
import sys
from importlib import import_module
from typing import Any

from penstock.common.errors import SavepointError
from penstock.common.types import Row, RowKind
from penstock.core.window import CountWindow, GlobalWindow, TaggedUnion, TimeWindow
from penstock.runtime.records.stored_classes import find_stored_class
from penstock.runtime.state.field_types import FieldTypes, changed_field, field_types, is_given
from penstock.runtime.state.key_slices import KeySlices

__all__ = [
    "class_by_name",
    "class_name",
    "count_window",
    "dataclass_value",
    "global_window",
    "key_slices",
    "named_tuple",
    "record_type",
    "row",
    "tagged",
    "time_window",
]


def time_window(start: int, end: int) -> TimeWindow:
    """Build a time window."""
    return TimeWindow(start, end)


def global_window() -> GlobalWindow:
    """Build the global window."""
    return GlobalWindow.get()


def count_window(number: int) -> CountWindow:
    """Build a count window."""
    return CountWindow(number)


def tagged(tag: int, value: Any) -> TaggedUnion:
    """Build a window element of a join."""
    return TaggedUnion(tag, value)


def key_slices(slices: dict[int, Any], arrivals: int) -> KeySlices:
    """Build the slices of the sliding windows of a key."""
    return KeySlices(slices, arrivals)


def row(names: tuple[str, ...] | None, values: list[Any], kind: int) -> Row:
    """Build a row."""
    made = Row(*values)
    if names is not None:
        made.set_field_names(names)
    made.set_row_kind(RowKind(kind))
    return made


def record_type(name: str | type, before: FieldTypes) -> type:
    """Return the current class of dataclass values or named tuples, once for all values of a block."""
    cls = name if isinstance(name, type) else class_by_name(name)
    changed = changed_field(before, field_types(cls))
    if changed is not None:
        raise SavepointError(
            f"the savepoint has values of {_shown(name)} with a field of another type: {changed}. Use a new field for "
            "values of another type"
        )
    return cls


def dataclass_value(name: str | type, fields: dict[str, Any], others: dict[str, Any] | None = None) -> Any:
    """Build an instance of the current dataclass: removed fields are dropped, new fields get their default."""
    cls = name if isinstance(name, type) else class_by_name(name)
    if not dataclasses.is_dataclass(cls):
        raise SavepointError(
            f"the savepoint has values of the dataclass {_shown(name)}, which is no longer a dataclass: keep it one"
        )
    made = object.__new__(cls)
    for field in dataclasses.fields(cls):
        if field.name in fields:
            value = fields[field.name]
        elif is_given(field.default):
            value = field.default
        elif is_given(field.default_factory):
            value = field.default_factory()  # type: ignore[operator]
        else:
            raise SavepointError(
                f"the dataclass {_shown(name)} has a new field '{field.name}', which values in the savepoint lack: "
                "give it a default"
            )
        object.__setattr__(made, field.name, value)
    for attribute, value in (others or {}).items():
        object.__setattr__(made, attribute, value)
    return made


def named_tuple(name: str | type, fields: dict[str, Any]) -> Any:
    """Build a named tuple of the current class: removed fields are dropped, new fields need a default."""
    cls = name if isinstance(name, type) else class_by_name(name)
    known = getattr(cls, "_fields", None)
    if known is None:
        raise SavepointError(
            f"the savepoint has values of the named tuple {_shown(name)}, which is no longer a named tuple"
        )
    defaults: dict[str, Any] = cls._field_defaults  # type: ignore[attr-defined]
    missing = [field for field in known if field not in fields and field not in defaults]
    if missing:
        raise SavepointError(
            f"the named tuple {_shown(name)} has a new field '{missing[0]}', which values in the savepoint lack: "
            "give it a default"
        )
    return cls(**{field: fields[field] for field in known if field in fields})


def class_name(cls: type) -> str | None:
    """Return ``module:name`` if it leads to the class in another process, else None."""
    module, name = cls.__module__, cls.__qualname__
    if "<locals>" in name:
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is cls else None


def class_by_name(name: str) -> type:
    """Return the class named ``module:name``."""
    module, _, path = name.partition(":")
    try:
        found: Any = find_stored_class(name) if module.startswith("penstock.") else _attribute(module, path)
    except (ImportError, AttributeError) as error:
        raise SavepointError(
            f"the savepoint has values of class {path} of module {module}, which cannot be found ({error}): keep the "
            "class where it was, or import it under that name"
        ) from None
    if not isinstance(found, type):
        raise SavepointError(f"the savepoint has values of class {path} of module {module}, which is no longer a class")
    return found


def _attribute(module: str, path: str) -> Any:
    found: Any = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _shown(name: str | type) -> str:
    return name.__qualname__ if isinstance(name, type) else name.partition(":")[2]
