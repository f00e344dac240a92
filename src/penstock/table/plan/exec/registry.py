"""The registry of functions that translate nodes.

    @translates(FilterRel)
    def translate_filter(planner, rel, update_before):
        source = planner.input(rel, 0)
        return planner.one_input(source, Calc(...), "Calc", ...)

`update_before` is whether the reader of the node needs `-U` rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from penstock.graph.transformation import Transformation
from penstock.table.plan.nodes.base import Rel

MODULES = (
    "aggregate",
    "correlate",
    "join",
    "over",
    "match",
    "rank",
    "relational",
    "scan",
    "time_join",
    "window",
    "table_aggregate",
    "normalize",
)
"""The modules of this package that register translations."""

Translate = Callable[[Any, Any, bool], Transformation]
_translations: dict[type[Rel], Translate] = {}


def translates(*nodes: type[Rel]) -> Callable[[Translate], Translate]:
    """Register the translation of some kinds of nodes."""

    def decorate(translate: Translate) -> Translate:
        for node in nodes:
            _translations[node] = translate
        return translate

    return decorate


@cache
def load_translations() -> None:
    """Import all modules that register translations."""
    for module in MODULES:
        import_module(f"penstock.table.plan.exec.{module}")


def translation_of(node: type[Rel]) -> Translate | None:
    """Return the translation of a kind of node."""
    load_translations()
    return _translations.get(node)
