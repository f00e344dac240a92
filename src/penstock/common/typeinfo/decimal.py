"""Decimals with a declared number of digits: the stream type of DataTypes.DECIMAL(precision, scale)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from penstock.common.decimals import fit
from penstock.common.typeinfo.base import mismatch
from penstock.common.typeinfo.basic import BasicType, BasicTypeInfo

__all__ = ["DecimalTypeInfo"]


class DecimalTypeInfo(BasicTypeInfo):
    """Decimals with a precision and a scale. Formats round to the scale, half up.

    >>> kind = DecimalTypeInfo(4, 1)
    >>> kind, kind.fit(Decimal("1.25")), kind.fit(Decimal("12345"))
    (Decimal(4,1), Decimal('1.3'), None)
    """

    __slots__ = ("precision", "scale")

    def __new__(cls, precision: int, scale: int) -> DecimalTypeInfo:  # noqa: PYI034 - as the class above
        return object.__new__(cls)

    def __init__(self, precision: int, scale: int) -> None:
        super().__init__(BasicType.BIG_DEC)
        self.precision = precision
        self.scale = scale

    def fit(self, value: Decimal | int) -> Decimal | None:
        """Return the value with this scale, or None, as in SQL, if it has too many digits before the point."""
        return fit(Decimal(value), self.precision, self.scale)

    def to_ddl(self) -> str:
        return f"decimal({self.precision},{self.scale})"

    def validate(self, value: Any) -> str | None:
        if value is None or isinstance(value, Decimal) or (isinstance(value, int) and not isinstance(value, bool)):
            return None
        return mismatch(repr(self), value)

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> Any:
        return None if obj is None else self.fit(obj)

    def _identity(self) -> tuple[Any, ...]:
        return (self.basic_type, self.precision, self.scale)

    def __reduce__(self) -> tuple[Any, ...]:
        return DecimalTypeInfo, (self.precision, self.scale)

    def __repr__(self) -> str:
        return f"Decimal({self.precision},{self.scale})"
