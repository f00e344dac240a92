"""Detect keys of another form than the keys of stored state, which no record would find.

The form of the keys is known only after the key selector has returned some. Therefore the keys of a program's first
records are compared with some keys of the restored state (rule J10).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal
from itertools import islice
from typing import Any

from penstock.common.types import Row

_ENOUGH = 1_000
_FAMILIES: dict[type, str] = {  # Keys of one family may be equal. Keys of different families never are.
    **dict.fromkeys((int, bool, float, complex, Decimal), "a number"),
    **{kind: f"a {kind.__name__}" for kind in (str, bytes, dt.date, dt.time, dt.datetime, frozenset)},
}

Forms = dict[int | None, set[str]]
"""The forms of keys (under None) and of the fields of tuples, by position."""


def forms_of(keys: Iterable[Any]) -> Forms:
    """Return the forms of some keys, except None and user-defined classes, which may be anything.

    >>> forms_of([("a", 1), ("b", 2.0)])
    {None: {'a tuple of 2'}, 0: {'a str'}, 1: {'a number'}}
    """
    forms: Forms = {}
    for key in islice(keys, _ENOUGH):
        kind = type(key)
        if kind is tuple or kind is Row:
            forms.setdefault(None, set()).add(f"a {kind.__name__} of {len(key)}")
            for position, part in enumerate(key):
                _note(forms, position, part)
        else:
            _note(forms, None, key)
    return forms


def _note(forms: Forms, where: int | None, value: Any) -> None:
    if value is not None:
        forms.setdefault(where, set()).add(_FAMILIES.get(type(value), "?"))


def other_form(known: Forms, now: Forms) -> str | None:
    """Explain how the keys of a program differ from the known ones. Return None if they may be the same.

    >>> other_form(forms_of([1, 2]), forms_of(["1"]))
    'a str, and was a number'
    >>> other_form(forms_of([("a", 1)]), forms_of([("a", "1")]))
    'a tuple of 2 whose field 1 is a str, and was a number'
    """
    for where, before in known.items():
        after = now.get(where, {"?"})
        if "?" not in before | after and not before & after:
            field = "" if where is None else f"{min(now[None])} whose field {where} is "
            return f"{field}{' or '.join(sorted(after))}, and was {' or '.join(sorted(before))}"
    return None
