"""Translates MATCH_RECOGNIZE to a CEP pattern (T91).

This module imports the parts of a pattern and those of a table's plan.
"""

from __future__ import annotations

from typing import Any

from penstock.cep import Pattern
from penstock.cep.nfa_compiler import NFACompiler
from penstock.common.errors import MalformedPatternError
from penstock.common.time import Duration
from penstock.core.cep import AfterMatchSkipStrategy, IterativeCondition
from penstock.core.table.arrow import arrow_type
from penstock.graph.transformation import Transformation
from penstock.runtime.table.expressions import input_columns, shifted
from penstock.runtime.table.match_values import MatchValue, MatchValueReader
from penstock.runtime.table.operators.match import FlagCondition, MatchOperator, MatchRows, RowsCondition
from penstock.table.plan.exec.aggregate import aggregate_call
from penstock.table.plan.exec.rank import sort_columns
from penstock.table.plan.exec.registry import translates
from penstock.table.plan.nodes.aggregate import AggregateSpec
from penstock.table.plan.nodes.base import TimeAttribute
from penstock.table.plan.nodes.match import MatchCondition, MatchRel, PatternTerm
from penstock.table.plan.planner import Planner
from penstock.util.exceptions import TableException

_VALUES_BEGIN = 1_000_000


@translates(MatchRel)
def translate_match(planner: Planner, rel: MatchRel, update_before: bool) -> Transformation:
    """Translate to an operator after an exchange by the partition keys."""
    if not planner.changelog(rel.input).insert_only:
        raise TableException(
            "Match Recognize doesn't support consuming update and delete changes which is produced by node "
            f"{rel.input.describe()}"
        )
    (source,) = planner.inputs(rel, update_before)
    exchanged, parallelism = planner.exchange(source, rel.partition)
    field = rel.input.fields[rel.order[0].column]
    try:
        automaton = NFACompiler.compile(_pattern(planner, rel))
    except MalformedPatternError as error:
        raise TableException(f"The pattern of MATCH_RECOGNIZE is not supported: {error}") from None
    readers = [_reader(rel, value, spec) for value, spec in rel.values]
    operator = MatchOperator(
        automaton,
        MatchRows([term.variable for term in rel.pattern], rel.partition, readers),
        _KeyOf(rel.partition),
        time_column=rel.order[0].column if field.time is TimeAttribute.ROWTIME else None,
        order=sort_columns(rel.order[1:]),
        schema=rel.schema(),
    )
    return planner.one_input(exchanged, operator, "Match", rel.describe(), parallelism=parallelism)


class _KeyOf:
    """Returns the partition key of an event."""

    def __init__(self, columns: tuple[int, ...]) -> None:
        self._columns = columns

    def __call__(self, event: Any) -> Any:
        if len(self._columns) == 1:
            return event[self._columns[0]]
        return tuple(event[index] for index in self._columns)


def _pattern(planner: Planner, rel: MatchRel) -> Pattern[Any]:
    conditions = dict(rel.conditions)
    pattern: Pattern[Any] | None = None
    for term in rel.pattern:
        pattern = Pattern.begin(term.variable, _skip(rel)) if pattern is None else pattern.next(term.variable)
        condition = conditions.get(term.variable)
        if condition is not None:
            pattern = pattern.where(_condition(planner, rel, term.variable, condition))
        pattern = _repeated(pattern, term)
    assert pattern is not None
    return pattern if rel.within is None else pattern.within(Duration.of_millis(rel.within))


def _skip(rel: MatchRel) -> AfterMatchSkipStrategy:
    kind, variable = rel.skip
    match kind:
        case "TO NEXT ROW":
            return AfterMatchSkipStrategy.skip_to_next()
        case "TO FIRST":
            return AfterMatchSkipStrategy.skip_to_first(variable).throw_exception_on_miss()
        case "TO LAST":
            return AfterMatchSkipStrategy.skip_to_last(variable).throw_exception_on_miss()
    return AfterMatchSkipStrategy.skip_past_last_event()


def _repeated(pattern: Pattern[Any], term: PatternTerm) -> Pattern[Any]:
    if (term.low, term.high) == (1, 1):
        return pattern
    if (term.low, term.high) == (0, 1):
        return pattern.optional()
    if term.high is None:
        pattern = pattern.one_or_more() if term.low <= 1 else pattern.times_or_more(term.low)
        if term.low == 0:
            pattern = pattern.optional()
    else:
        pattern = pattern.times(term.low, term.high)
    pattern = pattern.consecutive()
    return pattern.greedy() if term.greedy and term.low != term.high else pattern


def _condition(planner: Planner, rel: MatchRel, variable: str, condition: MatchCondition) -> IterativeCondition[Any]:
    if condition.flag is not None:
        return FlagCondition(condition.flag)
    expression = condition.expression
    assert expression is not None
    own = sorted(index for index in input_columns(expression) if index < _VALUES_BEGIN)
    places = {index: place for place, index in enumerate(own)}
    compact = shifted(
        expression,
        lambda index: places[index] if index < _VALUES_BEGIN else len(own) + index - _VALUES_BEGIN,
    )
    values = []
    for value, spec in condition.values:
        type_ = rel.input.fields[value.columns[0]].type if spec is None else spec.type
        values.append((_reader(rel, value, spec), arrow_type(type_)))
    return RowsCondition(
        variable,
        [term.variable for term in rel.pattern],
        compact,
        [(index, arrow_type(rel.input.fields[index].type)) for index in own],
        values,
        planner.context(),
    )


def _reader(rel: MatchRel, value: MatchValue, spec: AggregateSpec | None) -> MatchValueReader:
    types = [arrow_type(rel.input.fields[index].type) for index in value.columns]
    aggregate = None if spec is None else aggregate_call(spec, rel.input, retracts=False).aggregate
    return MatchValueReader(value, aggregate, types)
