"""UNION, INTERSECT, EXCEPT: NULLs are equal (T34)."""

from __future__ import annotations

from penstock.core.table.types import BooleanType
from penstock.runtime.table.expressions import Call, Constant, Expr, InputRef
from penstock.table.plan import build
from penstock.table.plan.nodes.base import Rel
from penstock.table.plan.nodes.join import ANTI, SEMI, JoinRel
from penstock.util.exceptions import TableException


def set_operation(name: str, left: Rel, right: Rel, *, keeps_all: bool) -> Rel:
    """Two relations with the same number of columns as one."""
    union = build.union_all([left, right], name)
    if name == "UNION":
        return union if keeps_all else build.distinct(union)
    if keeps_all:
        raise TableException(f"{name} ALL is not supported: use {name}")
    types = [field.type for field in union.fields]
    left, right = build.cast_columns(left, types), build.cast_columns(right, types)
    joined = JoinRel(left.fields, left, right, SEMI if name == "INTERSECT" else ANTI, _same_rows(left, right))
    return build.distinct(joined)


def _same_rows(left: Rel, right: Rel) -> Expr:
    width = len(left.fields)
    truth = BooleanType(_nullable=False)
    equal: list[Expr] = [
        Call(truth, "IS NOT DISTINCT FROM", (InputRef(one.type, index), InputRef(other.type, index + width)))
        for index, (one, other) in enumerate(zip(left.fields, right.fields, strict=True))
    ]
    if not equal:
        return Constant(truth, value=True)
    return equal[0] if len(equal) == 1 else Call(truth, "AND", tuple(equal))
