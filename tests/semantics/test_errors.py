"""What a user sees when his program is wrong: a Penstock error that says what, where, and what to do."""

import threading
from dataclasses import dataclass

import pytest
from support import assert_no_engine_in, script

from penstock.common import Time, Types, WatermarkStrategy
from penstock.common.errors import (
    EnvironmentStoppedError,
    InvalidProgramError,
    KeySelectorError,
    MissingTimestampError,
    PenstockError,
    SerializationError,
    StateAccessError,
    TypeMismatchError,
)
from penstock.datastream import (
    CoMapFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
)
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

FEW = pytest.mark.variants(executors=["warm", "cold"])
STREAMING = pytest.mark.variants(executors=["warm", "cold"], modes=["STREAMING"])


def helper_of_the_user(value):
    return 10 / value


@dataclass
class Changing:
    """A dataclass that is not frozen has no hash."""

    number: int


class Divide(MapFunction):
    def map(self, value):
        return helper_of_the_user(value)


class DivideKeyed(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield helper_of_the_user(value)


class DivideCo(CoMapFunction):
    def map1(self, value):
        return helper_of_the_user(value)

    def map2(self, value):
        return value


class TestFunctionsThatCannotTravel:
    @FEW
    @pytest.mark.on_spark((1, "STREAMING"))
    def test_a_member_that_cannot_be_pickled_is_named(self, env):
        class WithLock(MapFunction):
            def __init__(self):
                self.guard = threading.Lock()

            def map(self, value):
                return value

        env.from_collection([1]).map(WithLock()).name("guarded").print()
        with pytest.raises(SerializationError) as caught:
            env.execute()
        text = str(caught.value)
        assert "operator 'guarded'" in text
        assert "guard" in text
        assert "lock" in text
        assert "open()" in text

    @FEW
    def test_a_captured_variable_that_cannot_be_pickled_is_named(self, env):
        secret = threading.Lock()
        env.from_collection([1]).map(lambda v: (v, secret)).name("capturing").print()
        with pytest.raises(SerializationError, match=r"operator 'capturing'.*secret"):
            env.execute()

    @FEW
    def test_a_record_that_cannot_be_pickled(self, env):
        env.from_collection([1]).map(lambda v: threading.Lock()).key_by(lambda v: 1).map(str).name("next").print()
        with pytest.raises(SerializationError, match=r"record on its way to 'next' cannot be pickled"):
            env.execute()

    @STREAMING
    def test_state_that_cannot_be_pickled(self, env):
        class Keeps(MapFunction):
            def open(self, runtime_context):
                self.state = runtime_context.get_state(ValueStateDescriptor("s"))

            def map(self, value):
                self.state.update(threading.Lock())
                return value

        env.from_collection([1]).key_by(lambda v: v).map(Keeps()).name("keeper").print()
        with pytest.raises(SerializationError, match="state of operator 'keeper'"):
            env.execute()


class TestKeys:
    """A selector that fails, or gives what cannot be a key."""

    pytestmark = FEW

    @pytest.mark.on_spark((4, "STREAMING"))
    def test_a_failing_selector(self, env):
        env.from_collection([("a", 1), ("b",)]).key_by(lambda v: v[1]).reduce(lambda a, b: a).name("counted").print()
        with pytest.raises(KeySelectorError) as caught:
            env.execute()
        text = str(caught.value)
        assert "key selector before 'counted' failed" in text
        assert "('b',)" in text
        assert "IndexError" in text
        assert_no_engine_in(text)

    @pytest.mark.parametrize(
        "operator",
        [
            lambda keyed: keyed.map(Divide()),
            lambda keyed: keyed.reduce(lambda a, b: a),
            lambda keyed: keyed.sum(0),
            lambda keyed: keyed.process(DivideKeyed()),
            lambda keyed: keyed.connect(keyed).map(DivideCo()),
        ],
        ids=["map", "reduce", "sum", "process", "connect"],
    )
    def test_an_unhashable_key(self, env, operator):
        operator(env.from_collection([(Changing(1), 1)]).key_by(lambda v: v[0])).name("counted").print()
        with pytest.raises(
            KeySelectorError,
            match=r"before 'counted' returned a value that cannot be a key.*unhashable.*Changing.*frozen dataclass",
        ):
            env.execute()

    def test_a_field_that_does_not_exist(self, env):
        env.from_collection([{"id": 1}]).key_by("name").reduce(lambda a, b: a).print()
        with pytest.raises(KeySelectorError, match="name"):
            env.execute()

    def test_what_is_no_key_at_all_is_refused_at_once(self, env):
        with pytest.raises(
            InvalidProgramError, match=r"function, a KeySelector, a field position or a field name, got 1\.5"
        ):
            env.from_collection([1]).key_by(1.5)

    def test_a_custom_partitioner_out_of_range(self, env):
        env.from_collection([1]).partition_custom(lambda key, n: n, lambda v: v).map(str).name("next").print()
        with pytest.raises(
            InvalidProgramError,
            match=r"partitioner before 'next' returned \d for record 1, but there are channels 0 to",
        ):
            env.execute()


class TestTimestamps:
    @FEW
    def test_an_assigner_that_returns_no_number(self, env):
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda v: "12:00")
        env.from_collection([("a", 1)]).assign_timestamps_and_watermarks(strategy).name("clock").print()
        with pytest.raises(TypeMismatchError, match=r"'12:00' of type str: return milliseconds.*'clock'.*\('a', 1\)"):
            env.execute()

    @FEW
    def test_a_window_behind_a_strategy_without_assigner_on_records_without_timestamps(self, env):
        from penstock.common import Time
        from penstock.datastream.window import TumblingEventTimeWindows

        stamped = env.from_collection([("a", 1)]).assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps()
        )
        stamped.key_by(0).window(TumblingEventTimeWindows.of(Time.seconds(1))).sum(1).print()
        with pytest.raises(MissingTimestampError, match=r"without a timestamp.*with a timestamp assigner"):
            env.execute()

    @FEW
    @pytest.mark.on_spark((4, "STREAMING"))
    def test_an_event_time_window_over_records_without_timestamps(self, env):
        from penstock.common import Time
        from penstock.datastream.window import TumblingEventTimeWindows

        windows = env.from_collection([("a", 1)]).key_by(0).window(TumblingEventTimeWindows.of(Time.seconds(1)))
        windows.reduce(lambda a, b: a).name("hourly").print()
        with pytest.raises(MissingTimestampError) as caught:
            env.execute()
        text = str(caught.value)
        assert "timestamp" in text
        assert "assign_timestamps_and_watermarks" in text
        assert_no_engine_in(text)


class TestTypes:
    @FEW
    @pytest.mark.on_spark((1, "STREAMING"))
    def test_a_record_that_does_not_fit_the_declared_type(self, env):
        env.from_collection([1, 2]).map(str, output_type=Types.INT()).name("numbers").print()
        with pytest.raises(TypeMismatchError) as caught:
            env.execute()
        text = str(caught.value)
        assert "declared output type" in text
        assert "numbers" in text
        assert "'1'" in text
        assert_no_engine_in(text)

    @FEW
    def test_a_collection_that_does_not_fit_its_type(self, env):
        with pytest.raises(TypeMismatchError, match=r"element 1 of the collection"):
            env.from_collection([1, "two"], Types.INT())


class TestSideOutputs:
    @FEW
    def test_output_without_a_tag(self, env):
        class Wrong(ProcessFunction):
            def process_element(self, value, ctx):
                ctx.output("alarms", value)

        env.from_collection([1]).process(Wrong()).name("monitor").print()
        with pytest.raises(InvalidProgramError, match=r"'monitor'.*'alarms'.*must be an OutputTag"):
            env.execute()

    @FEW
    def test_get_side_output_of_something_that_is_no_tag(self, env):
        with pytest.raises(InvalidProgramError, match=r"get_side_output\(\) takes an OutputTag, got 'alarms'"):
            env.from_collection([1]).flat_map(lambda v: [v]).get_side_output("alarms")

    @FEW
    def test_an_operator_that_cannot_have_side_outputs(self, env):
        with pytest.raises(InvalidProgramError, match=r"'Map' has no side output 'alarms'"):
            env.from_collection([1]).map(str).get_side_output(OutputTag("alarms"))


class StateInOpen(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        state = runtime_context.get_state(ValueStateDescriptor("count"))
        state.value()

    def map(self, value):
        return value


class StateWithoutKeys(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        runtime_context.get_list_state(ListStateDescriptor("history"))

    def map(self, value):
        return value


class TimerWithoutKeys(ProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(5)


class TestStateAndTimersWithoutKeys:
    pytestmark = FEW

    @pytest.mark.on_spark((4, "STREAMING"))
    def test_state_on_a_stream_without_keys(self, env):
        env.from_collection([1]).map(StateWithoutKeys()).name("stateless").print()
        with pytest.raises(StateAccessError) as caught:
            env.execute()
        text = str(caught.value)
        assert "'stateless'" in text
        assert "'history'" in text
        assert "key_by()" in text
        assert_no_engine_in(text)

    def test_state_in_open(self, env):
        env.from_collection([1]).key_by(lambda v: v).map(StateInOpen()).name("early").print()
        with pytest.raises(StateAccessError, match=r"'early' was accessed without a current key"):
            env.execute()

    def test_a_timer_on_a_stream_without_keys(self, env):
        env.from_collection([1]).process(TimerWithoutKeys()).name("timer").print()
        with pytest.raises(InvalidProgramError, match=r"'timer' set a timer on a stream without keys: call key_by\(\)"):
            env.execute()

    def test_one_name_for_two_kinds_of_state(self, env):
        class Twice(MapFunction):
            def open(self, runtime_context):
                runtime_context.get_state(ValueStateDescriptor("s"))
                runtime_context.get_list_state(ListStateDescriptor("s"))

            def map(self, value):
                return value

        env.from_collection([1]).key_by(lambda v: v).map(Twice()).name("twice").print()
        with pytest.raises(InvalidProgramError, match=r"state 's' of operator 'twice' is a value state"):
            env.execute()


class TestEnvironment:
    pytestmark = pytest.mark.variants(executors=["warm"], parallelism=[1], modes=["STREAMING"])

    @pytest.mark.on_spark((1, "STREAMING"))
    def test_a_stopped_environment_refuses_everything(self, env):
        stream = env.from_collection([1])
        env.close()
        for use in (env.execute, lambda: env.from_collection([1]), lambda: stream.map(str), stream.print):
            with pytest.raises(EnvironmentStoppedError, match=r"environment is closed: create one"):
                use()

    def test_execute_without_a_sink(self, env):
        env.from_collection([1]).map(str)
        with pytest.raises(InvalidProgramError, match=r"nothing to execute: add a sink"):
            env.execute()

    def test_batch_mode_with_an_unbounded_source(self, env):
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        script(env, [], bounded=False, name="endless").print()
        with pytest.raises(InvalidProgramError, match=r"BATCH mode needs bounded sources, but .*endless.* never ends"):
            env.execute()


class TestTimestampsThatCannotBe:
    MAX = 2**63 - 1

    @staticmethod
    def stamped(env, timestamp):
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value: value[1])
        return env.from_collection([("a", 1), ("b", timestamp)]).assign_timestamps_and_watermarks(strategy)

    @FEW
    @pytest.mark.on_spark((1, "STREAMING"))
    @pytest.mark.parametrize("timestamp", [MAX + 1, -MAX - 2, 10**30])
    def test_a_timestamp_outside_64_bits_is_refused_with_its_record(self, env, timestamp):
        self.stamped(env, timestamp).print()
        error = self.failure(env)
        assert isinstance(error, TypeMismatchError)
        assert f"the timestamp {timestamp} does not fit into 64 bits" in str(error)
        assert error.record == repr(("b", timestamp))

    @FEW
    @pytest.mark.variants(modes=["STREAMING"])  # in a batch job all windows of a key end with it
    @pytest.mark.on_spark((1, "STREAMING"))
    @pytest.mark.parametrize(
        "assigner",
        [
            TumblingEventTimeWindows.of(Time.seconds(1)),
            SlidingEventTimeWindows.of(Time.seconds(2), Time.seconds(1)),
            EventTimeSessionWindows.with_gap(Time.seconds(1)),
        ],
        ids=repr,
    )
    @pytest.mark.parametrize("trigger", [None, ContinuousEventTimeTrigger.of(100)], ids=repr)
    def test_a_timestamp_whose_window_cannot_end_is_refused_with_its_record(self, env, assigner, trigger):
        windows = self.stamped(env, self.MAX).key_by(lambda value: value[0]).window(assigner)
        (windows if trigger is None else windows.trigger(trigger)).reduce(lambda a, b: a).print()
        error = self.failure(env)
        assert error.record == repr(("b", self.MAX))
        assert "timestamp" in str(error)

    @FEW
    def test_the_last_window_that_can_end_does(self, env, run):
        size = 1_000
        start = self.MAX - 2 * size - (self.MAX - 2 * size) % size
        windows = self.stamped(env, start + 1).key_by(lambda value: value[0])
        windows = windows.window(TumblingEventTimeWindows.of(Time.milliseconds(size)))
        last = windows.allowed_lateness(self.MAX).reduce(lambda a, b: a)
        assert sorted(run(last)) == [("a", 1), ("b", start + 1)]

    @staticmethod
    def failure(env):
        with pytest.raises(PenstockError) as caught:
            env.execute()
        return caught.value
