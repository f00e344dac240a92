"""Encode values of state in a form that survives changes of the program's classes.

Plain Python values are pickled directly, in C. Rows, windows, dataclasses and named tuples are encoded by field name,
through functions of `stored_values`, so that their definitions may change (rules J08 to J10).
"""

from __future__ import annotations

import dataclasses
import io
import pickle
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import cloudpickle

from penstock.common.errors import SavepointError, SerializationError, shorten
from penstock.common.types import Row
from penstock.core.window import CountWindow, GlobalWindow, TaggedUnion, TimeWindow
from penstock.runtime.records.stored_classes import StoredUnpickler
from penstock.runtime.state import stored_values as values
from penstock.runtime.state.field_types import field_types
from penstock.runtime.state.key_slices import KeySlices
from penstock.runtime.state.record_types import is_named_tuple, pickles_plainly

_PROTOCOL = 5

Reduced = tuple[Any, ...]


class _RecordType:
    """A dataclass or named tuple. It is pickled once per block, however many values the block has."""

    def __init__(self, cls: type) -> None:
        self.reference = values.class_name(cls) or cls
        self.field_types = field_types(cls)


_record_types: WeakKeyDictionary[type, _RecordType] = WeakKeyDictionary()


def _record_type(cls: type) -> _RecordType:
    known = _record_types.get(cls)
    if known is None or known.reference != (values.class_name(cls) or cls):
        known = _record_types[cls] = _RecordType(cls)
    return known


_OURS: dict[type, Callable[[Any], Reduced]] = {
    TimeWindow: lambda w: (values.time_window, (w.start, w.end)),
    GlobalWindow: lambda w: (values.global_window, ()),
    CountWindow: lambda w: (values.count_window, (w.id,)),
    TaggedUnion: lambda t: (values.tagged, (t.tag, t.value)),
    KeySlices: lambda s: (values.key_slices, (dict(s), s.arrivals)),
    Row: lambda r: (values.row, (r._fields, r._values, r._row_kind.value)),
    _RecordType: lambda t: (values.record_type, (t.reference, t.field_types)),
}


def _reduce(value: Any) -> Any:
    """Return how to write a value. NotImplemented leaves it to pickle."""
    cls: Any = type(value)
    ours = _OURS.get(cls)
    if ours is not None:
        return ours(value)
    if cls is type or cls in _SKIPPED:
        return NotImplemented
    if dataclasses.is_dataclass(value):
        return _reduce_dataclass(value, cls) if pickles_plainly(cls) else NotImplemented
    if isinstance(value, tuple) and is_named_tuple(cls):
        names: tuple[str, ...] = cls._fields
        return values.named_tuple, (_record_type(cls), dict(zip(names, value, strict=True)))
    return NotImplemented


_SKIPPED = {type(_reduce), type(len)}  # functions


def _reduce_dataclass(value: Any, cls: type) -> Reduced:
    names = [field.name for field in dataclasses.fields(cls)]
    fields = {name: getattr(value, name) for name in names if hasattr(value, name)}
    others = {name: other for name, other in getattr(value, "__dict__", {}).items() if name not in fields}
    kind = _record_type(cls)
    return values.dataclass_value, (kind, fields, others) if others else (kind, fields)


class _Encoder(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        return _reduce(obj)


class _ThoroughEncoder(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles classes that exist only inside a function, by value."""

    def reducer_override(self, obj: Any) -> Any:
        reduced = _reduce(obj)
        return super().reducer_override(obj) if reduced is NotImplemented else reduced


class _Decoder(StoredUnpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError) as error:
            raise SavepointError(
                f"the savepoint has values that need '{name}' of module {module}, which cannot be found ({error}): "
                "keep it where it was, or import it under that name"
            ) from None


def encode(value: Any, label: str) -> bytes:
    """Encode a value as bytes. `label` names it in errors.

    >>> decode(encode({"a": Row(x=1)}, "state"), "state")
    {'a': Row(x=1)}
    """
    buffer = io.BytesIO()
    try:
        _Encoder(buffer, _PROTOCOL).dump(value)
    except Exception:
        buffer = io.BytesIO()
        try:
            _ThoroughEncoder(buffer, _PROTOCOL).dump(value)
        except Exception as error:
            raise SerializationError(f"{label} cannot be written ({error}): {shorten(value)}") from error
    return buffer.getvalue()


def decode(data: bytes, label: str) -> Any:
    """Decode a value from bytes."""
    try:
        return _Decoder(io.BytesIO(data)).load()
    except SavepointError as error:
        raise SavepointError(f"{label} cannot be read: {error}") from None
    except Exception as error:
        raise SavepointError(f"{label} cannot be read: {type(error).__name__}: {error}") from error
