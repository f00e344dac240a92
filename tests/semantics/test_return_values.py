"""What user code returns is checked: a forgotten ``return`` or a wrong type is an error, never a silent answer."""

import pytest
from support import BY_SECOND_FIELD

from penstock.common import Duration, WatermarkStrategy
from penstock.common.errors import InvalidProgramError, KeySelectorError, PenstockError, TypeMismatchError
from penstock.common.restart_strategy import RestartStrategyConfiguration
from penstock.common.watermark_strategy import Watermark, WatermarkGenerator
from penstock.core.functions import AsyncRetryStrategy
from penstock.core.window import EventTimeTrigger, TimeWindow, WindowAssigner
from penstock.datastream import AsyncDataStream, AsyncFunction, FilterFunction, KeySelector, ReduceFunction
from penstock.datastream.functions import Partitioner
from penstock.datastream.window import (
    EventTimeSessionWindows,
    Evictor,
    GlobalWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
)
from penstock.spark.restarts import Restarts

FEW = pytest.mark.variants(executors=["warm", "cold"], parallelism=[1])
RECORDS = [("a", 1), ("a", 2), ("b", 3)]


def failure(env):
    with pytest.raises(PenstockError) as caught:
        env.execute()
    return caught.value


class Answering(Trigger):
    """Gives one answer for elements and another for timers."""

    def __init__(self, on_element=TriggerResult.CONTINUE, on_timer=TriggerResult.CONTINUE):
        self.answers = on_element, on_timer

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(timestamp)
        return self.answers[0]

    def on_event_time(self, time, window, ctx):
        return self.answers[1]

    def on_processing_time(self, time, window, ctx):
        return self.answers[1]

    def clear(self, window, ctx):
        pass


def windowed(env, trigger=None, evictor=None, assigner=None):
    keyed = env.from_collection(RECORDS).assign_timestamps_and_watermarks(BY_SECOND_FIELD).key_by(lambda r: r[0])
    stream = keyed.window(GlobalWindows.create() if assigner is None else assigner)
    stream = stream if trigger is None else stream.trigger(trigger)
    stream = stream if evictor is None else stream.evictor(evictor)
    stream.reduce(lambda a, b: a).print()
    return env


class TestTriggers:
    @FEW
    @pytest.mark.on_spark((1, "STREAMING"))
    @pytest.mark.parametrize("answer", [None, True, "FIRE"])
    def test_an_answer_of_on_element_that_is_no_trigger_result_names_trigger_method_and_record(self, env, answer):
        error = failure(windowed(env, Answering(on_element=answer)))
        assert isinstance(error, TypeMismatchError)
        assert f"on_element() of the trigger Answering() returned {answer!r}" in str(error)
        assert "TriggerResult" in str(error)
        assert error.record == "('a', 1)"

    @FEW
    def test_an_answer_of_a_timer_that_is_no_trigger_result_names_trigger_and_method(self, env):
        error = failure(windowed(env, PurgingTrigger.of(Answering(on_timer=None))))
        assert "on_event_time() of the trigger PurgingTrigger(Answering()) returned None" in str(error)


class Evicting(Evictor):
    def __init__(self, act):
        self.act = act

    def evict_before(self, elements, size, window, ctx):
        return self.act(elements)

    def evict_after(self, elements, size, window, ctx):
        pass


class Assigning(WindowAssigner):
    def __init__(self, windows):
        self.windows = windows

    def assign_windows(self, element, timestamp, context):
        return self.windows

    def get_default_trigger(self, env):
        return EventTimeTrigger.create()

    def is_event_time(self):
        return True


class TestWindows:
    @FEW
    def test_an_evictor_that_returns_what_is_to_stay_is_told_to_delete(self, env):
        evictor = Evicting(lambda elements: elements[1:])
        error = failure(windowed(env, evictor=evictor, assigner=TumblingEventTimeWindows.of(Duration.of_millis(10))))
        assert "evict_before() of the evictor Evicting() returned [TimestampedValue" in str(error)
        assert "del elements[0]" in str(error)

    @FEW
    def test_an_evictor_that_puts_values_in_place_of_elements_is_named(self, env):
        def unwrap(elements):
            elements[:] = [element.get_value() for element in elements]

        evictor = Evicting(unwrap)
        error = failure(windowed(env, evictor=evictor, assigner=TumblingEventTimeWindows.of(Duration.of_millis(10))))
        assert "evict_before() of the evictor Evicting() added other objects" in str(error)

    @FEW
    @pytest.mark.parametrize("windows", [None, TimeWindow(0, 10)])
    def test_an_assigner_that_returns_no_list_of_windows_is_named(self, env, windows):
        error = failure(windowed(env, assigner=Assigning(windows), trigger=ProcessingTimeTrigger.create()))
        assert f"returned {windows!r}: return a list of windows" in str(error)
        assert error.record == "('a', 1)"

    @FEW
    @pytest.mark.parametrize("gap", [None, 0, "5"])
    def test_a_session_gap_that_is_no_length_of_time_is_refused(self, env, gap):
        error = failure(windowed(env, assigner=EventTimeSessionWindows.with_dynamic_gap(lambda element: gap)))
        assert f"returned {gap!r}: return a number of milliseconds, longer than 0 ms" in str(error)


class Positive(FilterFunction):
    def filter(self, value):
        value > 0  # noqa: B015 - the mistake that is tested


class FirstField(KeySelector):
    def get_key(self, value):
        value[0]


class Adding(ReduceFunction):
    def reduce(self, value1, value2):
        value1 + value2


class ToFirst(Partitioner):
    def partition(self, key, num_partitions):
        pass


class TestFunctionsThatNeverReturn:
    """These would drop every record, or give all of them the same key."""

    @FEW
    def test_a_filter(self, env):
        with pytest.raises(InvalidProgramError, match=r"Positive.filter\(\) never returns a value: return whether"):
            env.from_collection([1]).filter(Positive())

    @FEW
    def test_a_filter_of_a_keyed_stream(self, env):
        with pytest.raises(InvalidProgramError, match=r"Positive.filter\(\) never returns a value"):
            env.from_collection([1]).key_by(lambda value: value).filter(Positive())

    @FEW
    def test_a_filter_that_yields(self, env):
        def positive(value):
            yield value > 0

        with pytest.raises(InvalidProgramError, match=r"positive\(\) yields: return whether to keep"):
            env.from_collection([1]).filter(positive)

    @FEW
    def test_a_key_selector(self, env):
        with pytest.raises(InvalidProgramError, match=r"FirstField.get_key\(\) never returns a value: return the key"):
            env.from_collection(RECORDS).key_by(FirstField())

    @FEW
    def test_a_reduce_function(self, env):
        keyed = env.from_collection([1]).key_by(lambda value: value)
        with pytest.raises(InvalidProgramError, match=r"Adding.reduce\(\) never returns a value"):
            keyed.reduce(Adding())
        with pytest.raises(InvalidProgramError, match=r"Adding.reduce\(\) never returns a value"):
            keyed.count_window(2).reduce(Adding())

    @FEW
    def test_a_partitioner(self, env):
        with pytest.raises(InvalidProgramError, match=r"ToFirst.partition\(\) never returns a value"):
            env.from_collection([1]).partition_custom(ToFirst(), lambda value: value)

    def test_a_retry_predicate(self):
        def overloaded(error):
            "overloaded" in str(error)  # noqa: B015

        with pytest.raises(InvalidProgramError, match=r"overloaded\(\) never returns a value: return whether to try"):
            AsyncRetryStrategy.fixed_delay(3, 10, exception_predicate=overloaded)

    @FEW
    def test_one_that_only_raises_is_left_alone(self, env):
        def refuse(value):
            raise ValueError(value)

        env.from_collection([1]).filter(refuse).print()
        assert "ValueError: 1" in str(failure(env))


class TestAnswersThatAreAlwaysTrue:
    @FEW
    @pytest.mark.on_spark((1, "STREAMING"))
    @pytest.mark.parametrize("keyed", [False, True])
    def test_a_filter_that_returns_a_method_is_told_to_call_it(self, env, keyed):
        stream = env.from_collection(["a", "B"])
        (stream.key_by(lambda value: value) if keyed else stream).filter(lambda value: value.isupper).print()
        error = failure(env)
        assert "the lambda returned <built-in method isupper" in str(error)
        assert "which is true for every record: call it" in str(error)
        assert error.record == "'a'"

    @FEW
    def test_a_filter_may_return_anything_that_is_true_or_false(self, env, run):
        stream = env.from_collection([0, 1, 2, 3]).filter(lambda value: [None, 0, "", "yes"][value])
        assert run(stream) == [3]

    @FEW
    def test_a_key_that_is_a_method_is_told_to_be_called(self, env):
        env.from_collection(["a", "B"]).key_by(lambda value: value.lower).reduce(lambda a, b: a).print()
        error = failure(env)
        assert isinstance(error, KeySelectorError)
        assert "the key selector returned the method <built-in method lower" in str(error)
        assert error.record == "'a'"


class Returning(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        return Watermark(event_timestamp)

    def on_periodic_emit(self, output):
        pass


class TestWatermarks:
    @pytest.mark.variants(executors=["warm"], modes=["STREAMING"])  # a batch job asks no generator
    def test_a_generator_that_returns_its_watermark_is_told_to_emit_it(self, env):
        strategy = WatermarkStrategy.for_generator(Returning).with_timestamp_assigner(lambda value: value[1])
        env.from_collection(RECORDS).assign_timestamps_and_watermarks(strategy).print()
        error = failure(env)
        assert "Returning.on_event() returned Watermark(" in str(error)
        assert "call output.emit_watermark" in str(error)

    @pytest.mark.parametrize("timestamp", [None, "5", 1.5, True])
    def test_a_watermark_takes_a_number_of_milliseconds(self, timestamp):
        with pytest.raises(TypeError, match="takes milliseconds since the epoch as an int"):
            Watermark(timestamp)

    @FEW
    def test_true_is_no_timestamp(self, env):
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value: value[1] > 0)
        env.from_collection(RECORDS).assign_timestamps_and_watermarks(strategy).print()
        assert "returned True of type bool" in str(failure(env))


class Refused(AsyncFunction):
    async def async_invoke(self, value):
        raise ConnectionError("refused")


class Retrying(AsyncRetryStrategy):
    def __init__(self, again, pause):
        self.again, self.pause = again, pause

    def can_retry(self, current_attempts):
        return self.again if current_attempts == 1 else False

    def get_backoff_time_millis(self, current_attempts):
        return self.pause

    def get_retry_predicate(self):
        return AsyncRetryStrategy.fixed_delay(1, 1, exception_predicate=lambda error: True).get_retry_predicate()


class TestRetriesAndRestarts:
    @FEW
    @pytest.mark.parametrize(
        ("again", "pause", "message"),
        [
            (True, None, "Retrying.get_backoff_time_millis() returned None: return a number of milliseconds"),
            (len, 1, "Retrying.can_retry() returned <built-in function len>"),
        ],
    )
    def test_what_a_retry_strategy_returns_is_checked(self, env, again, pause, message):
        stream = env.from_collection([1])
        AsyncDataStream.unordered_wait_with_retry(
            stream, Refused(), Duration.of_seconds(30), Retrying(again, pause)
        ).print()
        assert message in str(failure(env))

    def test_what_a_restart_strategy_returns_is_checked(self):
        class Never(RestartStrategyConfiguration):
            def get_description(self):
                return "never"

            def create(self):
                return self

            def notify_failure(self, now_ms):
                pass

            def can_restart(self):
                return True

            def delay_ms(self):
                pass

        with pytest.raises(InvalidProgramError, match=r"Never.delay_ms\(\) returned None: return a number of mill"):
            Restarts(Never()).pause_after(PenstockError("failed"), committed=1)
