"""Functions that search and split strings."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from penstock.core.table.type_rules import common_type, is_binary, is_character
from penstock.core.table.types import ArrayType, DataType, IntType, NullType
from penstock.runtime.table.functions.registry import BOOLEAN, CHARACTER, INT, INTEGER, STRING, by_row
from penstock.runtime.table.functions.strings import compiled_pattern


def _is_text_or_bytes(one: DataType) -> bool:
    return is_character(one) or is_binary(one) or isinstance(one, NullType)


@by_row("STARTSWITH", takes=[_is_text_or_bytes] * 2, gives=BOOLEAN)
def startswith(text: Any, part: Any) -> bool:
    """Whether a string or bytes begin with others."""
    return bool(text.startswith(part))


@by_row("ENDSWITH", takes=[_is_text_or_bytes] * 2, gives=BOOLEAN)
def endswith(text: Any, part: Any) -> bool:
    """Whether a string or bytes end with others."""
    return bool(text.endswith(part))


@by_row("BTRIM", takes=[CHARACTER, CHARACTER], gives=STRING, optional=1)
def btrim(text: str, characters: str = " ") -> str:
    """Remove characters at both ends."""
    return text.strip(characters)


@by_row("ASCII", takes=[CHARACTER], gives=IntType())
def ascii_code(text: str) -> int:
    """Return the first byte as a signed number; 0 for an empty string."""
    return (text.encode()[0] + 128) % 256 - 128 if text else 0


@by_row("CHR", takes=[INTEGER], gives=STRING)
def character(code: int) -> str:
    """Return the character for a code modulo 256."""
    return "" if code < 0 else chr(code % 256)


@by_row("INSTR", takes=[CHARACTER, CHARACTER, INT, INT], gives=IntType(), optional=2)
def instr(text: str, part: str, start: int = 1, occurrence: int = 1) -> int | None:
    """Return the position of the n-th occurrence, from 1; 0 without one. A negative start searches from the end."""
    if start == 0:
        return 0
    if occurrence <= 0:
        raise ValueError(f"the occurrence in INSTR must be at least 1, got {occurrence}")
    place = start - 2 if start > 0 else len(text) + start + 1
    for _ in range(occurrence):
        place = text.find(part, place + 1) if start > 0 else text.rfind(part, 0, max(0, place - 1 + len(part)))
        if place < 0:
            return 0
    return place + 1


@by_row("LOCATE", takes=[CHARACTER, CHARACTER, INT], gives=IntType(), optional=1)
def locate(part: str, text: str, start: int = 1) -> int:
    """Return the position of a part at or after a start position, from 1; 0 if it is missing."""
    return text.find(part, max(0, start - 1)) + 1


@by_row("OVERLAY", takes=[CHARACTER, CHARACTER, INT, INT], gives=STRING, optional=1)
def overlay(text: str, new: str, start: int, length: int | None = None) -> str:
    """Replace a part given by its position. Without a positive length, nothing follows the new part."""
    if start <= 0 or start > len(text):
        return text
    if length is None:
        length = len(new)
    rest = text[start - 1 + length :] if length > 0 else ""
    return text[: start - 1] + new + rest


@by_row("TRANSLATE", "TRANSLATE3", takes=[CHARACTER, CHARACTER, CHARACTER], gives=STRING)
def translate(text: str, old: str, new: str) -> str:
    """Replace characters one by one. Characters without a counterpart are removed."""
    table: dict[int, str | None] = {}
    for index, one in enumerate(old):
        table.setdefault(ord(one), new[index] if index < len(new) else None)
    return text.translate(table)


@by_row("REGEXP", takes=[CHARACTER, CHARACTER], gives=BOOLEAN)
def regexp(text: str, pattern: str) -> bool:
    """Whether a part of a string matches. An invalid pattern matches nothing."""
    compiled = compiled_pattern(pattern)
    return bool(pattern) and compiled is not None and compiled.search(text) is not None


@by_row("REGEXP_COUNT", takes=[CHARACTER, CHARACTER], gives=IntType())
def regexp_count(text: str, pattern: str) -> int | None:
    """Return the number of matches; NULL for an invalid pattern."""
    compiled = compiled_pattern(pattern)
    return None if compiled is None else sum(1 for _ in compiled.finditer(text))


@by_row("REGEXP_INSTR", takes=[CHARACTER, CHARACTER], gives=IntType())
def regexp_instr(text: str, pattern: str) -> int | None:
    """Return the position of the first match, from 1; 0 without a match, NULL for an invalid pattern."""
    compiled = compiled_pattern(pattern)
    if compiled is None:
        return None
    found = compiled.search(text)
    return 0 if found is None else found.start() + 1


@by_row("REGEXP_SUBSTR", takes=[CHARACTER, CHARACTER], gives=STRING)
def regexp_substr(text: str, pattern: str) -> str | None:
    """Return the first match; NULL without one."""
    compiled = compiled_pattern(pattern)
    found = None if compiled is None else compiled.search(text)
    return None if found is None else found.group()


@by_row("REGEXP_EXTRACT_ALL", takes=[CHARACTER, CHARACTER, INT], gives=ArrayType(STRING), optional=1)
def regexp_extract_all(text: str, pattern: str, group: int = 1) -> list[str | None] | None:
    """Return a group of every match."""
    compiled = compiled_pattern(pattern)
    if compiled is None:
        return None
    return None if not 0 <= group <= compiled.groups else [one.group(group) for one in compiled.finditer(text)]


@by_row(
    "ELT",
    takes=[INTEGER, _is_text_or_bytes],
    gives=lambda types: common_type(types[1:]),
    variadic=True,
    sees_null=True,
)
def elt(index: int | None, *texts: Any) -> Any:
    """Return the string at a position; NULL outside."""
    return texts[index - 1] if index is not None and 1 <= index <= len(texts) else None


@by_row("PARSE_URL", takes=[CHARACTER, CHARACTER, CHARACTER], gives=STRING, optional=1)
def parse_url(address: str, part: str, key: str | None = None) -> str | None:
    """Return a part of a URL: HOST, PATH, QUERY, REF, PROTOCOL, AUTHORITY, FILE or USERINFO."""
    url = urlsplit(address)
    if not url.scheme:
        return None
    if key is not None:
        found = re.search(rf"(?:^|&){re.escape(key)}=([^&]*)", url.query) if part == "QUERY" else None
        return None if found is None else found.group(1)
    userinfo, at, _ = url.netloc.rpartition("@")
    parts = {
        "HOST": url.hostname,
        "PATH": url.path,
        "QUERY": url.query or None,
        "REF": url.fragment or None,
        "PROTOCOL": url.scheme,
        "AUTHORITY": url.netloc,
        "FILE": url.path + (f"?{url.query}" if url.query else ""),
        "USERINFO": userinfo if at else None,
    }
    return parts.get(part)
