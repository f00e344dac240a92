"""Several clocks as one: the minimum of the active ones (rule 3.6).

A source subtask combines the clocks of its splits, an operator those of its two inputs. Unlike a channel of the valve,
a part that returns from idleness behind the others stops the clock, so that its records are not late. When all parts
are idle, the clock advances to their maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from penstock.common.watermark import MIN_WATERMARK


@dataclass(slots=True)
class PartialWatermark:
    """The last watermark and status of one part."""

    watermark: int = MIN_WATERMARK
    idle: bool = False

    def advance(self, watermark: int) -> None:
        """Advance to a watermark of the part. The part becomes active, and never goes back."""
        self.idle = False
        self.watermark = max(self.watermark, watermark)


Part = TypeVar("Part", bound=PartialWatermark)


class CombinedWatermark(Generic[Part]):
    """Combines the clocks of several parts.

    >>> combined = CombinedWatermark()
    >>> a, b = combined.parts["a"], combined.parts["b"] = PartialWatermark(10), PartialWatermark(5)
    >>> combined.update(), combined.watermark
    (True, 5)
    >>> b.idle = True
    >>> combined.update(), combined.watermark
    (True, 10)
    >>> a.advance(20)
    >>> b.advance(7)  # active again, and behind
    >>> combined.update(), combined.watermark
    (False, 10)
    """

    __slots__ = ("all_idle", "parts", "watermark")

    def __init__(self, watermark: int = MIN_WATERMARK) -> None:
        self.parts: dict[Any, Part] = {}
        self.watermark = watermark
        self.all_idle = False

    def update(self) -> bool:
        """Recompute the watermark, and return whether it advanced."""
        parts = self.parts.values()
        if not parts:
            return False
        active = [part.watermark for part in parts if not part.idle]
        self.all_idle = not active
        watermark = min(active) if active else max(part.watermark for part in parts)
        if watermark <= self.watermark:
            return False
        self.watermark = watermark
        return True
