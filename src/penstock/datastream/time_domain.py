"""Time domains, under PyFlink's name."""

from penstock.core.time_domain import TimeDomain

__all__ = ["TimeDomain"]
