"""The slices of one key, as sliding windows store them."""

from __future__ import annotations

from typing import Any

__all__ = ["MISSING", "KeySlices"]

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()


class KeySlices(dict[int, Any]):
    """The slices of one key by their start. Only the slices and the number of arrivals are stored."""

    __slots__ = ("arrivals", "head", "head_block", "head_to", "tail", "tail_block", "tail_from", "tail_starts")

    def __init__(self, slices: dict[int, Any] | None = None, arrivals: int = 0) -> None:
        super().__init__(slices or {})
        self.arrivals = arrivals
        self.forget()

    def forget(self) -> None:
        """Drop the values computed from slices: a slice has changed."""
        self.head_block: int | None = None
        self.head_to = 0
        self.head: Any = MISSING
        self.tail_block: int | None = None
        self.tail_from = 0
        self.tail_starts: list[int] = []
        self.tail: list[Any] = []

    def any_between(self, start: int, end: int) -> bool:
        """Whether a slice begins in [start, end). Nearly always, the first slice decides."""
        for at in self:  # noqa: SIM110 - any() with a generator takes several times as long
            if start <= at < end:
                return True
        return False

    def __reduce__(self) -> tuple[Any, ...]:
        return KeySlices, (dict(self), self.arrivals)
