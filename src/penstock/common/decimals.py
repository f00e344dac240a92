"""SQL's exact decimals: they round half up, and values that do not fit become NULL."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

__all__ = ["EXACT", "fit"]

EXACT = Context(prec=100, rounding=ROUND_HALF_UP)
"""Enough digits for all intermediate results of two decimals with 38 digits."""


def fit(value: Decimal, precision: int, scale: int | None = None) -> Decimal | None:
    """Return a value as DECIMAL(precision, scale), or None if it has too many digits before the point (T33).

    >>> fit(Decimal("2.345"), 4, 2), fit(Decimal("123.4"), 4, 2)
    (Decimal('2.35'), None)
    """
    if scale is not None:
        value = value.quantize(Decimal(1).scaleb(-scale), context=EXACT)
    return value if len(value.as_tuple().digits) <= precision or not value else None
