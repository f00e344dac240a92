"""UNION, INTERSECT, EXCEPT. NULLs are equal (T34)."""

from __future__ import annotations

from penstock.core.table.types import BigIntType, BooleanType
from penstock.runtime.table.expressions import Call, Constant, Expr, InputRef
from penstock.table.plan import build
from penstock.table.plan.nodes.aggregate import AggregateRel, AggregateSpec
from penstock.table.plan.nodes.base import Field, Rel
from penstock.table.plan.nodes.correlate import REPLICATE, CorrelateRel
from penstock.table.plan.nodes.join import ANTI, SEMI, JoinRel


def set_operation(name: str, left: Rel, right: Rel, *, keeps_all: bool) -> Rel:
    """Combine two relations with the same number of columns."""
    union = build.union_all([left, right], name)
    if name == "UNION":
        return union if keeps_all else build.distinct(union)
    types = [field.type for field in union.fields]
    left, right = build.cast_columns(left, types), build.cast_columns(right, types)
    if keeps_all:
        return _counted(name, left, right)
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


def _counted(name: str, left: Rel, right: Rel) -> Rel:
    """Count rows for ALL: how often a row is in both inputs, or how much more often in the first."""
    count_type = BigIntType(_nullable=False)
    width = len(left.fields)
    branches = []
    for number, side in enumerate((left, right)):
        marks = [Constant(count_type, 1 - number), Constant(count_type, number)]
        refs = [InputRef(field.type, index) for index, field in enumerate(side.fields)]
        branches.append(build.project(side, [*refs, *marks], [*left.names, "$left", "$right"]))
    union = build.union_all(branches, name)
    keys = tuple(range(width))
    calls = tuple(AggregateSpec("$SUM0", (width + number,), count_type) for number in range(2))
    counts = (Field("$left", count_type), Field("$right", count_type))
    grouped = AggregateRel((*union.fields[:width], *counts), union, keys, calls)
    numbers: tuple[Expr, ...] = (InputRef(count_type, width), InputRef(count_type, width + 1))
    if name == "EXCEPT":
        numbers = (Call(count_type, "-", numbers),)
    repeated = CorrelateRel(grouped.fields, grouped, REPLICATE, numbers, outer=False)
    return build.keep_columns(repeated, range(width))
