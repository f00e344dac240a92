"""Hashes and encodings of text."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any
from urllib.parse import quote_plus, unquote_plus
from uuid import uuid4

from penstock.core.table.types import CharType
from penstock.runtime.table.functions.registry import BINARY, BYTES, CHARACTER, INT, INTEGER, STRING, by_row


def _register(name: str, digits: int) -> None:
    algorithm = name.lower()

    @by_row(name, takes=[CHARACTER], gives=CharType(digits))
    def hashed(text: str) -> str:
        return hashlib.new(algorithm, text.encode(), usedforsecurity=False).hexdigest()


for _name, _digits in (("MD5", 32), ("SHA1", 40), ("SHA224", 56), ("SHA256", 64), ("SHA384", 96), ("SHA512", 128)):
    _register(_name, _digits)


@by_row("SHA2", takes=[CHARACTER, INT], gives=STRING)
def sha2(text: str, bits: int) -> str:
    """Compute a hash of the SHA-2 family with this number of bits."""
    if bits not in (224, 256, 384, 512):
        raise ValueError(f"SHA2 takes 224, 256, 384 or 512 bits, got {bits}")
    return hashlib.new(f"sha{bits}", text.encode()).hexdigest()


@by_row("TO_BASE64", takes=[CHARACTER], gives=STRING)
def to_base64(text: str) -> str:
    """Encode a string's bytes as base64."""
    return base64.b64encode(text.encode()).decode()


@by_row("FROM_BASE64", takes=[CHARACTER], gives=STRING)
def from_base64(text: str) -> str:
    """Decode a base64 string, with or without its padding."""
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode(errors="replace")


def _is_hexable(one: Any) -> bool:
    return CHARACTER(one) or INTEGER(one)


@by_row("HEX", takes=[_is_hexable], gives=STRING)
def hexadecimal(value: Any) -> str:
    """Return the hexadecimal digits of a number, or of a string's bytes."""
    if isinstance(value, str):
        return value.encode().hex().upper()
    return f"{value & 0xFFFFFFFFFFFFFFFF:X}"


@by_row("UNHEX", takes=[CHARACTER], gives=BYTES)
def unhex(text: str) -> bytes | None:
    """Decode hexadecimal digits to bytes; NULL if there is another character."""
    if len(text) % 2:  # the first digit of an odd number of digits stands for a zero byte
        text = "00" + text[1:]
    try:
        return bytes.fromhex(text) if text.isalnum() or not text else None
    except ValueError:
        return None


@by_row("BIN", takes=[INTEGER], gives=STRING)
def binary(number: int) -> str:
    """Return the binary digits of a number. Negative numbers are in 64-bit two's complement."""
    return f"{number & 0xFFFFFFFFFFFFFFFF:b}"


@by_row("UUID", gives=CharType(36), deterministic=False)
def uuid() -> str:
    """Return a random identifier."""
    return str(uuid4())


_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")


@by_row("URL_ENCODE", takes=[CHARACTER], gives=STRING)
def url_encode(text: str) -> str:
    """Percent-encode a string."""
    return quote_plus(text, safe="*-._").replace("~", "%7E")


@by_row("URL_DECODE", takes=[CHARACTER], gives=STRING)
def url_decode(text: str) -> str | None:
    """Decode a percent-encoded string; NULL if it is invalid."""
    if _BAD_ESCAPE.search(text):
        return None
    try:
        return unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        return None


@by_row("ENCODE", takes=[CHARACTER, CHARACTER], gives=BYTES)
def encode(text: str, charset: str) -> bytes:
    """Encode a string."""
    if charset.upper() == "UTF-16":  # Java writes the mark and the high byte first
        return b"\xfe\xff" + text.encode("utf-16-be")
    return text.encode(charset)


@by_row("DECODE", takes=[BINARY, CHARACTER], gives=STRING)
def decode(data: bytes, charset: str) -> str:
    """Decode bytes."""
    if charset.upper() == "UTF-16" and data[:2] not in (b"\xfe\xff", b"\xff\xfe"):
        charset = "utf-16-be"
    return data.decode(charset, errors="replace")
