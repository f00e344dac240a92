"""Hints after a table and after SELECT (T122)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from penstock.table.plan.nodes.aggregate import AggregateRel
from penstock.table.plan.nodes.base import Rel
from penstock.table.plan.nodes.join import JoinRel
from penstock.table.table_config import milliseconds
from penstock.util.exceptions import ValidationException

_HINT = re.compile(r"\+\s*(\w+)\s*\((.*)\)", re.DOTALL)
_OPTION = re.compile(r"'((?:[^']|'')*)'\s*=\s*'((?:[^']|'')*)'")


def hint_options(tree: Any) -> dict[str, dict[str, str]]:
    """Return the hints after a table: ``/*+ OPTIONS('k'='v') */``. Unknown ones are ignored (T122)."""
    return _hints([*(tree.comments or ()), *(comment for part in tree.parts for comment in (part.comments or ()))])


def _hints(comments: list[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for comment in comments:
        match = _HINT.search(comment)
        if match is not None:
            pairs = _OPTION.findall(match.group(2))
            found[match.group(1).upper()] = {k.replace("''", "'"): v.replace("''", "'") for k, v in pairs}
    return found


class StateTtl:
    """``/*+ STATE_TTL('a' = '1d', 'b' = '2h') */`` after SELECT: how long a join or GROUP BY keeps state (T126).

    Names are the tables in FROM, or their aliases.
    """

    def __init__(self, tree: Any) -> None:
        source = tree.args.get("from_")
        joins = [join.this for join in tree.args.get("joins") or ()]
        items = [] if source is None else [source.this, *joins]
        self._names = [item.alias_or_name for item in items if type(item).__name__ not in ("Lateral", "Unnest")]
        hint = _hints(tree.comments or []).get("STATE_TTL", {})
        self._times = {name: milliseconds(time) for name, time in hint.items()}
        unknown = [name for name in self._times if name not in self._names]
        if unknown:
            raise ValidationException(
                f"The options of hint STATE_TTL cannot match the name of input tables or views: '{unknown[0]}'. "
                f"Tables of this query are: {', '.join(self._names)}"
            )

    def of_joins(self, relation: Rel) -> Rel:
        """Apply the times of STATE_TTL to the joins of FROM."""
        return self._with_times(relation, self._names[::-1]) if self._times else relation

    def _with_times(self, rel: Rel, names: list[str]) -> Rel:
        """Apply the times. ``names`` are the tables in the relation, the last one first."""
        if len(names) < 2 or not rel.inputs:
            return rel
        rest = names[1:] if len(rel.inputs) > 1 else names
        rel = rel.with_inputs([self._with_times(rel.inputs[0], rest), *rel.inputs[1:]])
        if not isinstance(rel, JoinRel):
            return rel
        left = self._times.get(names[1]) if len(names) == 2 else None
        return replace(rel, state_ttl=(left, self._times.get(names[0])))

    def of_aggregate(self, relation: Rel) -> Rel:
        """Apply the time of STATE_TTL for the one table that GROUP BY reads."""
        if not self._times or len(self._names) != 1:
            return relation
        if isinstance(relation, AggregateRel):
            return replace(relation, state_ttl=self._times[self._names[0]])
        if len(relation.inputs) == 1:
            return relation.with_inputs([self.of_aggregate(relation.inputs[0])])
        return relation
