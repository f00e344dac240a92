"""A batch of records as operators see it: a list of values and a parallel list of timestamps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["KeySelect", "Timestamps", "Values"]

KeySelect = Callable[[Any], Any]
Values = list[Any]
Timestamps = list[Any] | None
"""Milliseconds, parallel to the values; None if no record has a timestamp."""
