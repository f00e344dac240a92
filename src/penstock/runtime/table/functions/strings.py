"""String functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.table.type_rules import is_character, is_integer
from penstock.core.table.types import CharType, DataType, IntType, VarCharType
from penstock.runtime.table.expressions import Value
from penstock.runtime.table.functions.registry import CHARACTER, INT, STRING, by_row, first_argument, scalar


def _part(types: Sequence[DataType]) -> DataType | None:
    """The type of a part of the first argument."""
    return VarCharType(types[0].length) if is_character(types[0]) else None  # type: ignore[attr-defined]


def _sum(types: Sequence[DataType]) -> DataType | None:
    """The type of all arguments one after the other."""
    if not all(is_character(one) for one in types):
        return None
    length = sum(one.length for one in types)  # type: ignore[attr-defined]
    if all(isinstance(one, CharType) for one in types):
        return CharType(length)
    return VarCharType(min(length, STRING.length))


@scalar("UPPER", "UCASE", takes=[CHARACTER], gives=first_argument)
def upper(context: Any, text: Value) -> Value:
    """Convert to upper case. Letters such as ß become two."""
    return _cased(text, pc.ascii_upper, str.upper)


@scalar("LOWER", "LCASE", takes=[CHARACTER], gives=first_argument)
def lower(context: Any, text: Value) -> Value:
    """Convert to lower case."""
    return _cased(text, pc.ascii_lower, str.lower)


def _cased(text: Value, ascii_only: Callable[[Value], Value], by_value: Callable[[str], str]) -> Value:
    plain = pc.string_is_ascii(text)
    if (plain.as_py() if isinstance(plain, pa.Scalar) else pc.all(plain).as_py()) is not False:
        return ascii_only(text)
    if isinstance(text, pa.Scalar):
        return pa.scalar(by_value(text.as_py()), text.type)
    return pa.array([None if one is None else by_value(one) for one in text.to_pylist()], text.type)


@scalar("CHAR_LENGTH", "CHARACTER_LENGTH", "LENGTH", takes=[CHARACTER], gives=IntType())
def char_length(context: Any, text: Value) -> Value:
    """Return the number of characters."""
    return pc.utf8_length(text)


@scalar("||", takes=[CHARACTER, CHARACTER], gives=_sum)
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


@by_row("SUBSTRING", "SUBSTR", takes=[CHARACTER, INT, INT], gives=_part, optional=1)
def substring(text: str, start: int, length: int | None = None) -> str | None:
    """Return a part of a string. Positions start at 1; negative ones count from the end (T38)."""
    if length is not None and length < 0:
        return None
    begin = start - 1 if start > 0 else start + len(text) if start < 0 else 0
    if not 0 <= begin < len(text):
        return ""
    return text[begin:] if length is None else text[begin : begin + length]


@by_row("TRIM", takes=[CHARACTER, CHARACTER], gives=_part, optional=1)
def trim(text: str, characters: str = " ", where: str = "BOTH") -> str:
    """Remove characters at the ends."""
    if where != "TRAILING":
        text = text.lstrip(characters)
    return text if where == "LEADING" else text.rstrip(characters)


@by_row("LTRIM", takes=[CHARACTER, CHARACTER], gives=_part, optional=1)
def ltrim(text: str, characters: str = " ") -> str:
    """Remove characters at the beginning."""
    return text.lstrip(characters)


@by_row("RTRIM", takes=[CHARACTER, CHARACTER], gives=_part, optional=1)
def rtrim(text: str, characters: str = " ") -> str:
    """Remove characters at the end."""
    return text.rstrip(characters)


@scalar("REPLACE", takes=[CHARACTER, CHARACTER, CHARACTER], gives=STRING)
def replace(context: Any, text: Value, old: Value, new: Value) -> Value:
    """Replace every occurrence of a string."""
    constant = all(isinstance(value, pa.Scalar) and value.is_valid for value in (old, new))
    if constant and old.as_py():  # Arrow never ends for an empty text
        return pc.replace_substring(text, old.as_py(), new.as_py())
    rows = max((len(value) for value in (text, old, new) if not isinstance(value, pa.Scalar)), default=1)
    columns = [[v.as_py()] * rows if isinstance(v, pa.Scalar) else v.to_pylist() for v in (text, old, new)]
    values = [None if None in row else row[0].replace(row[1], row[2]) for row in zip(*columns, strict=True)]
    column = pa.array(values, pa.string())
    return column[0] if isinstance(text, pa.Scalar) and rows == 1 else column


@lru_cache(maxsize=1_024)
def compiled_pattern(pattern: str) -> re.Pattern[str] | None:
    """Compile a regular expression; None if it is invalid."""
    try:
        return re.compile(pattern)
    except (re.error, OverflowError):  # a repetition may have too many digits
        return None


@by_row("REGEXP_EXTRACT", takes=[CHARACTER, CHARACTER, INT], gives=STRING, optional=1)
def regexp_extract(text: str, pattern: str, group: int = 0) -> str | None:
    """Return a group of the first match; NULL without a match (T39)."""
    compiled = compiled_pattern(pattern)
    found = None if compiled is None else compiled.search(text)
    return None if found is None or group > len(found.groups()) or group < 0 else found.group(group)


@by_row("REGEXP_REPLACE", takes=[CHARACTER, CHARACTER, CHARACTER], gives=STRING)
def regexp_replace(text: str, pattern: str, replacement: str) -> str:
    """Replace every match. The replacement is literal: ``$1`` does not refer to a group."""
    return re.sub(pattern, lambda _: replacement, text)


@by_row("SPLIT_INDEX", takes=[CHARACTER, lambda one: is_character(one) or is_integer(one), INT], gives=STRING)
def split_index(text: str, separator: str | int, index: int) -> str | None:
    """Return a part of a string, counted from 0; NULL outside (T38). The separator may be a character code."""
    if isinstance(separator, int):
        separator = chr(separator)
    parts = text.split(separator) if text and separator else [text] if text else []
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


@by_row("LEFT", takes=[CHARACTER, INT], gives=_part)
def left(text: str, length: int) -> str:
    """Return the first characters."""
    return text[: max(0, length)]


@by_row("RIGHT", takes=[CHARACTER, INT], gives=_part)
def right(text: str, length: int) -> str:
    """Return the last characters."""
    return text[-length:] if length > 0 else ""


@by_row("REPEAT", takes=[CHARACTER, INT], gives=STRING)
def repeat(text: str, times: int) -> str:
    """Repeat a string."""
    return text * max(0, times)


@by_row("INITCAP", takes=[CHARACTER], gives=first_argument)
def initcap(text: str) -> str:
    """Capitalize every word."""
    return re.sub(r"[a-zA-Z0-9]+", lambda word: word.group()[0].upper() + word.group()[1:].lower(), text)
