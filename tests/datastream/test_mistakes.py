"""Mistakes that people make in their first programs: each error says what to do."""

import inspect
import threading
from dataclasses import dataclass
from functools import wraps

import pytest

import penstock as ps
from penstock.common import Row, Types
from penstock.common.errors import (
    InvalidProgramError,
    KeySelectorError,
    PenstockError,
    SerializationError,
    StateAccessError,
    UserFunctionError,
)
from penstock.connectors.file_system.sink import FileSink
from penstock.connectors.jdbc import JdbcSink
from penstock.connectors.kafka.sink import KafkaSink
from penstock.connectors.kafka.source import KafkaSource
from penstock.datastream import (
    CoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.aggregates import Count
from penstock.datastream.state import ValueState
from penstock.formats.records import Csv, Json
from penstock.testing import FunctionHarness, MiniCluster


@dataclass
class Reading:
    sensor: str
    celsius: float


@dataclass
class Seen:
    readings: int = 0


READINGS = [Reading("attic", 20.0), Reading("cellar", 12.0)]


@pytest.fixture
def env():
    return StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(1)


@pytest.fixture
def readings(env):
    return env.from_collection(READINGS)


class TestFields:
    @pytest.mark.parametrize("record", [READINGS[0], {"sensor": "attic", "celsius": 1.0}, Row(sensor="a", celsius=1.0)])
    def test_a_missing_field_is_an_error_that_lists_the_fields(self, env, record):
        with pytest.raises(KeySelectorError, match="has no field 'senser', its fields are sensor, celsius"):
            env.from_collection([record]).key_by("senser").count().show()

    def test_a_missing_field_of_a_record_without_names_is_an_error(self, env):
        with pytest.raises(KeySelectorError, match=r"the record 1 has no field 'sensor'$"):
            list(env.from_collection([1]).key_by("sensor").count().collect())


class TestFunctions:
    @pytest.mark.parametrize("method", ["map", "filter", "flat_map", "key_by"])
    @pytest.mark.parametrize(
        ("function", "reason"),
        [(lambda: 1, "too many positional arguments"), (lambda a, b: a, "missing a required argument: 'b'")],
    )
    def test_a_function_with_the_wrong_number_of_parameters_is_rejected_at_once(
        self, readings, method, function, reason
    ):
        with pytest.raises(InvalidProgramError, match=rf"{method}\(\) calls the lambda with the record: {reason}"):
            getattr(readings, method)(function)

    def test_a_reduce_function_takes_two_values(self, readings):
        with pytest.raises(InvalidProgramError, match=r"reduce\(\) calls the lambda with the value so far and the rec"):
            readings.key_by(lambda r: r.sensor).reduce(lambda a: a)

    def test_a_reduce_function_of_a_window_takes_two_values(self, readings):
        with pytest.raises(InvalidProgramError, match=r"reduce\(\) calls the lambda with the value so far and the ele"):
            readings.key_by(lambda r: r.sensor).window(ps.tumbling(minutes=1)).reduce(lambda a: a)

    def test_a_method_with_the_wrong_number_of_parameters_is_rejected_at_once(self, readings):
        class TwoArguments(MapFunction):
            def map(self, value, other):
                return value

        with pytest.raises(InvalidProgramError, match=r"map\(\) calls TwoArguments.map\(\) with the record: missing"):
            readings.map(TwoArguments())

    def test_functions_whose_parameters_cannot_be_known_are_accepted(self, readings):
        def logged(function):
            @wraps(function)
            def call(record):
                return function(record, 1)

            return call

        results = (
            readings.map(logged(lambda record, more: record.celsius + more)).map(float).map(lambda *all_of: all_of)
        )
        assert list(results.collect()) == [(21.0,), (13.0,)]

    @pytest.mark.parametrize("result", ["attic", ("attic", 1), {"sensor": "attic"}, 5, READINGS[0], Row(1, 2)])
    def test_a_result_that_is_returned_instead_of_yielded_is_an_error(self, readings, result):
        def count(reading: Reading, seen: Seen):
            return result

        with pytest.raises(InvalidProgramError, match=r"count\(\) returned .*: yield each result, or return a list"):
            list(readings.key_by(lambda r: r.sensor).process(count).collect())

    def test_a_list_of_results_can_be_returned(self, readings):
        def twice(reading: Reading, seen: Seen):
            return [reading.celsius] * 2

        assert list(readings.key_by(lambda r: 0).process(twice).collect()) == [20.0, 20.0, 12.0, 12.0]

    def test_an_object_that_cannot_be_pickled_is_created_on_the_worker(self, readings):
        lock = threading.Lock()
        with pytest.raises(
            SerializationError, match=r"create it on the worker, in the open\(\) method of the function"
        ):
            list(readings.map(lambda r: (lock, r)).collect())


class TestClassesInsteadOfObjects:
    def test_an_aggregate(self, readings):
        windows = readings.key_by(lambda r: r.sensor).window(ps.tumbling(minutes=1))
        with pytest.raises(
            InvalidProgramError, match=r"'n' of agg\(\) must be .*Count.* \(pass an instance of the class"
        ):
            windows.agg(n=Count)

    def test_a_keyed_process_function(self, readings):
        with pytest.raises(InvalidProgramError, match=r"pass an instance of the class"):
            readings.key_by(lambda r: r.sensor).process(KeyedProcessFunction)

    def test_a_co_process_function(self, readings):
        with pytest.raises(InvalidProgramError, match=r"pass an instance of the class"):
            readings.connect(readings).process(CoProcessFunction)

    @pytest.mark.parametrize("executor", [MiniCluster, "mini"])
    def test_an_executor(self, executor):
        with pytest.raises(InvalidProgramError, match=r"executor must be an object such as MiniCluster\(\), got"):
            StreamExecutionEnvironment(executor=executor)

    @pytest.mark.parametrize(
        ("python", "name"),
        [(str, "STRING"), (int, "LONG"), (float, "DOUBLE"), (bool, "BOOLEAN"), (bytes, "PRIMITIVE_A")],
    )
    def test_a_python_class_instead_of_a_type(self, readings, python, name):
        with pytest.raises(InvalidProgramError, match=rf"got <class '{python.__name__}'>: use Types\.{name}"):
            readings.map(lambda r: r, output_type=python)
        assert getattr(Types, "PRIMITIVE_ARRAY" if python is bytes else name)


class TestRunning:
    def test_a_stream_is_not_iterable(self, readings):
        with pytest.raises(TypeError, match=r"use 'for record in stream.collect\(\)'"):
            list(readings)

    def test_a_second_execute_without_new_sinks_is_an_error_that_says_so(self, env, readings):
        readings.print()
        env.execute()
        with pytest.raises(InvalidProgramError, match=r"nothing to execute: add a sink .*\. execute\(\), collect\(\)"):
            env.execute()

    def test_no_records_are_shown_as_such(self, readings, capsys):
        readings.filter(lambda r: False).show()
        assert capsys.readouterr().out == "(no records)\n"

    def test_state_that_is_created_in_a_constructor_is_an_error(self, readings):
        class Counts(KeyedProcessFunction):
            def __init__(self):
                self.n = ValueState(int, default=0)

            def process_element(self, value, ctx):
                yield self.n.value()

        with pytest.raises(StateAccessError, match=r"in the body of a function's class \(not in __init__\(\)\)"):
            list(readings.key_by(lambda r: r.sensor).process(Counts()).collect())

    def test_a_harness_for_state_needs_a_key(self):
        def count(reading: Reading, seen: Seen):
            yield seen.readings

        with pytest.raises(InvalidProgramError, match=r"pass key_by=\.\.\. to the harness"):
            FunctionHarness(count)


class TestConnectors:
    def test_a_header_that_is_read_as_a_record_is_recognized(self):
        with pytest.raises(PenstockError, match=r"to skip a first line of names, use Csv\(Reading, header=True\)"):
            Csv(Reading).deserialize(b"sensor,celsius")

    def test_only_a_header_is_taken_for_a_header(self):
        with pytest.raises(PenstockError) as failure:
            Csv(Reading).deserialize(b"attic,warm")
        assert "header" not in str(failure.value)

    def test_a_record_that_is_no_record_of_the_format_is_named(self, env, tmp_path):
        env.from_collection([1]).sink_to(FileSink(str(tmp_path), format=Csv(Reading)))
        with pytest.raises(
            UserFunctionError, match=r"Csv\(Reading\) writes records with the fields sensor, celsius, got 1"
        ):
            env.execute()

    def test_an_insert_needs_the_class_of_its_records(self):
        with pytest.raises(InvalidProgramError, match=r"needs the class of its records: record=Order"):
            JdbcSink(table="readings", url="jdbc:sqlite:/tmp/readings.db")

    def test_committed_offsets_need_a_group(self):
        with pytest.raises(
            InvalidProgramError, match=r"need a consumer group: pass group=\.\.\. or call set_group_id\(\)"
        ):
            KafkaSource(servers="localhost:9092", topics="readings", value=Json(Reading), start="committed")

    def test_exactly_once_needs_a_name(self):
        with pytest.raises(InvalidProgramError, match=r"must be a name for the sink's transactions.* got True"):
            KafkaSink(servers="localhost:9092", topic="readings", value=Json(), exactly_once=True)


class Scaled:
    """A callable with a method of its own that happens to be called like one of a function class."""

    def __call__(self, number):
        return 2 * number

    def map(self, function, numbers):
        return [function(number) for number in numbers]


def injected(function):
    """Call the function with one more argument than the caller gives."""

    @wraps(function)
    def call(number):
        return function(number, 10)

    return call


@injected
def plus(number, more):
    return number + more


plus.__signature__ = inspect.signature(plus)


@pytest.mark.parametrize(("function", "expected"), [(Scaled(), [2, 4]), (plus, [11, 12])], ids=["object", "wrapped"])
def test_the_parameters_of_a_callable_are_those_of_its_call(function, expected):
    env = ps.StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(1)
    assert list(env.from_collection([1, 2]).map(function).collect()) == expected


def test_a_function_with_state_may_return_an_empty_tuple():
    def alert(number, state: Seen):
        return [number] if number > 1 else ()

    env = ps.StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(1)
    assert list(env.from_collection([1, 2]).key_by(lambda number: 0).process(alert).collect()) == [2]
