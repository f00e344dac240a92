"""What is done with matches: process, select, flat_select, side outputs, isolation; on every executor."""

import pytest
from cep_jobs import Event, job, operator_of
from notation import chain

from penstock.cep import (
    CEP,
    Pattern,
    PatternFlatSelectFunction,
    PatternFlatTimeoutFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
    TimedOutPartialMatchHandler,
)
from penstock.common import WatermarkStrategy
from penstock.common.errors import InvalidProgramError, MissingTimestampError, UserFunctionError
from penstock.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment
from penstock.testing import MiniCluster
from penstock.testing.harness import KeyedOneInputOperatorHarness

TIMED = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event: event[2])
LATE_OUT, TIMEOUTS, STARTS = OutputTag("late"), OutputTag("timeouts"), OutputTag("starts")

# Key, kind, timestamp.
EVENTS = [
    *(("x", "a", 1), ("y", "a", 2), ("x", "z", 3), ("x", "b", 4), ("y", "z", 5), ("z", "b", 6)),
    *(("x", "a", 20), ("y", "b", 30), ("x", "b", 40)),
]


@pytest.fixture
def env(env_factory):
    return env_factory()


def source(env, events=EVENTS):
    return env.from_collection(events).assign_timestamps_and_watermarks(TIMED)


def keyed(env, events=EVENTS):
    return source(env, events).key_by(lambda event: event[0])


def a_then_b(limit=None):
    pattern = Pattern.begin("a").where(lambda event: event[1] == "a")
    return pattern.followed_by("b").where(lambda event: event[1] == "b").within(limit)


def times(match):
    return match["a"][0][0], *(events[0][2] for events in match.values())


class Pairs(PatternProcessFunction, TimedOutPartialMatchHandler):
    def process_match(self, match, ctx):
        yield STARTS, match["a"][0][2]
        yield *times(match), ctx.timestamp()

    def process_timed_out_match(self, match, ctx):
        ctx.output(TIMEOUTS, (*times(match), ctx.timestamp()))


def run(env, **streams):
    iterators = {name: stream.collect_async() for name, stream in streams.items()}
    env.execute("patterns")
    return {name: sorted(iterator) for name, iterator in iterators.items()}


@pytest.mark.on_spark((4, "STREAMING"), (4, "BATCH"))
def test_matches_timeouts_and_side_outputs_are_the_same_on_every_executor(env):
    stream = CEP.pattern(keyed(env), a_then_b(10)).process(Pairs())
    found = run(env, main=stream, timeouts=stream.get_side_output(TIMEOUTS), starts=stream.get_side_output(STARTS))
    assert found == {"main": [("x", 1, 4, 4)], "timeouts": [("x", 20, 30), ("y", 2, 12)], "starts": [1]}


def test_a_stream_without_keys_is_one_key_in_one_task(env):
    stream = CEP.pattern(source(env), a_then_b()).select(lambda match: [event[2] for [event] in match.values()])
    assert run(env, main=stream)["main"] == [[1, 4], [2, 4], [20, 30]]
    with pytest.raises(InvalidProgramError):
        stream.set_parallelism(2)


class Select(PatternSelectFunction):
    def select(self, match):
        return times(match)


class Timeout(PatternTimeoutFunction):
    def timeout(self, match, timeout_timestamp):
        return *times(match), timeout_timestamp


class FlatSelect(PatternFlatSelectFunction):
    def flat_select(self, match):
        yield times(match)
        yield times(match)


class FlatTimeout(PatternFlatTimeoutFunction):
    def timeout(self, match, timeout_timestamp):
        yield *times(match), timeout_timestamp
        yield *times(match), timeout_timestamp


ONE = {"main": [("x", 1, 4)], "timeouts": [("x", 20, 30), ("y", 2, 12)]}


@pytest.mark.variants(executors=("warm",), parallelism=(1,))
@pytest.mark.parametrize("functions", [(Timeout(), Select()), (Timeout().timeout, times)], ids=["objects", "functions"])
def test_select_has_one_result_for_each_match_and_timeout(env, functions):
    stream = CEP.pattern(keyed(env), a_then_b(10)).select(TIMEOUTS, *functions)
    assert run(env, main=stream, timeouts=stream.get_side_output(TIMEOUTS)) == ONE


@pytest.mark.variants(executors=("warm",), parallelism=(1,))
def test_flat_select_has_any_number_of_results(env):
    stream = CEP.pattern(keyed(env), a_then_b(10)).flat_select(TIMEOUTS, FlatTimeout(), FlatSelect())
    found = run(env, main=stream, timeouts=stream.get_side_output(TIMEOUTS))
    assert found == {name: sorted(results * 2) for name, results in ONE.items()}


def simple_env():
    return StreamExecutionEnvironment(executor=MiniCluster(max_records=1)).set_parallelism(1)


def test_late_events_go_to_their_side_output():
    env = simple_env()
    patterns = CEP.pattern(keyed(env, [("k", "a", 10), ("k", "a", 3), ("k", "b", 20)]), a_then_b())
    stream = patterns.side_output_late_data(LATE_OUT).select(times)
    found = run(env, main=stream, late=stream.get_side_output(LATE_OUT))
    assert found == {"main": [("k", 10, 20)], "late": [("k", "a", 3)]}


def test_in_processing_time_events_are_matched_in_the_order_of_their_arrival():
    env = simple_env()
    stream = env.from_collection([("k", "a", 10), ("k", "b", 3)]).key_by(lambda event: event[0])
    assert run(env, main=CEP.pattern(stream, a_then_b()).in_processing_time().select(times)) == {"main": [("k", 10, 3)]}


def test_events_without_a_timestamp_are_an_error():
    env = simple_env()
    stream = CEP.pattern(env.from_collection(EVENTS).key_by(lambda event: event[0]), a_then_b()).select(times)
    with pytest.raises(MissingTimestampError):
        list(stream.execute_and_collect())


def test_a_comparator_orders_events_of_the_same_timestamp():
    env = simple_env()
    events = [("k", "b", 1), ("k", "a", 1), ("k", "end", 2)]
    patterns = CEP.pattern(keyed(env, events), a_then_b(), lambda left, right: ord(left[1][0]) - ord(right[1][0]))
    assert run(env, main=patterns.select(times)) == {"main": [("k", 1, 1)]}


@pytest.mark.parametrize("cold", [False, True])
def test_a_function_that_changes_its_match_changes_nothing_in_other_matches(cold):
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=1, cold=cold)).set_parallelism(1)
    stream = env.from_collection([["a", 1], ["b", 2], ["b", 3]]).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event: event[1])
    )
    pattern = Pattern.begin("a").where(lambda event: event[0] == "a").followed_by_any("b")

    def spoil(match):
        seen = list(match["a"][0])
        match["a"][0].append("spoiled")
        match["a"].clear()
        return seen

    assert run(env, main=CEP.pattern(stream, pattern).select(spoil)) == {"main": [["a", 1], ["a", 1]]}


def test_a_plain_result_of_the_timeout_handler_is_an_error_that_says_what_to_do():
    class Wrong(Pairs):
        def process_timed_out_match(self, match, ctx):
            yield "plain"

    stream = CEP.pattern(keyed(simple_env()), a_then_b(10)).process(Wrong())
    with pytest.raises((InvalidProgramError, UserFunctionError), match="no main output"):
        list(stream.execute_and_collect())


def test_a_function_that_fails_is_named():
    stream = CEP.pattern(keyed(simple_env()), a_then_b()).select(lambda match: match["missing"])
    with pytest.raises(UserFunctionError, match="select"):
        list(stream.execute_and_collect())


def with_timestamps(env, stream):
    class Stamps(ProcessFunction):
        def process_element(self, value, ctx):
            yield value, ctx.timestamp()

    return run(env, main=stream.process(Stamps()))["main"]


def test_results_have_the_timestamp_of_the_match_in_event_time_and_none_in_processing_time():
    env = simple_env()
    patterns = CEP.pattern(keyed(env, EVENTS[:4]), a_then_b())
    assert with_timestamps(env, patterns.select(times)) == [(("x", 1, 4), 4)]
    env = simple_env()
    patterns = CEP.pattern(keyed(env, EVENTS[:4]), a_then_b()).in_processing_time()
    assert with_timestamps(env, patterns.select(times)) == [(("x", 1, 4), None)]


def test_none_is_a_result_of_select_as_it_is_of_map():
    env = simple_env()
    found = list(CEP.pattern(keyed(env), a_then_b(10)).select(lambda match: None).execute_and_collect())
    mapped = list(simple_env().from_collection([1]).map(lambda value: None).execute_and_collect())
    assert found == mapped == [None]


def test_generator_functions_may_be_given_to_process_and_flat_select():
    def twice(match):
        yield from [times(match)] * 2

    def with_time(match, ctx):
        yield *times(match), ctx.timestamp()

    for method, function, expected in (
        ("flat_select", twice, [("x", 1, 4)] * 2),
        ("process", with_time, [("x", 1, 4, 4)]),
    ):
        env = simple_env()
        assert run(env, main=getattr(CEP.pattern(keyed(env), a_then_b(10)), method)(function))["main"] == expected


def test_the_operator_is_called_as_in_flink():
    env = simple_env()
    keyed_result = CEP.pattern(keyed(env), a_then_b()).select(times)
    global_result = CEP.pattern(source(env), a_then_b()).select(times)
    assert (keyed_result.get_name(), global_result.get_name()) == ("CepOperator", "GlobalCepOperator")
    assert keyed_result.name("mine").uid("my uid").get_name() == "mine"


def test_late_events_without_a_side_output_are_counted():
    harness = KeyedOneInputOperatorHarness(operator_of({**job(chain("a > b"), []), "late": None}, []))
    harness.operator.late_tag = None
    harness.process_element(Event(1, "k", "a", 0), 5)
    harness.process_watermark(9)
    harness.process_element(Event(2, "k", "b", 0), 9)
    assert harness.operator.context.metrics.counter("numLateRecordsDropped").get_count() == 1


def test_the_number_of_partial_matches_is_a_metric():
    harness = KeyedOneInputOperatorHarness(operator_of(job(chain("a -> b"), []), []))
    for number, kind in enumerate("aab", 1):
        harness.process_element(Event(number, "k", kind, 0), number)
        harness.process_watermark(number)
        counter = harness.operator.context.metrics.counter("numPartialMatches")
        assert counter.get_count() == {1: 1, 2: 2, 3: 0}[number]
