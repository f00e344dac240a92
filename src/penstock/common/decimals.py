"""Exact decimals as SQL has them: rounding half up, NULL for what does not fit."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

__all__ = ["EXACT", "fit"]

EXACT = Context(prec=100, rounding=ROUND_HALF_UP)
"""Enough digits for any intermediate result of two decimals of 38 digits."""


def fit(value: Decimal, precision: int, scale: int | None = None) -> Decimal | None:
    """A value in DECIMAL(precision, scale), None if it has too many digits in front of the point (T33).

    >>> fit(Decimal("2.345"), 4, 2), fit(Decimal("123.4"), 4, 2)
    (Decimal('2.35'), None)
    """
    if scale is not None:
        value = value.quantize(Decimal(1).scaleb(-scale), context=EXACT)
    return value if len(value.as_tuple().digits) <= precision or not value else None
