"""Paths into JSON (``$.a[0].b``, ``lax $.a[*]``), as in SQL's JSON functions, and compact JSON text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from penstock.core.table.types import DoubleType
from penstock.runtime.table.text import text_of

_STEP = re.compile(
    r"""
    \.\.(?P<deep>\*|[^.\[\]]+)
    | \.(?P<name>\*|[^.\[\]]+)
    | \.?\[\s*'(?P<single>(?:[^'\\]|\\.)*)'\s*\]
    | \.?\[\s*"(?P<double>(?:[^"\\]|\\.)*)"\s*\]
    | \[\s*(?P<index>-?\d+|\*)\s*\]
    | \[\s*(?P<start>-?\d*)\s*:\s*(?P<end>-?\d*)\s*\]
    """,
    re.VERBOSE,
)


class JsonPathError(ValueError):
    """A path is invalid, or leads nowhere in strict mode."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """The steps from the root. ``definite`` if they lead to at most one value."""

    steps: tuple[tuple[str, Any], ...]
    strict: bool
    definite: bool

    @staticmethod
    @lru_cache(maxsize=1_024)
    def parse(text: str) -> JsonPath:
        """Parse a path. Without a mode it is strict.

        >>> JsonPath.parse("lax $.a[*]['b c']").steps
        (('name', 'a'), ('all', None), ('name', 'b c'))
        """
        words = text.strip()
        mode = re.match(r"(lax|strict)\b\s*", words, re.IGNORECASE)
        strict = mode is None or mode.group(1).lower() == "strict"
        rest = words[mode.end() :] if mode else words
        if not rest.startswith("$"):
            raise JsonPathError(f"{text!r} is not a JSON path: it must begin with '$'")
        position, steps = 1, []
        rest = rest.rstrip()
        while position < len(rest):
            found = _STEP.match(rest, position)
            if found is None:
                raise JsonPathError(f"the JSON path {text!r} cannot be read from {rest[position:]!r} on")
            steps.append(_step(found))
            position = found.end()
        return JsonPath(tuple(steps), strict, all(kind in ("name", "index") for kind, _ in steps))

    def find(self, document: Any) -> Any:
        """Return the value at the path, or a list of values if it is not definite. Raise KeyError if there is none."""
        values = [document]
        for step in self.steps:
            values = [found for value in values for found in _follow(value, step)]
        if not self.definite:
            return values
        if not values:
            raise KeyError
        return values[0]


def _step(found: re.Match[str]) -> tuple[str, Any]:
    if found["deep"] is not None:
        return "deep", found["deep"].strip()
    if found["name"] is not None:
        name = found["name"].strip()
        return ("all", None) if name == "*" else ("name", name)
    if found["index"] is not None:
        return ("all", None) if found["index"] == "*" else ("index", int(found["index"]))
    quoted = found["single"] if found["single"] is not None else found["double"]
    if quoted is not None:
        return "name", re.sub(r"\\(.)", r"\1", quoted)
    bounds = [int(one) if one else None for one in (found["start"], found["end"])]
    return "slice", tuple(bounds)


def _follow(value: Any, step: tuple[str, Any]) -> Iterator[Any]:
    kind, what = step
    match kind:
        case "name" if isinstance(value, dict):
            if what in value:
                yield value[what]
        case "index" if isinstance(value, list):
            if -len(value) <= what < len(value):
                yield value[what]
        case "slice" if isinstance(value, list):
            yield from value[slice(*what)]
        case "all" if isinstance(value, (list, dict)):
            yield from value.values() if isinstance(value, dict) else value
        case "deep":
            yield from _deep(value, what)


def _deep(value: Any, name: str) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if name in ("*", key):
                yield inner
            yield from _deep(inner, name)
    elif isinstance(value, list):
        for inner in value:
            if name == "*":
                yield inner
            yield from _deep(inner, name)


def parse_json(text: str) -> Any:
    """Parse a JSON document. Numbers with a decimal point keep their digits."""
    return json.loads(text, parse_float=Decimal, parse_constant=_no_constant)


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def json_text(value: Any) -> str:
    """Return a value as compact JSON, with sorted keys.

    >>> json_text({"a": [1, None, Decimal("1.50")], "b": "ä"})
    '{"a":[1,null,1.50],"b":"ä"}'
    """
    match value:
        case Decimal():
            return str(value)
        case list() | tuple():
            return f"[{','.join(map(json_text, value))}]"
        case dict():
            return (
                "{"
                + ",".join(f"{json.dumps(str(k), ensure_ascii=False)}:{json_text(value[k])}" for k in sorted(value))
                + "}"
            )
        case float():
            return str(Decimal(text_of(value, DoubleType()))) if math.isfinite(value) else f'"{value}"'
        case None | bool() | int() | str():
            return json.dumps(value, ensure_ascii=False)
    return json.dumps(str(value), ensure_ascii=False)
