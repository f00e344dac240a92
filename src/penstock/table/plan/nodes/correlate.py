"""Joins of rows with the results of a function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.runtime.table.expressions import Expr
from penstock.table.plan.nodes.base import SingleInputRel

UNNEST, REPLICATE = "UNNEST", "REPLICATE"
"""Built-in table functions: the elements of a collection; copies of the row, as many as the smallest argument."""


@dataclass(frozen=True, eq=False, slots=True)
class CorrelateRel(SingleInputRel):
    """A table function or UNNEST for each row (T76): the input's columns, then those of the function.

    ``function`` is a user-defined table function, UNNEST or REPLICATE. ``outer`` keeps rows without results.
    """

    function: Any
    arguments: tuple[Expr, ...]
    outer: bool
    ordinality: bool = False

    def describe(self) -> str:
        name = self.function if isinstance(self.function, str) else self.function.name
        return f"Correlate(invocation=[{name}], joinType=[{'LEFT' if self.outer else 'INNER'}])"
