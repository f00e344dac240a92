"""The types of the fields of dataclasses and named tuples, and whether they have changed.

Python does not enforce annotations, so values are not checked. Only the annotations of the stored and the current class
are compared (rule J10). If either is not a built-in type, the change is accepted.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any

FieldTypes = dict[str, list[str]]
"""The possible types of each field, by name. Fields of any type are left out."""

_NO_DEFAULT = type(dataclasses.MISSING)
_BUILT_IN = {kind.__name__ for kind in (bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict)}
_WIDER = {"bool": {"int", "float", "complex"}, "int": {"float", "complex"}, "float": {"complex"}}


def field_types(cls: type) -> FieldTypes:
    """Return the types of the fields of a class, where they are built-in types.

    >>> class Point(typing.NamedTuple):
    ...     x: int
    ...     labels: list[str] | None
    ...     more: typing.Any
    >>> field_types(Point)
    {'x': ['int'], 'labels': ['list']}
    """
    try:
        hints = typing.get_type_hints(cls)
    except Exception:  # names that exist only for type checkers
        return {}
    found = {name: _alternatives(hint) for name, hint in hints.items()}
    return {name: sorted(kinds) for name, kinds in found.items() if kinds and kinds <= _BUILT_IN}


def _alternatives(hint: Any) -> set[str]:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return set().union(*(_alternatives(each) for each in typing.get_args(hint) if each is not type(None)))
    kind = origin or hint
    return {kind.__name__ if isinstance(kind, type) and kind.__module__ == "builtins" else "?"}


def is_given(default: Any) -> bool:
    """Whether a dataclass field has this default, rather than the marker for a missing one.

    A class that was pickled by value has a copy of that marker.

    >>> import dataclasses
    >>> is_given(None), is_given(dataclasses.MISSING)
    (True, False)
    """
    return not isinstance(default, _NO_DEFAULT)


def changed_field(before: FieldTypes, now: FieldTypes) -> str | None:
    """Describe the first field whose stored values do not match its current annotation.

    >>> changed_field({"x": ["int"]}, {"x": ["float"]}), changed_field({"x": ["int"]}, {"x": ["str"]})
    (None, "'x' was int and is str now")
    """
    for name in before:
        accepted = set(now.get(name, ()))
        if accepted and any(kind not in accepted and not accepted & _WIDER.get(kind, set()) for kind in before[name]):
            return f"'{name}' was {' | '.join(before[name])} and is {' | '.join(now[name])} now"
    return None
