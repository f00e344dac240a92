"""Translates ChangelogNormalize."""

from __future__ import annotations

from penstock.graph.transformation import Transformation
from penstock.runtime.table.operators.changelog_normalize import ChangelogNormalizeOperator
from penstock.table.plan.exec.registry import translates
from penstock.table.plan.nodes.normalize import ChangelogNormalizeRel
from penstock.table.plan.planner import Planner


@translates(ChangelogNormalizeRel)
def translate_normalize(planner: Planner, rel: ChangelogNormalizeRel, update_before: bool) -> Transformation:
    """Translate to an operator partitioned by the key."""
    (source,) = planner.inputs(rel, update_before)
    exchanged, parallelism = planner.exchange(source, rel.keys)
    operator = ChangelogNormalizeOperator(rel.keys, rel.schema(), emits_update_before=update_before)
    operator.expire_state(planner.state_ttl())
    return planner.one_input(exchanged, operator, "ChangelogNormalize", rel.describe(), parallelism=parallelism)
