"""Typed configuration options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["ConfigOption", "ConfigOptions"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ConfigOption(Generic[T]):
    """A key with the type of its value and a default."""

    key: str
    value_type: type[T]
    default_value: T | None = None

    def has_default_value(self) -> bool:
        return self.default_value is not None


class _TypedConfigOptionBuilder(Generic[T]):
    """The last step of the builder: the default."""

    def __init__(self, key: str, value_type: type[T]) -> None:
        self._key = key
        self._value_type = value_type

    def default_value(self, value: T) -> ConfigOption[T]:
        return ConfigOption(self._key, self._value_type, value)

    def no_default_value(self) -> ConfigOption[T]:
        return ConfigOption(self._key, self._value_type)


class _OptionBuilder:
    """The second step of the builder: the type of the value."""

    def __init__(self, key: str) -> None:
        self._key = key

    def boolean_type(self) -> _TypedConfigOptionBuilder[bool]:
        return _TypedConfigOptionBuilder(self._key, bool)

    def int_type(self) -> _TypedConfigOptionBuilder[int]:
        return _TypedConfigOptionBuilder(self._key, int)

    def long_type(self) -> _TypedConfigOptionBuilder[int]:
        return _TypedConfigOptionBuilder(self._key, int)

    def float_type(self) -> _TypedConfigOptionBuilder[float]:
        return _TypedConfigOptionBuilder(self._key, float)

    def double_type(self) -> _TypedConfigOptionBuilder[float]:
        return _TypedConfigOptionBuilder(self._key, float)

    def string_type(self) -> _TypedConfigOptionBuilder[str]:
        return _TypedConfigOptionBuilder(self._key, str)


class ConfigOptions:
    """Starts the definition of an option.

    >>> ConfigOptions.key("parallelism.default").int_type().default_value(1)
    ConfigOption(key='parallelism.default', value_type=<class 'int'>, default_value=1)
    """

    OptionBuilder = _OptionBuilder
    TypedConfigOptionBuilder = _TypedConfigOptionBuilder

    @staticmethod
    def key(key: str) -> _OptionBuilder:
        return _OptionBuilder(key)
