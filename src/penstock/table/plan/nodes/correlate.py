"""Rows joined with what a function makes of each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.runtime.table.expressions import Expr
from penstock.table.plan.nodes.base import SingleInputRel

UNNEST, REPLICATE = "UNNEST", "REPLICATE"
"""Built-in table functions: elements of a collection; the row itself, as often as the smallest argument says."""


@dataclass(frozen=True, eq=False, slots=True)
class CorrelateRel(SingleInputRel):
    """A table function or UNNEST for each row (T76): the input's columns, then those of the function.

    ``function`` is a user-defined table function, UNNEST or REPLICATE; ``outer`` keeps rows for which it gives none.
    """

    function: Any
    arguments: tuple[Expr, ...]
    outer: bool
    ordinality: bool = False

    def describe(self) -> str:
        """With the function."""
        name = self.function if isinstance(self.function, str) else self.function.name
        return f"Correlate(invocation=[{name}], joinType=[{'LEFT' if self.outer else 'INNER'}])"
