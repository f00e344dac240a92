"""The base class of type information."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError, shorten

__all__ = ["TypeInformation", "attributes_of", "checked_type", "mismatch"]


def mismatch(expected: str, value: object) -> str:
    """Return the reason that ``validate`` gives for a value of the wrong kind."""
    return f"expected {expected}, got {type(value).__name__} {shorten(value, 80)}"


T_co = TypeVar("T_co", covariant=True)


class TypeInformation(ABC, Generic[T_co]):
    """The declared type of a stream's records or of a state's values.

    Types are plain values: two types with the same meaning are equal. ``None`` fits every type. The *internal* form of
    a value is how a Spark row stores it (see :meth:`to_ddl`); for most values it is the value itself.
    """

    __slots__ = ()

    @abstractmethod
    def validate(self, value: Any) -> str | None:
        """Return ``None`` if the value fits the type, otherwise a short reason."""

    @abstractmethod
    def format(self, value: Any) -> str:
        """Return the value as Flink prints a record of this type."""

    @abstractmethod
    def to_ddl(self) -> str:
        """Return the type in Spark SQL."""

    @abstractmethod
    def _identity(self) -> tuple[Any, ...]:
        """Return the parts that distinguish this type from others of its class."""

    def first_mismatch(self, values: Sequence[Any]) -> tuple[int, str] | None:
        """Return the index of the first value that does not fit, and why, or ``None`` if all fit."""
        validate = self.validate
        for index, value in enumerate(values):
            reason = validate(value)
            if reason is not None:
                return index, reason
        return None

    def need_conversion(self) -> bool:
        """Whether values have a different internal form."""
        return False

    def to_internal_type(self, obj: Any) -> Any:
        """Return the value as a Spark row stores it."""
        return obj

    def from_internal_type(self, obj: Any) -> Any:
        """Return the value of a field read from a Spark row."""
        return obj

    def get_java_type_info(self) -> Any:
        """Always raise an error: types have no Java object here."""
        raise UnsupportedFeatureError("types have no Java counterpart here; use to_ddl() for Spark's type")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypeInformation):
            return NotImplemented
        return type(self) is type(other) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((type(self).__name__, *map(str, self._identity())))


def attributes_of(value: object) -> dict[str, Any] | None:
    """Return the attributes of an object of a user-defined class, or ``None`` for all other values.

    >>> from types import SimpleNamespace
    >>> attributes_of(SimpleNamespace(name="Ada", age=36)), attributes_of("Ada"), attributes_of(len)
    ({'name': 'Ada', 'age': 36}, None, None)
    """
    if isinstance(value, (type, Enum)) or callable(value):
        return None
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    attributes: dict[str, Any] | None = getattr(value, "__dict__", None)
    return None if attributes is None else dict(attributes)


_TYPE_OF_CLASS: dict[type, str] = {
    bool: "Types.BOOLEAN()",
    bytes: "Types.PRIMITIVE_ARRAY(Types.BYTE())",
    float: "Types.DOUBLE()",
    int: "Types.LONG()",
    str: "Types.STRING()",
}


def checked_type(type_info: Any, label: str) -> TypeInformation:
    """Return a type, or raise an error for anything else, such as ``Types.INT`` without parentheses."""
    if not isinstance(type_info, TypeInformation):
        instead = _TYPE_OF_CLASS.get(type_info) if isinstance(type_info, type) else None
        advice = "" if instead is None else f": use {instead}"
        raise InvalidProgramError(f"{label} must be a type such as Types.INT(), got {shorten(type_info)}{advice}")
    return type_info
