"""Functions of JSON: IS JSON, JSON_EXISTS, JSON_VALUE, JSON_QUERY, and functions that create JSON."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.core.table.type_rules import is_character
from penstock.core.table.types import ArrayType, DataType, MapType, RowType
from penstock.runtime.table.expressions import Call, Evaluate
from penstock.runtime.table.functions.registry import (
    ANY,
    BOOLEAN,
    CHARACTER,
    STRING,
    ScalarFunction,
    by_row,
    register,
    row_evaluator,
)
from penstock.runtime.table.json_paths import JsonPath, json_text, parse_json

_ERRORS = (ValueError, KeyError, TypeError, ArithmeticError)


class JsonFunctionError(ValueError):
    """A JSON function failed because of ERROR ON EMPTY or ERROR ON ERROR."""


@by_row("IS JSON", takes=[CHARACTER], gives=BOOLEAN.not_null(), sees_null=True)
def is_json(text: str | None, kind: str = "VALUE") -> bool:
    """Whether text is JSON of this kind; NULL is not."""
    if text is None:
        return False
    try:
        value = parse_json(text)
    except ValueError:
        return False
    match kind.upper():
        case "OBJECT":
            return isinstance(value, dict)
        case "ARRAY":
            return isinstance(value, list)
        case "SCALAR":
            return not isinstance(value, (dict, list))
    return True


@by_row("JSON_EXISTS", takes=[CHARACTER, CHARACTER], gives=BOOLEAN)
def json_exists(text: str, path: str, on_error: str = "FALSE") -> bool | None:
    """Whether a value exists at a path."""
    try:
        wanted = JsonPath.parse(path)
        document = parse_json(text)
    except ValueError as error:
        return _on_error(on_error, error)
    try:
        found = wanted.find(document)
    except KeyError:
        if wanted.strict:
            return _on_error(on_error, ValueError(f"there is nothing at {path}"))
        return False
    return found is not None and (wanted.definite or bool(found))


def _on_error(what: str, error: Exception) -> bool | None:
    if what == "ERROR":
        raise JsonFunctionError(f"JSON_EXISTS failed: {error}") from error
    return {"TRUE": True, "UNKNOWN": None}.get(what, False)


def _compile_value(call: Call) -> Evaluate:
    convert = _scalar_of(call.type)
    call = _with_converted_defaults(call, convert)

    def value_of(text: str, path: str, empty: str, default: Any, error: str, other: Any) -> Any:
        try:
            wanted = JsonPath.parse(path)
            found = wanted.find(parse_json(text))
        except KeyError:
            if wanted.strict:
                return _instead("JSON_VALUE", error, other, f"there is nothing at {path}")
            return _instead("JSON_VALUE", empty, default, f"there is nothing at {path}")
        except _ERRORS as problem:
            return _instead("JSON_VALUE", error, other, str(problem))
        if found is None:
            return _instead("JSON_VALUE", empty, default, f"there is nothing at {path}")
        if isinstance(found, (dict, list)):
            behaviour, value = (error, other) if wanted.strict else (empty, default)
            return _instead("JSON_VALUE", behaviour, value, f"the value at {path} is not a scalar")
        try:
            return convert(found)
        except _ERRORS as problem:
            return _instead("JSON_VALUE", error, other, str(problem))

    return row_evaluator(call, value_of, sees_null=False)


def _with_converted_defaults(call: Call, convert: Callable[[Any], Any]) -> Call:
    """Convert defaults to the type of the result."""
    empty, default, error, other = call.options or ("NULL", None, "NULL", None)
    default, other = (None if one is None else convert(one) for one in (default, other))
    return replace(call, options=(empty, default, error, other))


def _instead(function: str, behaviour: str, default: Any, problem: str) -> Any:
    """Return the replacement for a missing or invalid value."""
    if behaviour == "ERROR":
        raise JsonFunctionError(f"{function} failed: {problem}")
    return default if behaviour == "DEFAULT" else None


def _scalar_of(type_: DataType) -> Callable[[Any], Any]:
    name = type(type_).__name__
    if name == "BooleanType":
        return lambda value: value if isinstance(value, bool) else _boolean(value)
    if name == "DoubleType":
        return float
    if is_character(type_):
        return lambda value: value if isinstance(value, str) else json_text(value)
    return lambda value: int(Decimal(value))


def _boolean(value: Any) -> bool:
    text = str(value).lower()
    if text not in ("true", "false"):
        raise ValueError(f"{value!r} is not a BOOLEAN")
    return text == "true"


def _compile_query(call: Call) -> Evaluate:
    in_array = isinstance(call.type, ArrayType)

    def value_of(text: str, path: str, wrapper: str, empty: str, error: str) -> Any:
        try:
            wanted = JsonPath.parse(path)
            found = wanted.find(parse_json(text))
        except KeyError:
            return made(None, error if wanted.strict else empty, f"there is nothing at {path}")
        except _ERRORS as problem:
            return made(None, error, str(problem))
        if wrapper == "UNCONDITIONAL" or (wrapper == "CONDITIONAL" and not isinstance(found, (dict, list))):
            found = None if found is None else [found]
        if not isinstance(found, (dict, list)):
            behaviour = error if wanted.strict and found is not None else empty
            return made(None, behaviour, f"the value at {path} is not an object or array")
        if in_array and not isinstance(found, list):
            return made(None, error, f"the value at {path} is not an array")
        return made(found, "", "")

    def made(found: Any, behaviour: str, problem: str) -> Any:
        if behaviour:
            if behaviour == "ERROR":
                raise JsonFunctionError(f"JSON_QUERY failed: {problem}")
            found = {"EMPTY ARRAY": [], "EMPTY OBJECT": {}}.get(behaviour)
        if found is None:
            return None
        if in_array:
            return [one if one is None or isinstance(one, str) else json_text(one) for one in found]
        return json_text(found)

    return row_evaluator(call, value_of, sees_null=False)


def _of_call(types: Sequence[DataType]) -> DataType:
    return STRING


for _name, _compiler in (("JSON_VALUE", _compile_value), ("JSON_QUERY", _compile_query)):
    register(
        ScalarFunction(
            _name, pa.scalar, [CHARACTER, CHARACTER], _of_call, compiler=_compiler, may_fail=True, null_if_null=False
        )
    )


# -- creating JSON ----------------------------------------------------------------------------------------------------


def as_json(value: Any, type_: DataType) -> Any:
    """Convert a value of a SQL type to its JSON value."""
    if value is None:
        return None
    match type_:
        case ArrayType():
            return [as_json(one, type_.element_type) for one in value]
        case MapType():
            return {str(key): as_json(one, type_.value_type) for key, one in value.items()}
        case RowType():
            pairs = zip(type_.field_names(), type_.field_types(), value, strict=True)
            return {name: as_json(one, inner) for name, inner, one in pairs}
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None, microsecond=0).isoformat()
        if value.microsecond:
            text += f".{value.microsecond:06d}".rstrip("0")
        return text + ("Z" if value.tzinfo is not None else "")
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    return value


@by_row("JSON", takes=[CHARACTER], gives=STRING)
def json_of_text(text: str) -> str:
    """Mark a string as JSON inside of JSON_OBJECT and JSON_ARRAY."""
    return json_text(parse_json(text))


def _compile_string(call: Call) -> Evaluate:
    (operand,) = call.operands
    return row_evaluator(call, lambda value: json_text(as_json(value, operand.type)), sees_null=False)


register(ScalarFunction("JSON_STRING", pa.scalar, [ANY], STRING, compiler=_compile_string))


def _parts(call: Call) -> list[Callable[[Any], str]]:
    """Return the conversion of each operand to JSON. The result of a JSON function is used unchanged."""

    def raw(value: Any) -> str:
        return "null" if value is None else str(value)

    def plain(type_: DataType) -> Callable[[Any], str]:
        return lambda value: json_text(as_json(value, type_))

    makers = {"JSON_OBJECT", "JSON_ARRAY", "JSON"}
    return [raw if isinstance(one, Call) and one.function in makers else plain(one.type) for one in call.operands]


def _compile_object(call: Call) -> Evaluate:
    texts = _parts(call)[1::2]
    keeps_null = call.options[0] != "ABSENT" if call.options else True
    bare = Call(call.type, call.function, call.operands)

    def made(*values: Any) -> str:
        pairs = {
            key: text(value)
            for key, value, text in zip(values[::2], values[1::2], texts, strict=True)
            if value is not None or keeps_null
        }
        parts = [f"{json.dumps(key, ensure_ascii=False)}:{pairs[key]}" for key in sorted(pairs)]
        return "{" + ",".join(parts) + "}"

    return row_evaluator(bare, made, sees_null=True)


def _compile_array(call: Call) -> Evaluate:
    texts = _parts(call)
    keeps_null = call.options[0] == "NULL" if call.options else False
    bare = Call(call.type, call.function, call.operands)

    def made(*values: Any) -> str:
        parts = [text(value) for value, text in zip(values, texts, strict=True) if value is not None or keeps_null]
        return f"[{','.join(parts)}]"

    return row_evaluator(bare, made, sees_null=True)


def _object_type(types: Sequence[DataType]) -> DataType | None:
    return STRING.not_null() if len(types) % 2 == 0 and all(map(is_character, types[::2])) else None


for _name, _compiler, _gives in (
    ("JSON_OBJECT", _compile_object, _object_type),
    ("JSON_ARRAY", _compile_array, STRING.not_null()),
):
    register(ScalarFunction(_name, pa.scalar, [ANY], _gives, 1, variadic=True, compiler=_compiler, null_if_null=False))


@by_row("JSON_QUOTE", takes=[CHARACTER], gives=STRING)
def json_quote(text: str) -> str:
    """Return text as a JSON string."""
    return json.dumps(text).replace("/", "\\/")


@by_row("JSON_UNQUOTE", takes=[CHARACTER], gives=STRING)
def json_unquote(text: str) -> str:
    """Return the text of a JSON string. Other text is unchanged."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, str) else text
