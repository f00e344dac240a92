"""The clauses of JSON functions: RETURNING type, NULL ON EMPTY, DEFAULT 'x' ON ERROR, WITH WRAPPER, as SQL text."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from penstock.core.table.types import ArrayType, DataType, VarCharType
from penstock.table.type_text import parse_type
from penstock.util.exceptions import SqlParserException, ValidationException

_STRING = VarCharType()
_RETURNED = {"VarCharType", "CharType", "BooleanType", "IntType", "DoubleType", "BigIntType"}
_BEHAVIOUR = re.compile(
    r"(NULL|ERROR|EMPTY\s+ARRAY|EMPTY\s+OBJECT|TRUE|FALSE|UNKNOWN|DEFAULT\s+(?P<default>'(?:[^']|'')*'|\S+))"
    r"\s+ON\s+(?P<when>EMPTY|ERROR)",
    re.IGNORECASE,
)
_WRAPPER = re.compile(r"(WITH|WITHOUT)(\s+(CONDITIONAL|UNCONDITIONAL))?(\s+ARRAY)?\s+WRAPPER", re.IGNORECASE)
_RETURNING = re.compile(r"RETURNING\s+(?P<type>.+)", re.IGNORECASE | re.DOTALL)


class _Clauses:
    """The parsed text after the arguments of a JSON function."""

    def __init__(self, text: str) -> None:
        self.behaviours: dict[str, tuple[str, Any]] = {}
        rest = text
        for found in _BEHAVIOUR.finditer(text):
            word = re.sub(r"\s+", " ", found.group(1).upper())
            default = None
            if found["default"] is not None:
                word, default = "DEFAULT", _literal(found["default"])
            self.behaviours[found["when"].upper()] = (word, default)
            rest = rest.replace(found.group(0), " ")
        wrapper = _WRAPPER.search(rest)
        self.wrapper = "WITHOUT"
        if wrapper is not None:
            rest = rest.replace(wrapper.group(0), " ")
            if wrapper.group(1).upper() == "WITH":
                self.wrapper = (wrapper.group(3) or "UNCONDITIONAL").upper()
        returning = _RETURNING.search(rest)
        self.type: DataType = _STRING
        if returning is not None:
            self.type = parse_type(returning["type"].strip()).nullable()
            rest = rest[: returning.start()]
        if rest.strip():
            raise SqlParserException(f"SQL parse failed. '{text}' is not a clause of a JSON function")


def _literal(text: str) -> Any:
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    word = text.upper()
    if word in ("TRUE", "FALSE", "NULL"):
        return {"TRUE": True, "FALSE": False, "NULL": None}[word]
    return Decimal(text) if "." in text else int(text)


def value_clauses(options: tuple[Any, ...]) -> tuple[DataType, tuple[Any, ...]]:
    """Return the type of JSON_VALUE, and its behaviours on empty and on error with their defaults."""
    if len(options) > 1:  # from the Table API
        type_, *behaviours = options
    else:
        clauses = _Clauses(str(options[0]) if options else "")
        type_ = clauses.type
        empty, error = (clauses.behaviours.get(when, ("NULL", None)) for when in ("EMPTY", "ERROR"))
        behaviours = [*empty, *error]
    if type(type_).__name__ not in _RETURNED:
        raise ValidationException(f"JSON_VALUE returns STRING, BOOLEAN, INTEGER or DOUBLE, not {type_}")
    return type_.nullable(), tuple(behaviours)


def query_clauses(options: tuple[Any, ...]) -> tuple[DataType, tuple[Any, ...]]:
    """Return the type of JSON_QUERY, and its wrapper and behaviours."""
    if len(options) > 1:
        wrapper, empty, error = map(str, options)
        return _STRING, (wrapper.removesuffix("_ARRAY"), empty.replace("_", " "), error.replace("_", " "))
    clauses = _Clauses(str(options[0]) if options else "")
    type_ = clauses.type
    if isinstance(type_, ArrayType) and type(type_.element_type).__name__ != "VarCharType":
        raise ValidationException(f"JSON_QUERY returns STRING or ARRAY<STRING>, not {type_}")
    empty, error = (clauses.behaviours.get(when, ("NULL", None))[0] for when in ("EMPTY", "ERROR"))
    return type_, (clauses.wrapper, empty, error)


def exists_clause(options: tuple[Any, ...]) -> tuple[str]:
    """Return the result of JSON_EXISTS for an error."""
    text = str(options[0]) if options else ""
    return (text.split()[0].upper() if text.strip() else "FALSE",)


def null_clause(options: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the treatment of NULL in JSON_OBJECT and JSON_ARRAY, if it is given."""
    words = str(options[0]).split() if options else []
    return (words[0].upper(),) if words else ()
