"""ORDER BY and LIMIT."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.table.plan import ast, build
from penstock.table.plan.nodes.base import Rel
from penstock.table.plan.nodes.rank import SortKey, SortRel


def sort_keys(items: Sequence[ast.SortItem], columns: Sequence[int]) -> list[SortKey]:
    """Return sort keys for columns. By default, NULL is the smallest value (T36)."""
    keys = []
    for item, column in zip(items, columns, strict=True):
        nulls_last = item.descending if item.nulls_last is None else item.nulls_last
        keys.append(SortKey(column, item.descending, nulls_last))
    return keys


def sort_relation(relation: Rel, keys: Sequence[SortKey], width: int | None, fetch: int | None, offset: int) -> Rel:
    """Sort rows. Columns after `width` are only for sorting."""
    result: Rel = SortRel(relation.fields, relation, tuple(keys), offset, fetch)
    if width is not None and width < len(relation.fields):
        result = build.keep_columns(result, range(width))
    return result
