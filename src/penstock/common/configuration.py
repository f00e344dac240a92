"""Key/value configuration."""

from __future__ import annotations

import base64
import binascii
import builtins
from collections.abc import Mapping
from typing import Any, TypeVar

from penstock.common.checks import require_name
from penstock.common.config_options import ConfigOption
from penstock.common.errors import InvalidProgramError, shorten

__all__ = ["Configuration"]

T = TypeVar("T")


class Configuration:
    """Settings by key. You can read a value as text, as in configuration files, or as any type that fits.

    >>> configuration = Configuration().set_integer("parallelism.default", 4).set_boolean("debug", True)
    >>> configuration.get_integer("parallelism.default", 1)
    4
    >>> configuration.to_dict()
    {'parallelism.default': '4', 'debug': 'true'}
    >>> str(configuration)
    '{parallelism.default=4, debug=true}'
    """

    __slots__ = ("_values",)

    def __init__(self, other: Configuration | None = None) -> None:
        self._values: dict[str, str | float | bytearray] = {}
        if other is not None:
            self.add_all(other)

    @classmethod
    def from_dict(cls, map: Mapping[str, Any]) -> Configuration:  # noqa: A002 - PyFlink's name
        if not isinstance(map, Mapping):
            raise InvalidProgramError(f"from_dict() takes a dict of settings, got {shorten(map)}")
        configuration = cls()
        for key, value in map.items():
            configuration._put(key, value)
        return configuration

    def get(self, option: ConfigOption[T]) -> T | None:
        """Return the value of a typed option, or its default."""
        text = self._text(option.key)
        if text is None:
            return option.default_value
        value: Any
        if option.value_type is bool:
            value = _to_bool(option.key, text)
        else:
            value = _convert(option.key, text, option.value_type)
        result: T = value
        return result

    def set(self, option: ConfigOption[T], value: T) -> Configuration:
        """Set the value of a typed option."""
        return self._put(option.key, value)

    def get_string(self, key: str, default_value: str | None = None) -> Any:
        text = self._text(key)
        return default_value if text is None else text

    def set_string(self, key: str, value: str) -> Configuration:
        return self._put(key, value)

    def get_integer(self, key: str, default_value: int) -> int:
        text = self._text(key)
        return default_value if text is None else _convert(key, text, int)

    def set_integer(self, key: str, value: int) -> Configuration:
        return self._put(key, value)

    def get_float(self, key: str, default_value: float) -> float:
        text = self._text(key)
        return default_value if text is None else _convert(key, text, float)

    def set_float(self, key: str, value: float) -> Configuration:
        return self._put(key, value)

    def get_boolean(self, key: str, default_value: bool) -> bool:
        text = self._text(key)
        return default_value if text is None else _to_bool(key, text)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        return self._put(key, value)

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        text = self._text(key)
        if text is None:
            return default_value
        try:
            return bytearray(base64.b64decode(text, validate=True))
        except binascii.Error:
            raise InvalidProgramError(f"configuration {key!r} must be bytes in base64, not {text!r}") from None

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        return self._put(key, value)

    def key_set(self) -> builtins.set[str]:
        return builtins.set(self._values)

    def contains_key(self, key: str) -> bool:
        return key in self._values

    def remove_config(self, key: str) -> bool:
        """Remove a setting. Return False if there is none."""
        return self._values.pop(key, None) is not None

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Add all settings of another configuration, optionally with a prefix before their keys."""
        if not isinstance(other, Configuration):
            raise InvalidProgramError(
                f"expected a Configuration, got {shorten(other)}: create one from a dict with Configuration.from_dict()"
            )
        self._values.update({f"{prefix or ''}{key}": value for key, value in other._values.items()})
        return self

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Add all settings to a dict with their original types: a number stays a number."""
        target_dict.update(self._values)

    def to_dict(self) -> dict[str, str]:
        """Return all settings as text."""
        return {key: _text_of(value) for key, value in self._values.items()}

    @staticmethod
    def parse_list_value(value: str | None) -> list[str]:
        r"""Return the elements of a list, written as ``a;b`` or as in YAML: in brackets, or each after a dash.

        >>> Configuration.parse_list_value("a;b"), Configuration.parse_list_value("['a', b]")
        (['a', 'b'], ['a', 'b'])
        >>> Configuration.parse_list_value("- a\n- b"), Configuration.parse_list_value(None)
        (['a', 'b'], [])
        """
        text = (value or "").strip()
        lines = [line.strip() for line in text.splitlines()]
        if text.startswith("[") and text.endswith("]"):
            parts = text[1:-1].split(",")
        elif lines and all(line.startswith("- ") for line in lines):
            parts = [line.removeprefix("- ") for line in lines]
        else:
            parts = text.split(";")
        elements = (part.strip() for part in parts)
        return [element.strip("'\"") for element in elements if element]

    def _text(self, key: str) -> str | None:
        return _text_of(self._values[key]) if key in self._values else None

    def _put(self, key: str, value: Any) -> Configuration:
        require_name(key, "a configuration key")
        if value is None:
            raise InvalidProgramError(f"the value of configuration {key!r} must not be None; use remove_config")
        if isinstance(value, bytes):
            value = bytearray(value)
        self._values[key] = value if isinstance(value, (str, int, float, bytearray)) else str(value)
        return self

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Configuration) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self.to_dict().items()))

    def __str__(self) -> str:
        return "{" + ", ".join(f"{key}={text}" for key, text in self.to_dict().items()) + "}"

    def __repr__(self) -> str:
        return f"Configuration({self.to_dict()!r})"


def _text_of(value: str | float | bytearray) -> str:
    """Return a value as configuration files write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytearray) else str(value)


_TRUE = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


def _to_bool(key: str, text: str) -> bool:
    value = _TRUE.get(text.strip().lower())
    if value is None:
        raise InvalidProgramError(f"configuration {key!r} must be true or false, not {text!r}")
    return value


def _convert(key: str, text: str, value_type: type[T]) -> T:
    try:
        return value_type(text)  # type: ignore[call-arg]
    except ValueError:
        raise InvalidProgramError(
            f"configuration {key!r} must be of type {value_type.__name__}, not {text!r}"
        ) from None
