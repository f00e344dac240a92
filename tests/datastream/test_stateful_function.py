"""Plain functions of (record, state) and (record, state, timers) on keyed streams."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from penstock.common import WatermarkStrategy
from penstock.common.errors import InvalidProgramError, PenstockError
from penstock.datastream import KeyedProcessFunction, MapFunction, OutputTag, StreamExecutionEnvironment
from penstock.datastream.state import ValueState
from penstock.datastream.stateful_function import Timers
from penstock.testing import MiniCluster

READINGS = [("a", 0, 1.0), ("b", 100, 5.0), ("a", 2_000, 3.0), ("a", 90_000, 2.0), ("b", 90_100, 6.0)]


@dataclass
class Mean:
    total: float = 0.0
    count: int = 0


def running_mean(reading: tuple[str, int, float], mean: Mean) -> Iterator[tuple[str, float]]:
    mean.total += reading[2]
    mean.count += 1
    yield reading[0], mean.total / mean.count


@dataclass
class LastSeen:
    deadline: int | None = None
    records: int = 0


def watch(reading: tuple[str, int, float], seen: LastSeen, timers: Timers) -> None:
    timers.cancel(seen.deadline)
    seen.deadline = timers.set(after="1 min")
    seen.records += 1


def silent(seen: LastSeen, timers: Timers) -> Iterator[str]:
    yield f"{timers.key} is silent after {seen.records} at {timers.timestamp}"
    timers.forget()


@pytest.fixture
def readings():
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda r: r[1])
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=1))  # event time advances with every record
    stream = env.set_parallelism(1).from_collection(READINGS)
    return stream.assign_timestamps_and_watermarks(strategy).key_by(lambda r: r[0])


def test_the_class_of_the_state_is_the_annotation_of_the_second_parameter(readings, collected):
    assert collected(readings.process(running_mean)) == [("a", 1.0), ("b", 5.0), ("a", 2.0), ("a", 2.0), ("b", 5.5)]


def test_the_class_of_the_state_may_be_an_argument(readings, collected):
    def letters(record, counts):
        counts[record[0]] += 1
        return [dict(counts)]

    assert collected(readings.process(letters, state=Counter))[-1] == {"b": 2}
    lists = readings.process(lambda r, seen: seen.append(r[2]) or [list(seen)], state=list)
    assert collected(lists)[3:] == [[1.0, 3.0, 2.0], [5.0, 6.0]]


def test_timers_call_on_timer_with_the_state_of_their_key(readings, collected):
    assert collected(readings.process(watch, on_timer=silent)) == [
        "b is silent after 1 at 60100",
        "a is silent after 3 at 150000",  # its record at 90,000 was there before the watermark passed 62,000
        "b is silent after 1 at 150100",
    ]


def test_a_pair_with_a_tag_goes_to_a_side_output(readings, collected):
    high = OutputTag("high")

    def split(reading, state):
        yield (high, reading) if reading[2] > 4 else reading

    assert collected(readings.process(split, state=Mean).get_side_output(high)) == [READINGS[1], READINGS[4]]


def test_state_that_is_not_written_expires(readings):
    operator = readings.process(running_mean, ttl="1 h").get_transformation().operator
    assert operator.function._declaration.descriptor().ttl_config.ttl_millis == 3_600_000


class RunningMean(KeyedProcessFunction):
    """The same with declared state."""

    state = ValueState(Mean)

    def process_element(self, value, ctx):
        mean = self.state.value() or Mean()
        yield from running_mean(value, mean)
        self.state.update(mean)


def test_it_is_the_same_job_as_a_function_object_with_one_value_state(nodes, collected, readings):
    assert collected(readings.process(RunningMean())) == collected(readings.process(running_mean))
    for function in (RunningMean(), running_mean):
        readings.process(function).print()
    found = [
        node for node in nodes(readings.get_execution_environment()).values() if node.name.startswith("KeyedProcess")
    ]
    assert len({type(node.operator) for node in found}) == 1


def test_errors_name_the_record(readings):
    def fails(reading, mean: Mean):
        yield 1 / (reading[2] - 3.0)

    with pytest.raises(
        PenstockError, match=r"(?s)ZeroDivisionError.*\('a', 2000, 3.0\)|\('a', 2000, 3.0\).*ZeroDivision"
    ):
        list(readings.process(fails).execute_and_collect())


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (lambda r: r, {}, r"a function of \(record, state\) or \(record, state, timers\), but <lambda>\(\) takes 1"),
        (lambda r, s: r, {}, r"the state of <lambda>\(\) has no class: annotate its parameter 's' with a dataclass"),
        (lambda r, s: r, {"state": 5}, "state must be a class, such as a dataclass"),
        (lambda r, s: r, {"state": lambda x: x}, "for every new key.*which fails.*Give its fields defaults"),
        (running_mean, {"on_timer": lambda s: s}, r"on_timer must be a function of \(state, timers\)"),
        (RunningMean(), {"state": Mean}, "state, on_timer and ttl are for plain functions"),
        (lambda r, s: r, {"state": int}, r"changes its state in place, but a value of type int is immutable"),
        (MapFunction, {}, "takes a KeyedProcessFunction or a function of a record and its state"),
    ],
)
def test_functions_that_make_no_sense_are_refused(readings, function, options, message):
    with pytest.raises(InvalidProgramError, match=message):
        readings.process(function, **options)


def test_a_timer_needs_a_time_and_a_record_with_a_timestamp(running_env):
    def unstamped(record, state, timers):
        timers.set(after="1 s")

    def nothing(record, state, timers):
        timers.set()

    keyed = running_env.from_collection(["a"]).key_by(lambda r: r)
    with pytest.raises(InvalidProgramError, match="counts from the timestamp of the record, but it has none"):
        list(keyed.process(unstamped, state=Mean).execute_and_collect())
    with pytest.raises(InvalidProgramError, match=r"set\(\) needs a time"):
        list(keyed.process(nothing, state=Mean).execute_and_collect())


def test_a_timer_without_on_timer_is_an_error(running_env):
    def watches(record, state, timers):
        timers.set(5)

    keyed = running_env.from_collection(["a"]).key_by(lambda r: r)
    with pytest.raises(InvalidProgramError, match=r"nothing handles this timer: pass process\(..., on_timer=...\)"):
        list(keyed.process(watches, state=Mean).execute_and_collect())


def test_a_function_with_state_needs_keys(running_env):
    with pytest.raises(InvalidProgramError, match=r"call key_by\(\) first for a function of \(record, state\)"):
        running_env.from_collection(["a"]).process(running_mean)


def test_parameters_with_defaults_keep_them(readings, collected):
    def large(reading, seen: Mean, limit=4):
        if reading[2] > limit:
            yield reading[2]

    assert collected(readings.process(large)) == [5.0, 6.0]
    assert collected(readings.process(partial(large, limit=5.5))) == [6.0]
