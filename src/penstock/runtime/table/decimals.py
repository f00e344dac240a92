"""Arithmetic of exact decimals."""

from __future__ import annotations

from decimal import Decimal

from penstock.common.decimals import EXACT, fit, rescale

__all__ = ["EXACT", "MAX_PRECISION", "divide_half_up", "fit", "rescale"]

MAX_PRECISION = 38


def divide_half_up(left: Decimal, right: Decimal | int, precision: int, scale: int) -> Decimal | None:
    """Return a quotient with `scale` digits after the decimal point.

    >>> divide_half_up(Decimal("3.00"), 2, 38, 6)
    Decimal('1.500000')
    """
    return fit(EXACT.divide(left, Decimal(right)), precision, scale)
