"""Conditions: how they combine, what they see, and how they fail."""

import pytest
from cep_jobs import Event, job, operator_of
from notation import chain

from penstock.cep import CEP, IterativeCondition, Pattern, RichIterativeCondition, SimpleCondition
from penstock.cep.nfa_compiler import NFACompiler
from penstock.common import WatermarkStrategy
from penstock.common.errors import UserFunctionError
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster
from penstock.testing.harness import KeyedOneInputOperatorHarness

TIMED = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value: abs(value) + 1)


def matches(pattern, values):
    env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(1)
    stream = env.from_collection(values).assign_timestamps_and_watermarks(TIMED)
    return list(CEP.pattern(stream, pattern).select(dict).execute_and_collect())


def taken(pattern, values):
    return [match["x"][0] for match in matches(pattern, values)]


def above(limit):
    return lambda value: value > limit


def test_several_conditions_must_hold_together():
    assert taken(Pattern.begin("x").where(above(2)).where(lambda value: value < 5), range(8)) == [3, 4]


def test_or_adds_to_all_that_was_said_before():
    pattern = Pattern.begin("x").where(lambda value: value == 1).or_(above(5)).where(lambda value: value != 7)
    assert taken(pattern, range(9)) == [1, 6, 8]


def test_or_alone_is_the_condition():
    assert taken(Pattern.begin("x").or_(above(5)), range(8)) == [6, 7]


def test_a_subtype_is_a_condition_at_its_place():
    pattern = Pattern.begin("x").subtype(bool).where(lambda value: value is True)
    assert taken(pattern, [0, True, 1, 2]) == [True]


def test_conditions_stop_at_the_first_answer():
    assert taken(Pattern.begin("x").where(lambda value: value != 0).where(lambda value: 4 // value > 1), [0, 2, 4]) == [
        2
    ]


def test_what_a_condition_returns_is_taken_for_its_truth():
    assert taken(Pattern.begin("x").where(lambda value: [0] * value), [0, 1]) == [1]


class Even(SimpleCondition):
    def filter(self, value):
        return value % 2 == 0


class Rising(IterativeCondition):
    def filter(self, value, ctx):
        return all(value > before for before in ctx.get_events_for_pattern("first"))


def test_conditions_may_be_objects_of_the_classes():
    assert taken(Pattern.begin("x").where(Even()), range(4)) == [0, 2]
    assert taken(Pattern.begin("x").where(SimpleCondition.of(above(2))), range(4)) == [3]


def test_an_iterative_condition_sees_the_events_of_its_own_run_without_the_current_one():
    pattern = Pattern.begin("first").where(lambda value: value < 0).followed_by_any("x").where(Rising())
    assert matches(pattern, [-1, -2, -3]) == []
    pattern = Pattern.begin("first").next("x").where(lambda value, ctx: not list(ctx.get_events_for_pattern("x")))
    assert len(matches(pattern, [1, 2])) == 1


def test_a_name_without_events_and_an_unknown_name_give_nothing():
    def condition(value, ctx):
        return not list(ctx.get_events_for_pattern("later")) and not list(ctx.get_events_for_pattern("unknown"))

    assert taken(Pattern.begin("x").where(condition).next("later"), [1, 2]) == [1]


def test_a_condition_sees_the_timestamp_of_the_event():
    assert taken(Pattern.begin("x").where(lambda value, ctx: ctx.timestamp() == value + 1), [1, 2]) == [1, 2]


class Opened(RichIterativeCondition):
    limit = None

    def open(self, runtime_context):
        assert self.limit is None, "opened twice"
        self.limit = 2

    def filter(self, value, ctx):
        return value > self.limit


def test_a_rich_condition_is_opened_once():
    assert [match["x"] for match in matches(Pattern.begin("x").where(Opened()).one_or_more(), [1, 3])] == [[3]]


def test_an_exception_in_a_condition_fails_the_job_and_names_the_pattern():
    with pytest.raises(UserFunctionError, match=r"filter of .*'x'"):
        matches(Pattern.begin("x").where(lambda value: 1 // value), [0])


def test_optional_before_the_quantifier_is_forgotten():
    def last(quantified):
        return matches(quantified.where(above(5)).next("end").where(lambda value: value < 0), [-1])

    assert last(Pattern.begin("x").one_or_more().optional()) == [{"end": [-1]}]
    assert last(Pattern.begin("x").optional().one_or_more()) == []


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (bool, [1, 2]),  # cannot be inspected, or takes any number of arguments: simple
        (lambda value: value == 2, [2]),
        (lambda value, ctx: value == 2 and ctx.timestamp() == 3, [2]),
        (lambda value, limit=1: value > limit, [2]),  # one parameter is required
    ],
    ids=["builtin", "one parameter", "two parameters", "a default"],
)
def test_a_callable_with_two_parameters_is_iterative_and_any_other_is_simple(condition, expected):
    assert taken(Pattern.begin("x").where(condition), [0, 1, 2]) == expected


class WithState(RichIterativeCondition):
    def open(self, runtime_context):
        runtime_context.get_state(None)

    def filter(self, value, ctx):
        return True


def test_conditions_have_no_keyed_state():
    with pytest.raises(Exception, match="conditions and pattern functions have no keyed state"):
        matches(Pattern.begin("x").where(WithState()), [1])


def test_in_processing_time_a_condition_sees_when_the_event_entered_the_operator():
    seen = []

    def condition(event, ctx):
        seen.append((event.id, ctx.timestamp(), ctx.current_processing_time()))
        return True

    operator = operator_of(job(chain("a"), [], time="processing"), [])
    operator.automaton = NFACompiler.compile(Pattern.begin("a").where(condition))
    harness = KeyedOneInputOperatorHarness(operator)
    for moment in (5, 8):
        harness.set_processing_time(moment)
        harness.process_element(Event(moment, "k", "a", 0), 99)
    assert seen == [(5, 5, 5), (8, 8, 8)]


def test_in_event_time_a_condition_sees_the_clock_beside_the_timestamp_of_the_event():
    seen = []
    operator = operator_of(job(chain("a"), []), [])
    operator.automaton = NFACompiler.compile(
        Pattern.begin("a").where(lambda event, ctx: seen.append((ctx.timestamp(), ctx.current_processing_time())))
    )
    harness = KeyedOneInputOperatorHarness(operator)
    harness.set_processing_time(70)
    harness.process_element(Event(1, "k", "a", 0), 7)
    harness.process_watermark(7)
    assert seen == [(7, 70)]
