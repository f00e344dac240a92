"""Translates regular joins."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.table.arrow import arrow_type
from penstock.graph.transformation import Transformation
from penstock.runtime.table.expressions import Expr, InputRef
from penstock.runtime.table.join_state import Form
from penstock.runtime.table.operators.calc import Calc
from penstock.runtime.table.operators.streaming_join import JoinSide, StreamingJoinOperator
from penstock.table.plan.exec.registry import translates
from penstock.table.plan.join_conditions import conditions_of, split_keys
from penstock.table.plan.nodes.base import Field, Rel, schema_of
from penstock.table.plan.nodes.join import ANTI, FULL, LEFT, RIGHT, SEMI, JoinRel
from penstock.table.plan.nodes.relational import identity
from penstock.table.plan.planner import Planner
from penstock.table.plan.subquery import conjunction


@translates(JoinRel)
def translate_join(planner: Planner, rel: JoinRel, update_before: bool) -> Transformation:
    """Partition both sides by the columns that must be equal. Without any, one task processes all rows."""
    keys, rest = split_keys(conditions_of(rel.condition), len(rel.left.fields))
    sources = planner.inputs(rel, update_before)
    sides: list[JoinSide] = []
    exchanged: list[Transformation] = []
    for number, (source, side) in enumerate(zip(sources, rel.inputs, strict=True)):
        wanted = [key.left if number == 0 else key.right for key in keys]
        keyed, columns = with_keys(planner, source, side, wanted)
        exchanged.append(planner.exchange(keyed, columns)[0])
        outer = rel.kind in (FULL, RIGHT if number else LEFT)
        form = _form(planner, rel, number, tested=bool(rest), outer=outer)
        sides.append(JoinSide([arrow_type(one.type) for one in side.fields], columns, form, outer))
    operator = StreamingJoinOperator(
        sides[0],
        sides[1],
        rel.kind,
        [key.null_safe for key in keys],
        conjunction(rest) if rest else None,
        rel.schema(),
        planner.context(),
    )
    operator.expire_state(*(planner.state_ttl(hint) for hint in rel.state_ttl))
    return planner.two_inputs(exchanged[0], exchanged[1], operator, "Join", single=not keys)


def _form(planner: Planner, rel: JoinRel, number: int, *, tested: bool, outer: bool) -> Form:
    """Return the smallest form in which to store the rows of a side."""
    semi = rel.kind in (SEMI, ANTI)
    if outer or (semi and number == 0):
        return Form.PARTNERS
    if semi and not tested:
        return Form.NUMBER
    return Form.ROWS if planner.changelog(rel.inputs[number]).insert_only else Form.COUNTS


def with_keys(
    planner: Planner, source: Transformation, rel: Rel, keys: Sequence[Expr]
) -> tuple[Transformation, list[int]]:
    """Return the columns of key expressions. Those that are not plain columns are computed after the others."""
    columns: list[int] = []
    computed: list[Expr] = []
    for key in keys:
        if isinstance(key, InputRef):
            columns.append(key.index)
        else:
            columns.append(len(rel.fields) + len(computed))
            computed.append(key)
    if not computed:
        return source, columns
    fields = [*rel.fields, *(Field(f"$key{index}", key.type) for index, key in enumerate(computed))]
    calc = Calc(None, [*identity(rel.fields), *computed], schema_of(fields), planner.context())
    return planner.one_input(source, calc, "Calc"), columns
