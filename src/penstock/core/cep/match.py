"""A match: the events of a sequence by pattern name, and the transitions that took them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from penstock.common.errors import shorten

__all__ = ["Match", "Step"]

E = TypeVar("E")

Step = tuple[str, str, int, Any]
"""The state that took an event, the state after it, the event's timestamp, the event."""


class Match(dict[str, list[E]]):
    """The events of a match by the name of the pattern that took them. A pattern without events has no entry.

    >>> match = Match({"small": [1], "large": [500]}, [("small", "large", 10, 1), ("large", "$endState$", 25, 500)])
    >>> match["large"]
    [500]
    >>> print(match.explain())
    complete match of 2 events
      at 10         1    small -> large
      at 25  (+15)  500  large -> $endState$
    """

    __slots__ = ("_outcome", "_steps")

    def __init__(
        self,
        events: dict[str, list[E]] | Iterable[tuple[str, list[E]]] = (),
        steps: Iterable[Step] | Callable[[], list[Step]] = (),
        outcome: str = "complete match",
    ) -> None:
        if events:
            super().__init__(events)
        self._steps = steps
        self._outcome = outcome

    @property
    def steps(self) -> list[Step]:
        """The events with the transitions that took them, in order."""
        if callable(self._steps):  # computed on demand: most matches are never explained
            self._steps = self._steps()
        return list(self._steps)

    def explain(self) -> str:
        """Return the transition of each event, one per line, to debug a pattern.

        Names with a number after a colon are the states of loops and optional patterns, as in ``pattern.to_svg()``.
        """
        rows: list[tuple[str, str, str, str]] = []
        previous: int | None = None
        for source, target, timestamp, event in self.steps:
            gap = "" if previous is None else f"(+{timestamp - previous})"
            rows.append((str(timestamp), gap, shorten(event, 80), f"{source} -> {target}"))
            previous = timestamp
        widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
        count = "1 event" if len(rows) == 1 else f"{len(rows)} events"
        lines = [f"{self._outcome} of {count}"]
        for at, gap, event, transition in rows:
            lines.append(f"  at {at:>{widths[0]}}  {gap:<{widths[1]}}  {event:<{widths[2]}}  {transition}".rstrip())
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return Match, (dict(self), self.steps, self._outcome)
