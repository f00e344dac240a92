"""What a user sees when a function of his fails: a Penstock error with the place, the record and his own frames."""

import threading

import pytest
from support import BY_SECOND_FIELD, assert_no_engine_in

from penstock.common import WatermarkStrategy
from penstock.common.errors import (
    JobExecutionError,
    PenstockError,
    UserFunctionError,
)
from penstock.common.watermark_strategy import WatermarkGenerator
from penstock.core.sink import Sink, SinkWriter
from penstock.datastream import (
    CoMapFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    SinkFunction,
    SourceFunction,
)

FEW = pytest.mark.variants(executors=["warm", "cold"])
STREAMING = pytest.mark.variants(executors=["warm", "cold"], modes=["STREAMING"])


def helper_of_the_user(value):
    return 10 / value


class Divide(MapFunction):
    def map(self, value):
        return helper_of_the_user(value)


class DivideFlat(FlatMapFunction):
    def flat_map(self, value):
        yield helper_of_the_user(value)


class DivideProcess(ProcessFunction):
    def process_element(self, value, ctx):
        yield helper_of_the_user(value)


class DivideKeyed(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield helper_of_the_user(value)


class DivideCo(CoMapFunction):
    def map1(self, value):
        return helper_of_the_user(value)

    def map2(self, value):
        return value


class DivideSink(SinkFunction):
    def invoke(self, value, context):
        helper_of_the_user(value)


def failure(env):
    with pytest.raises(PenstockError) as caught:
        env.execute()
    return caught.value


def assert_names_the_culprit(error, operator, record, method, frame="helper_of_the_user"):
    assert isinstance(error, UserFunctionError)
    assert error.operator_name == operator
    assert error.record == record
    assert error.method == method
    assert error.subtask is not None
    text = str(error)
    assert f"operator '{operator}'" in text
    assert f"record: {record}" in text
    assert frame in text
    assert_no_engine_in(text)


class TestFailingFunctions:
    """Operator, subtask, record, and the user's own frames only."""

    pytestmark = FEW

    @pytest.mark.on_spark((4, "STREAMING"), (4, "BATCH"))
    def test_map_object(self, env):
        env.from_collection([5, 2, 0, 1]).map(Divide()).name("ratio").print()
        error = failure(env)
        assert_names_the_culprit(error, "ratio", "0", "map")
        assert str(error).rstrip().endswith("ZeroDivisionError: division by zero")

    @pytest.mark.on_spark((1, "STREAMING"))
    def test_keyed_process_function(self, env):
        env.from_collection([5, 2, 0, 1]).key_by(lambda n: n % 2).process(DivideKeyed()).name("keyed ratio").print()
        assert_names_the_culprit(failure(env), "keyed ratio", "0", "process_element")

    @pytest.mark.parametrize(
        ("operator", "method"),
        [
            (lambda s: s.map(helper_of_the_user), "map"),
            (lambda s: s.filter(helper_of_the_user), "filter"),
            (lambda s: s.flat_map(lambda n: [helper_of_the_user(n)]), "flat_map"),
            (lambda s: s.flat_map(DivideFlat()), "flat_map"),
            (lambda s: s.process(DivideProcess()), "process_element"),
            (lambda s: s.key_by(lambda n: 1).map(Divide()), "map"),
            (lambda s: s.key_by(lambda n: 1).flat_map(DivideFlat()), "flat_map"),
            (lambda s: s.key_by(lambda n: 1).reduce(lambda a, b: helper_of_the_user(b)), "reduce"),
            (lambda s: s.connect(s).map(DivideCo()), "map1"),
        ],
        ids=["map", "filter", "flat_map", "FlatMap", "Process", "KeyedMap", "KeyedFlatMap", "Reduce", "CoMap"],
    )
    def test_every_operator(self, env, operator, method):
        operator(env.from_collection([5, 2, 0, 1])).name("ratio").print()
        assert_names_the_culprit(failure(env), "ratio", "0", method)

    def test_sink_function(self, env):
        env.from_collection([5, 0]).add_sink(DivideSink()).name("ratio")
        error = failure(env)
        assert isinstance(error, UserFunctionError)
        assert "helper_of_the_user" in str(error)
        assert_no_engine_in(str(error))

    def test_sink_writer(self, env):
        class Writer(SinkWriter):
            def write(self, value, context):
                helper_of_the_user(value)

        class Failing(Sink):
            def create_writer(self, context):
                return Writer()

        env.from_collection([5, 0]).sink_to(Failing()).name("to nowhere")
        error = failure(env)
        assert isinstance(error, UserFunctionError)
        assert "helper_of_the_user" in str(error)

    @pytest.mark.parametrize("step", ["open", "close"])
    def test_open_and_close(self, env, step):
        class Fails(MapFunction):
            def open(self, runtime_context):
                if step == "open":
                    raise RuntimeError("no connection")

            def map(self, value):
                return value

            def close(self):
                if step == "close":
                    raise RuntimeError("no connection")

        env.from_collection([1]).map(Fails()).name("fragile").print()
        error = failure(env)
        assert "fragile" in str(error)
        assert step in str(error)
        assert "RuntimeError: no connection" in str(error)
        assert_no_engine_in(str(error))

    def test_on_timer(self, env):
        class Fails(KeyedProcessFunction):
            def process_element(self, value, ctx):
                ctx.timer_service().register_event_time_timer(5)

            def on_timer(self, timestamp, ctx):
                raise ValueError("in the timer")

        timed = env.from_collection([("a", 1)]).assign_timestamps_and_watermarks(BY_SECOND_FIELD)
        timed.key_by(0).process(Fails()).name("alarm").print()
        error = failure(env)
        assert isinstance(error, UserFunctionError)
        assert (error.operator_name, error.method) == ("alarm", "on_timer")
        assert error.record == "(none: the timer at 5 of key 'a')"
        assert "ValueError: in the timer" in str(error)

    @pytest.mark.variants(modes=["STREAMING"])  # a batch job asks no generator
    def test_a_watermark_generator(self, env):
        class Fails(WatermarkGenerator):
            def on_event(self, event, event_timestamp, output):
                raise ValueError("in the generator")

            def on_periodic_emit(self, output):
                pass

        strategy = WatermarkStrategy.for_generator(lambda ctx: Fails()).with_timestamp_assigner(lambda v: v)
        env.from_collection([7]).assign_timestamps_and_watermarks(strategy).name("clock").print()
        error = failure(env)
        assert isinstance(error, UserFunctionError)
        assert "in the generator" in str(error)
        assert error.record == "7"

    def test_the_cause_of_a_cause_is_shown_too(self, env):
        def wrap(value):
            try:
                return helper_of_the_user(value)
            except ZeroDivisionError as error:
                raise ValueError("cannot divide") from error

        env.from_collection([0]).map(wrap).print()
        text = str(failure(env))
        assert "ZeroDivisionError" in text
        assert "ValueError: cannot divide" in text
        assert_no_engine_in(text)

    def test_long_records_are_shortened(self, env):
        env.from_collection([list(range(100_000))]).map(lambda v: v["x"]).print()
        error = failure(env)
        assert len(error.record) <= 200
        assert error.record.endswith("...]") or error.record.endswith("...")

    @pytest.mark.variants(modes=["STREAMING"])
    def test_a_source_function(self, env):
        class Fails(SourceFunction):
            def run(self, ctx):
                ctx.collect(1)
                helper_of_the_user(0)

            def cancel(self):
                pass

        env.add_source(Fails(), "fragile source").print()
        error = failure(env)
        assert isinstance(error, JobExecutionError)
        assert "fragile source" in str(error)
        assert "helper_of_the_user" in str(error)
        assert_no_engine_in(str(error))

    def test_an_exception_class_that_cannot_be_pickled(self, env):
        class Odd(Exception):  # noqa: N818
            def __init__(self, first, second):
                super().__init__(first)
                self.lock = threading.Lock()

        def fail(value):
            raise Odd("one", "two")

        env.from_collection([1]).map(fail).print()
        assert "Odd: one" in str(failure(env))


@pytest.mark.variants(executors=["warm"], modes=["STREAMING"], parallelism=[4])
@pytest.mark.on_spark((4, "STREAMING"))
def test_after_a_failure_the_environment_can_be_used_again(env, run):
    env.from_collection([0]).map(Divide()).print()
    assert isinstance(failure(env), UserFunctionError)
    assert run(env.from_collection([2]).map(Divide())) == [5.0]
