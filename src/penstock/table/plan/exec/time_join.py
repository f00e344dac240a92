"""Translates interval, window and temporal joins.

This module imports one operator for each kind of join.
"""

from __future__ import annotations

from typing import Any

from penstock.core.table.arrow import arrow_type
from penstock.graph.transformation import Transformation
from penstock.runtime.table.expressions import InputRef
from penstock.runtime.table.operators.interval_join import IntervalJoinOperator
from penstock.runtime.table.operators.temporal_join import TemporalJoinOperator
from penstock.runtime.table.operators.window_join import WindowJoinOperator
from penstock.table.plan.exec.join import with_keys
from penstock.table.plan.exec.registry import translates
from penstock.table.plan.join_conditions import EquiKey, conditions_of, split_keys
from penstock.table.plan.nodes.base import TimeAttribute
from penstock.table.plan.nodes.join import FULL, LEFT, RIGHT, JoinRel
from penstock.table.plan.nodes.time_join import IntervalJoinRel, TemporalJoinRel, WindowJoinRel
from penstock.table.plan.planner import Planner
from penstock.table.plan.subquery import conjunction
from penstock.table.plan.time_joins import is_processing_time
from penstock.util.exceptions import ValidationException


class _KeyedInputs:
    """Both inputs, partitioned by the columns that must be equal, and their metadata for the operator."""

    def __init__(self, planner: Planner, rel: JoinRel, update_before: bool) -> None:
        self.equal: list[EquiKey]
        self.equal, rest = split_keys(conditions_of(rel.condition), len(rel.left.fields))
        sources = planner.inputs(rel, update_before)
        self.exchanged: list[Transformation] = []
        keys: list[list[int]] = []
        for number, (source, side) in enumerate(zip(sources, rel.inputs, strict=True)):
            wanted = [key.left if number == 0 else key.right for key in self.equal]
            keyed, columns = with_keys(planner, source, side, wanted)
            self.exchanged.append(planner.exchange(keyed, columns)[0])
            keys.append(columns)
        self.arguments: tuple[Any, ...] = (
            tuple([arrow_type(one.type) for one in side.fields] for side in rel.inputs),
            tuple(keys),
            [arrow_type(key.left.type) for key in self.equal],
            [key.null_safe for key in self.equal],
            conjunction(rest) if rest else None,
            rel.schema(),
            planner.context(),
        )

    def joined(self, planner: Planner, operator: Any, name: str) -> Transformation:
        """Return the operator after both inputs. Without an equality, one task processes all rows."""
        return planner.two_inputs(self.exchanged[0], self.exchanged[1], operator, name, single=not self.equal)


@translates(IntervalJoinRel)
def translate_interval_join(planner: Planner, rel: IntervalJoinRel, update_before: bool) -> Transformation:
    """Translate to an operator that keeps rows for the length of the interval."""
    inputs = _KeyedInputs(planner, rel, update_before)
    operator = IntervalJoinOperator(
        *inputs.arguments,
        outer=(rel.kind in (LEFT, FULL), rel.kind in (RIGHT, FULL)),
        time_columns=None if is_processing_time(rel) else (rel.left_time, rel.right_time),
        lower=rel.lower,
        upper=rel.upper,
    )
    return inputs.joined(planner, operator, "IntervalJoin")


@translates(WindowJoinRel)
def translate_window_join(planner: Planner, rel: WindowJoinRel, update_before: bool) -> Transformation:
    """Translate to an operator that keeps rows until their window ends."""
    inputs = _KeyedInputs(planner, rel, update_before)
    ends = (InputRef(rel.left.fields[rel.left_end].type, rel.left_end), rel.right_end)
    place = next(
        position
        for position, key in enumerate(inputs.equal)
        if key.left == ends[0] and isinstance(key.right, InputRef) and key.right.index == ends[1]
    )
    operator = WindowJoinOperator(
        *inputs.arguments,
        kind=rel.kind,
        window_end=place,
        zone=None if rel.local else planner.settings.time_zone,
        processing_time=rel.processing_time,
    )
    return inputs.joined(planner, operator, "WindowJoin")


@translates(TemporalJoinRel)
def translate_temporal_join(planner: Planner, rel: TemporalJoinRel, update_before: bool) -> Transformation:
    """Translate to an operator that keeps versions by key."""
    inputs = _KeyedInputs(planner, rel, update_before)
    compared = {key.right.index for key in inputs.equal if isinstance(key.right, InputRef)}
    known = planner.upsert_keys(rel.right)
    if not any(key <= compared for key in known):
        what = "none of its keys is compared with columns of the left table" if known else "it has none"
        raise ValidationException(
            f"Temporal Table Join requires a primary key of the versioned table in its equality condition: {what}."
        )
    right_time = next(index for index, one in enumerate(rel.right.fields) if one.time is TimeAttribute.ROWTIME)
    operator = TemporalJoinOperator(*inputs.arguments, outer=rel.kind == LEFT, time_columns=(rel.left_time, right_time))
    return inputs.joined(planner, operator, "TemporalJoin")
