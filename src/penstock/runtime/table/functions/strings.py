"""String functions."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.table.type_rules import is_character, is_integer
from penstock.core.table.types import IntType
from penstock.runtime.table.expressions import Value
from penstock.runtime.table.functions.registry import CHARACTER, INT, STRING, by_row, scalar


@scalar("UPPER", "UCASE", takes=[CHARACTER], gives=STRING)
def upper(context: Any, text: Value) -> Value:
    """Convert to upper case."""
    return pc.utf8_upper(text)


@scalar("LOWER", "LCASE", takes=[CHARACTER], gives=STRING)
def lower(context: Any, text: Value) -> Value:
    """Convert to lower case."""
    return pc.utf8_lower(text)


@scalar("CHAR_LENGTH", "CHARACTER_LENGTH", "LENGTH", takes=[CHARACTER], gives=IntType())
def char_length(context: Any, text: Value) -> Value:
    """Return the number of characters."""
    return pc.utf8_length(text)


@scalar("||", takes=[CHARACTER, CHARACTER], gives=STRING)
def concatenate(context: Any, left: Value, right: Value) -> Value:
    """Concatenate two strings; NULL if one is NULL (T38)."""
    return pc.binary_join_element_wise(left, right, "")


@scalar("CONCAT", takes=[CHARACTER], gives=STRING, variadic=True)
def concat(context: Any, *texts: Value) -> Value:
    """Concatenate strings; NULL if one is NULL (T38)."""
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "")


@by_row("CONCAT_WS", takes=[CHARACTER, CHARACTER], gives=STRING, variadic=True, sees_null=True)
def concat_ws(separator: str | None, *texts: str | None) -> str | None:
    """Join strings with a separator, without NULLs (T38)."""
    return None if separator is None else separator.join(text for text in texts if text is not None)


@by_row("SUBSTRING", "SUBSTR", takes=[CHARACTER, INT, INT], gives=STRING, optional=1)
def substring(text: str, start: int, length: int | None = None) -> str:
    """Return a part of a string. Positions start at 1; negative ones count from the end (T38)."""
    if start > 0:
        begin = start - 1
    elif start < 0:
        begin = len(text) + start
    else:
        begin = 0
    end = len(text) if length is None else begin + length
    return text[max(begin, 0) : max(end, 0)] if begin < len(text) else ""


@by_row("TRIM", takes=[CHARACTER, CHARACTER], gives=STRING, optional=1)
def trim(text: str, characters: str = " ", where: str = "BOTH") -> str:
    """Remove characters at the ends."""
    if where != "TRAILING":
        text = text.lstrip(characters)
    return text if where == "LEADING" else text.rstrip(characters)


@by_row("LTRIM", takes=[CHARACTER, CHARACTER], gives=STRING, optional=1)
def ltrim(text: str, characters: str = " ") -> str:
    """Remove characters at the beginning."""
    return text.lstrip(characters)


@by_row("RTRIM", takes=[CHARACTER, CHARACTER], gives=STRING, optional=1)
def rtrim(text: str, characters: str = " ") -> str:
    """Remove characters at the end."""
    return text.rstrip(characters)


@scalar("REPLACE", takes=[CHARACTER, CHARACTER, CHARACTER], gives=STRING)
def replace(context: Any, text: Value, old: Value, new: Value) -> Value:
    """Replace every occurrence of a string."""
    if isinstance(old, pa.Scalar) and isinstance(new, pa.Scalar) and old.is_valid and new.is_valid:
        return pc.replace_substring(text, old.as_py(), new.as_py())
    rows = max(len(value) for value in (text, old, new) if not isinstance(value, pa.Scalar))
    columns = [[v.as_py()] * rows if isinstance(v, pa.Scalar) else v.to_pylist() for v in (text, old, new)]
    values = [None if None in row else row[0].replace(row[1], row[2]) for row in zip(*columns, strict=True)]
    return pa.array(values, pa.string())


@by_row("REGEXP_EXTRACT", takes=[CHARACTER, CHARACTER, INT], gives=STRING, optional=1)
def regexp_extract(text: str, pattern: str, group: int = 0) -> str | None:
    """Return a group of the first match; NULL without a match (T39)."""
    found = re.search(pattern, text)
    return None if found is None or group > len(found.groups()) or group < 0 else found.group(group)


@by_row("REGEXP_REPLACE", takes=[CHARACTER, CHARACTER, CHARACTER], gives=STRING)
def regexp_replace(text: str, pattern: str, replacement: str) -> str:
    """Replace every match. $1 is the first group."""
    return re.sub(pattern, re.sub(r"\$(\d+)", r"\\\1", replacement), text)


@by_row("SPLIT_INDEX", takes=[CHARACTER, lambda one: is_character(one) or is_integer(one), INT], gives=STRING)
def split_index(text: str, separator: str | int, index: int) -> str | None:
    """Return a part of a string, counted from 0; NULL outside (T38). The separator may be a character code."""
    if isinstance(separator, int):
        separator = chr(separator)
    parts = text.split(separator) if separator else [text]
    return parts[index] if 0 <= index < len(parts) else None


@by_row("POSITION", takes=[CHARACTER, CHARACTER], gives=IntType())
def position(part: str, text: str) -> int:
    """Return the position of a part, from 1; 0 if it is missing."""
    return text.find(part) + 1


@scalar("REVERSE", takes=[CHARACTER], gives=STRING)
def reverse(context: Any, text: Value) -> Value:
    """Reverse a string."""
    return pc.utf8_reverse(text)


@by_row("LPAD", takes=[CHARACTER, INT, CHARACTER], gives=STRING)
def lpad(text: str, length: int, pad: str) -> str | None:
    """Pad at the beginning, or cut to the length."""
    if length < 0 or (not pad and length > len(text)):
        return None
    return (pad * length)[: max(0, length - len(text))] + text if length > len(text) else text[:length]


@by_row("RPAD", takes=[CHARACTER, INT, CHARACTER], gives=STRING)
def rpad(text: str, length: int, pad: str) -> str | None:
    """Pad at the end, or cut to the length."""
    if length < 0 or (not pad and length > len(text)):
        return None
    return text + (pad * length)[: max(0, length - len(text))] if length > len(text) else text[:length]


@by_row("LEFT", takes=[CHARACTER, INT], gives=STRING)
def left(text: str, length: int) -> str:
    """Return the first characters."""
    return text[: max(0, length)]


@by_row("RIGHT", takes=[CHARACTER, INT], gives=STRING)
def right(text: str, length: int) -> str:
    """Return the last characters."""
    return text[-length:] if length > 0 else ""


@by_row("REPEAT", takes=[CHARACTER, INT], gives=STRING)
def repeat(text: str, times: int) -> str:
    """Repeat a string."""
    return text * max(0, times)


@by_row("INITCAP", takes=[CHARACTER], gives=STRING)
def initcap(text: str) -> str:
    """Capitalize every word."""
    return re.sub(r"[a-zA-Z0-9]+", lambda word: word.group()[0].upper() + word.group()[1:].lower(), text)
