"""SQL's exact decimals: they round half up, and values that do not fit become NULL."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

__all__ = ["EXACT", "fit", "rescale"]

EXACT = Context(prec=100, rounding=ROUND_HALF_UP)
"""Enough digits for all intermediate results of two decimals with 38 digits."""


_ALL_DIGITS = Context(prec=1000)
"""Enough digits for every double: the largest one has 309 before the point."""


def rescale(value: Decimal, scale: int, rounding: str = ROUND_HALF_UP) -> Decimal:
    """Return a value with this many digits after the point. Python's own context allows 28 digits in all.

    >>> rescale(Decimal("12345678901234567890123456789.125"), 2)
    Decimal('12345678901234567890123456789.13')
    """
    return value.quantize(Decimal(1).scaleb(-scale), rounding, _ALL_DIGITS)


def fit(value: Decimal, precision: int, scale: int | None = None) -> Decimal | None:
    """Return a value as DECIMAL(precision, scale), or None if it has too many digits before the point (T33).

    NaN and infinity are errors.

    >>> fit(Decimal("2.345"), 4, 2), fit(Decimal("123.4"), 4, 2)
    (Decimal('2.35'), None)
    """
    if not value.is_finite():
        raise InvalidOperation(f"{value} is not a DECIMAL")
    if scale is not None:
        value = rescale(value, scale)
    return value if len(value.as_tuple().digits) <= precision or not value else None
