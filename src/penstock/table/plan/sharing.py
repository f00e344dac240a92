"""Merges equal relations, so that repeated parts of a query are computed once.

Two relations are equal if they are the same kind of node with the same parameters over equal inputs. Sources are equal
if they read the same table in the same way. Relations that are not deterministic are never shared.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from penstock.runtime.table.expressions import Call, Expr, UserCall, walk
from penstock.runtime.table.functions.registry import find_scalar_function
from penstock.table.plan.nodes.base import Rel
from penstock.table.plan.nodes.relational import ScanRel


class Sharing:
    """The distinct relations of one job."""

    def __init__(self) -> None:
        self._known: dict[Any, Rel] = {}

    def share(self, rel: Rel) -> Rel:
        """Return the relation, or an equal earlier one."""
        inputs = [self.share(one) for one in rel.inputs]
        if any(new is not old for new, old in zip(inputs, rel.inputs, strict=True)):
            rel = rel.with_inputs(inputs)
        try:
            return self._known.setdefault(_parameters(rel), rel)
        except TypeError:  # a part of it is not hashable
            return self._known.setdefault(id(rel), rel)


def _parameters(rel: Rel) -> Any:
    """Return the parameters that make two nodes over the same inputs equal."""
    values = [_comparable(getattr(rel, one.name)) for one in fields(rel)]
    if isinstance(rel, ScanRel):
        if rel.identity is None:
            raise TypeError
        values = [rel.identity, rel.kinds, rel.keys]
    return type(rel), tuple(values)


def _comparable(value: Any) -> Any:
    if isinstance(value, Rel):
        return id(value)  # inputs are already shared
    if isinstance(value, Expr):
        if not all(_is_deterministic(node) for node in walk(value)):
            raise TypeError
        return value
    return tuple(map(_comparable, value)) if isinstance(value, tuple) else value


def _is_deterministic(node: Expr) -> bool:
    if isinstance(node, Call):
        function = find_scalar_function(node.function)
        return function is None or function.deterministic
    return not isinstance(node, UserCall)  # each use has its own instance
