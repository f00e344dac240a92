"""The dataclasses and named tuples in stored state, and their fields when it was written.

Pages are plain pickles, which contain class names but no definitions. A program with another version of a class must
detect this: an old instance would lack new fields, and a named tuple stores its values by position.
"""

from __future__ import annotations

import contextlib
import copyreg
import dataclasses
import io
from typing import Any

from penstock.core.cpython import PICKLE_CLASS, PICKLE_MEMOIZE, PICKLE_SHORT_STRING, PICKLE_STACK_GLOBAL
from penstock.runtime.records.stored_classes import StoredUnpickler
from penstock.runtime.state.field_types import field_types

RecordTypes = dict[str, dict[str, Any]]
"""``module:name`` -> description of the class."""

DATACLASS, NAMED_TUPLE = "dataclass", "named tuple"

_OURS = "penstock."


def record_type(cls: Any) -> dict[str, Any] | None:
    """Describe the fields of a dataclass or named tuple. Return None for other classes and for custom pickling.

    >>> from collections import namedtuple
    >>> record_type(namedtuple("Point", "x y"))
    {'kind': 'named tuple', 'form': 'positions', 'fields': ['x', 'y'], 'types': {}}
    """
    if not isinstance(cls, type):
        return None
    if dataclasses.is_dataclass(cls):
        if not pickles_plainly(cls):
            return None
        names = [field.name for field in dataclasses.fields(cls)]
        return {"kind": DATACLASS, "form": _form(cls), "fields": names, "types": field_types(cls)}
    if is_named_tuple(cls):
        return {"kind": NAMED_TUPLE, "form": "positions", "fields": list(cls._fields), "types": field_types(cls)}  # type: ignore[attr-defined]
    return None


def is_named_tuple(cls: type) -> bool:
    """Whether this is a named tuple without custom pickling."""
    return issubclass(cls, tuple) and hasattr(cls, "_fields") and cls.__reduce_ex__ is object.__reduce_ex__


def pickles_plainly(cls: Any) -> bool:
    """Whether a dataclass has no custom pickling. A class with custom pickling handles its own changes."""
    own_state = getattr(cls, "__getstate__", object.__getstate__)
    return (
        cls.__reduce_ex__ is object.__reduce_ex__
        and cls.__reduce__ is object.__reduce__
        and cls not in copyreg.dispatch_table
        and getattr(own_state, "__module__", None) in (None, "dataclasses")
        and cls.__new__ is object.__new__
    )


def _form(cls: type) -> str:
    """Return how a dataclass stores its values in a pickle."""
    if getattr(cls.__getstate__, "__module__", None) == "dataclasses":
        return "positions"
    return "names" if cls.__dictoffset__ else "slots"


class RecordNotes:
    """Records the classes in written state. It must be cheap, because it runs for every written page."""

    __slots__ = ("_names", "known")

    def __init__(self, known: RecordTypes) -> None:
        self.known = known
        self._names: set[bytes] = set()

    def note(self, blob: bytes) -> None:
        """Look for classes in a pickle. Only an unknown name takes more than a few microseconds."""
        found = False
        position = blob.find(PICKLE_STACK_GLOBAL)
        while position > 0:
            if blob[position - 1 : position + 2] == PICKLE_CLASS:
                name = _name_before(blob, position)
                if name not in self._names:
                    self._names.add(name)
                    found = True
            position = blob.find(PICKLE_STACK_GLOBAL, position + 1)
        if found:
            self._note_all(blob)

    def _note_all(self, blob: bytes) -> None:
        reader = _ClassReader(io.BytesIO(blob))
        with contextlib.suppress(Exception):  # reading the value for use will raise the error
            reader.load()
        for name, cls in reader.classes.items():
            described = None if name.startswith(_OURS) else record_type(cls)
            if described is not None:
                self.known[name] = described


def _name_before(blob: bytes, position: int) -> bytes:
    """Return the strings in the pickle that name a class. The module may be missing if it was named earlier."""
    start = blob.rfind(PICKLE_SHORT_STRING, 0, position)
    if start > 0 and blob[start - 1 : start] == PICKLE_MEMOIZE:
        start = blob.rfind(PICKLE_SHORT_STRING, 0, start)
    return blob[max(start, 0) : position]


class _Anything:
    """Replaces all classes in a pickle, so that finding their names runs no user code."""

    __slots__ = ()

    def __new__(cls, *_: Any, **__: Any) -> Any:
        return object.__new__(cls)

    def _ignore(self, *_: Any) -> None:
        """Accept a part of the value."""

    __call__ = __setstate__ = __setitem__ = append = extend = add = _ignore


class _ClassReader(StoredUnpickler):
    """Reads a pickle only to find its classes."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream)
        self.classes: dict[str, Any] = {}

    def find_class(self, module: str, name: str) -> Any:
        self.classes[f"{module}:{name}"] = super().find_class(module, name)
        return _Anything
