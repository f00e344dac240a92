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
    """The reason ``validate`` gives for a value of a wrong kind."""
    return f"expected {expected}, got {type(value).__name__} {shorten(value, 80)}"


T_co = TypeVar("T_co", covariant=True)


class TypeInformation(ABC, Generic[T_co]):
    """The declared type of a stream's records or of a state's values.

    Types are plain values: two that mean the same are equal. ``None`` fits every type. A value's *internal* form is
    what a Spark row holds for it (see :meth:`to_ddl`); most values are their own internal form.
    """

    __slots__ = ()

    @abstractmethod
    def validate(self, value: Any) -> str | None:
        """``None`` if the value fits the type, else a short reason why not."""

    @abstractmethod
    def format(self, value: Any) -> str:
        """The value as Flink prints a record of this type."""

    @abstractmethod
    def to_ddl(self) -> str:
        """The type as Spark SQL writes it."""

    @abstractmethod
    def _identity(self) -> tuple[Any, ...]:
        """Return the parts that distinguish this type from others of its class."""

    def first_mismatch(self, values: Sequence[Any]) -> tuple[int, str] | None:
        """The index of the first value that does not fit, and why; ``None`` if all fit."""
        validate = self.validate
        for index, value in enumerate(values):
            reason = validate(value)
            if reason is not None:
                return index, reason
        return None

    def need_conversion(self) -> bool:
        """Whether values have an internal form other than themselves."""
        return False

    def to_internal_type(self, obj: Any) -> Any:
        """The value as a Spark row holds it."""
        return obj

    def from_internal_type(self, obj: Any) -> Any:
        """The value of a field read from a Spark row."""
        return obj

    def get_java_type_info(self) -> Any:
        """There is no Java object behind a type here; always raises."""
        raise UnsupportedFeatureError("types have no Java counterpart here; use to_ddl() for Spark's type")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypeInformation):
            return NotImplemented
        return type(self) is type(other) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((type(self).__name__, *map(str, self._identity())))


def attributes_of(value: object) -> dict[str, Any] | None:
    """The attributes of an object of a class of the user's own; ``None`` for all other values.

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


def checked_type(type_info: Any, label: str) -> TypeInformation:
    """Return a type, or raise an error for anything else, such as ``Types.INT`` without parentheses."""
    if not isinstance(type_info, TypeInformation):
        raise InvalidProgramError(f"{label} must be a type such as Types.INT(), got {shorten(type_info)}")
    return type_info
