"""Types of arrays, lists, sets and maps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.common.typeinfo.base import TypeInformation, attributes_of, checked_type, mismatch
from penstock.common.typeinfo.basic import BasicType, BasicTypeInfo

__all__ = [
    "BasicArrayTypeInfo",
    "ListTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PrimitiveArrayTypeInfo",
    "SetTypeInfo",
]


class ElementsTypeInfo(TypeInformation):
    """A collection of elements of one type."""

    __slots__ = ("element_type",)

    _name = ""
    _python_types: tuple[type[Any], ...] = (list, tuple)

    def __init__(self, element_type: TypeInformation) -> None:
        self.element_type = checked_type(element_type, f"the element type of a {self._name}")

    @property
    def elem_type(self) -> TypeInformation:
        """PyFlink's name of :attr:`element_type`."""
        return self.element_type

    def validate(self, value: Any) -> str | None:
        if value is None:
            return None
        if not isinstance(value, self._python_types):
            return mismatch(repr(self), value)
        validate = self.element_type.validate
        elements: Iterable[Any] = value
        for index, element in enumerate(elements):
            reason = validate(element)
            if reason is not None:
                return f"element {index}: {reason}"
        return None

    def format(self, value: Any) -> str:
        return "null" if value is None else f"[{', '.join(map(self.element_type.format, value))}]"

    def to_ddl(self) -> str:
        return f"array<{self.element_type.to_ddl()}>"

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> Any:
        return None if obj is None else list(map(self.element_type.to_internal_type, obj))

    def from_internal_type(self, obj: Any) -> Any:
        return None if obj is None else self._build(map(self.element_type.from_internal_type, obj))

    def _build(self, elements: Iterable[Any]) -> Any:
        return list(elements)

    def _identity(self) -> tuple[Any, ...]:
        return (self.element_type,)

    def __repr__(self) -> str:
        return f"{self._name}<{self.element_type!r}>"


class ListTypeInfo(ElementsTypeInfo):
    """Lists."""

    __slots__ = ()
    _name = "List"


class BasicArrayTypeInfo(ElementsTypeInfo):
    """Arrays of boxed values."""

    __slots__ = ()
    _name = "BasicArrayTypeInfo"


class ObjectArrayTypeInfo(ElementsTypeInfo):
    """Arrays of any values."""

    __slots__ = ()
    _name = "ObjectArrayTypeInfo"


class SetTypeInfo(ElementsTypeInfo):
    """Sets."""

    __slots__ = ()
    _name = "Set"
    _python_types = (set, frozenset)

    def _build(self, elements: Iterable[Any]) -> Any:
        return set(elements)


class PrimitiveArrayTypeInfo(ElementsTypeInfo):
    """Arrays of numbers without gaps; an array of bytes is ``bytes``."""

    __slots__ = ()
    _name = "PrimitiveArrayTypeInfo"

    @property
    def _is_bytes(self) -> bool:
        return isinstance(self.element_type, BasicTypeInfo) and self.element_type.basic_type is BasicType.BYTE

    def validate(self, value: Any) -> str | None:
        if self._is_bytes and isinstance(value, (bytes, bytearray)):
            return None
        reason = super().validate(value)
        if reason is None and value is not None and any(element is None for element in value):
            return "a primitive array cannot hold None"
        return reason

    def format(self, value: Any) -> str:
        if isinstance(value, (bytes, bytearray)):
            value = [byte - 256 if byte > 127 else byte for byte in value]  # Java's bytes have a sign
        return super().format(value)

    def to_ddl(self) -> str:
        return "binary" if self._is_bytes else super().to_ddl()

    def to_internal_type(self, obj: Any) -> Any:
        if self._is_bytes and obj is not None:
            return bytes(obj) if isinstance(obj, (bytes, bytearray)) else bytes(byte & 0xFF for byte in obj)
        return super().to_internal_type(obj)

    def from_internal_type(self, obj: Any) -> Any:
        return bytes(obj) if self._is_bytes and obj is not None else super().from_internal_type(obj)


class MapTypeInfo(TypeInformation):
    """Maps from keys of one type to values of another. An object with attributes counts as a map of them."""

    __slots__ = ("key_type", "value_type")

    def __init__(self, key_type_info: TypeInformation, value_type_info: TypeInformation) -> None:
        self.key_type = checked_type(key_type_info, "the key type of a Map")
        self.value_type = checked_type(value_type_info, "the value type of a Map")

    def validate(self, value: Any) -> str | None:
        if value is None:
            return None
        mapping = self.mapping_of(value)
        if mapping is None:
            return mismatch(repr(self), value)
        for key, element in mapping.items():
            reason = self.key_type.validate(key)
            if reason is not None:
                return f"key: {reason}"
            reason = self.value_type.validate(element)
            if reason is not None:
                return f"value of key {key!r}: {reason}"
        return None

    @staticmethod
    def mapping_of(value: Any) -> Mapping[Any, Any] | None:
        """Return the value as a mapping, or ``None`` if it is not one."""
        return value if isinstance(value, Mapping) else attributes_of(value)

    def format(self, value: Any) -> str:
        if value is None:
            return "null"
        key_format, value_format = self.key_type.format, self.value_type.format
        return "{" + ", ".join(f"{key_format(k)}={value_format(v)}" for k, v in value.items()) + "}"

    def to_ddl(self) -> str:
        return f"map<{self.key_type.to_ddl()},{self.value_type.to_ddl()}>"

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> Any:
        if obj is None:
            return None
        key_of, value_of = self.key_type.to_internal_type, self.value_type.to_internal_type
        return {key_of(key): value_of(value) for key, value in obj.items()}

    def from_internal_type(self, obj: Any) -> Any:
        if obj is None:
            return None
        key_of, value_of = self.key_type.from_internal_type, self.value_type.from_internal_type
        pairs = obj.items() if isinstance(obj, Mapping) else obj  # Arrow returns maps as lists of pairs
        return {key_of(key): value_of(value) for key, value in pairs}

    def _identity(self) -> tuple[Any, ...]:
        return (self.key_type, self.value_type)

    def __repr__(self) -> str:
        return f"Map<{self.key_type!r}, {self.value_type!r}>"
