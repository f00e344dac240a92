"""Finds interval joins and window joins among regular ones (T65, T73)."""

from __future__ import annotations

import datetime as dt

from penstock.runtime.table.expressions import Call, Constant, Expr, InputRef
from penstock.table.plan.join_conditions import conditions_of
from penstock.table.plan.nodes.aggregate import WindowTableFunctionRel
from penstock.table.plan.nodes.base import Changelog, Rel, TimeAttribute, walk
from penstock.table.plan.nodes.join import ANTI, SEMI, JoinRel, equal_columns
from penstock.table.plan.nodes.relational import FilterRel, ProjectRel
from penstock.table.plan.nodes.time_join import IntervalJoinRel, WindowJoinRel
from penstock.table.plan.subquery import conjunction
from penstock.table.plan.windows import window_columns
from penstock.util.exceptions import ValidationException

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def changelog_of(rel: Rel) -> Changelog:
    """Return the changes of a relation in streaming mode."""
    return rel.changelog([changelog_of(one) for one in rel.inputs])


def window_join(rel: Rel) -> Rel | None:
    """Find a join by window_start and window_end of the same kind of windows."""
    if type(rel) is not JoinRel or not all(changelog_of(one).insert_only for one in rel.inputs):
        return None
    left, right = map(window_columns, rel.inputs)
    if left is None or right is None or (left.local, left.processing_time) != (right.local, right.processing_time):
        return None
    pairs = equal_columns(rel.condition, len(rel.left.fields))
    ends = [pair for pair in pairs if pair[0] in left.ends and pair[1] in right.ends]
    starts = [pair for pair in pairs if pair[0] in left.starts and pair[1] in right.starts]
    if not ends or not starts:
        return None
    base = (rel.fields, rel.left, rel.right, rel.kind, rel.condition)
    return WindowJoinRel(*base, *ends[0], left.local, left.processing_time)


def interval_join(rel: Rel) -> Rel | None:
    """Find a join with an equality and bounds between the time attributes of both sides."""
    if type(rel) is not JoinRel or rel.kind in (SEMI, ANTI):
        return None
    if not all(changelog_of(one).insert_only for one in rel.inputs):
        return None
    width = len(rel.left.fields)
    lower: int | None = None
    upper: int | None = None
    times: tuple[int, int] | None = None
    rest: list[Expr] = []
    for condition in conditions_of(rel.condition):
        bound = _bound(condition, rel, width)
        if bound is None or (times is not None and bound[0] != times):
            rest.append(condition)
            continue
        times, low, high = bound
        if low is not None:
            lower = low if lower is None else max(lower, low)
        if high is not None:
            upper = high if upper is None else min(upper, high)
    if times is None or lower is None or upper is None:
        return None
    base = (rel.fields, rel.left, rel.right, rel.kind, conjunction(rest))
    return IntervalJoinRel(*base, times[0], times[1] - width, lower, upper)


def _bound(condition: Expr, rel: JoinRel, width: int) -> tuple[tuple[int, int], int | None, int | None] | None:
    """Return the time columns, and the bounds of right time minus left time in ms."""
    if not isinstance(condition, Call) or condition.function not in _MIRRORED or len(condition.operands) != 2:
        return None
    first, second = (_time_and_offset(operand, rel) for operand in condition.operands)
    if first is None or second is None:
        return None
    function = condition.function
    if first[0] < width <= second[0]:  # left op right, as right op left
        first, second, function = second, first, _MIRRORED[function]
    elif not second[0] < width <= first[0]:
        return None
    distance = second[1] - first[1]  # right + a op left + b: right - left op b - a
    columns = (second[0], first[0])
    match function:
        case ">=":
            return columns, distance, None
        case ">":
            return columns, distance + 1, None
        case "<=":
            return columns, None, distance
        case "<":
            return columns, None, distance - 1
    return columns, distance, distance


def _time_and_offset(expr: Expr, rel: JoinRel) -> tuple[int, int] | None:
    """Return a time attribute and a constant interval in ms."""
    if isinstance(expr, InputRef):
        fields = [*rel.left.fields, *rel.right.fields]
        return None if fields[expr.index].time is None else (expr.index, 0)
    if not isinstance(expr, Call) or expr.function not in ("+", "-") or len(expr.operands) != 2:
        return None
    inner = _time_and_offset(expr.operands[0], rel)
    constant = expr.operands[1]
    if inner is None or not isinstance(constant, Constant) or not isinstance(constant.value, dt.timedelta):
        return None
    length = constant.value // dt.timedelta(milliseconds=1)
    return inner[0], inner[1] + (length if expr.function == "+" else -length)


def is_processing_time(rel: IntervalJoinRel) -> bool:
    """Whether an interval join uses processing time."""
    return rel.left.fields[rel.left_time].time is TimeAttribute.PROCTIME


def check_time_attributes(rel: Rel) -> None:
    """Reject windows over a time column after a regular join, whose rows are not in order of time (T41)."""
    for node in walk(rel):
        if isinstance(node, WindowTableFunctionRel):
            column = node.window.time_column
            if not _is_time_attribute(node.input, column):
                raise ValidationException(
                    "The window function requires the timecol is a time attribute type, but "
                    f"'{node.input.fields[column].name}' comes out of a regular join: use an interval or window join"
                )


def _is_time_attribute(rel: Rel, column: int) -> bool:
    match rel:
        case ProjectRel():
            expr = rel.expressions[column]
            return not isinstance(expr, InputRef) or _is_time_attribute(rel.input, expr.index)
        case FilterRel():
            return _is_time_attribute(rel.input, column)
        case JoinRel():
            if type(rel) is JoinRel and rel.kind not in (SEMI, ANTI):
                return False
            width = len(rel.left.fields)
            if column < width:
                return _is_time_attribute(rel.left, column)
            return _is_time_attribute(rel.right, column - width)
    return True


TIME_JOIN_RULES = [window_join, interval_join]
