import operator
import pickle
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Duration, Time, WatermarkStrategy
from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError
from penstock.common.watermark_strategy import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    AscendingTimestampsWatermarks,
    AssignerWithPeriodicWatermarksWrapper,
    BoundedOutOfOrdernessWatermarks,
    NoWatermarksGenerator,
    TimestampAssigner,
    Watermark,
    WatermarkAlignment,
    WatermarkGenerator,
    WatermarkOutput,
)


class Collected(WatermarkOutput):
    def __init__(self):
        self.watermarks = []

    def emit_watermark(self, watermark):
        self.watermarks.append(watermark.timestamp)

    def mark_idle(self):
        self.watermarks.append("idle")

    def mark_active(self):
        self.watermarks.append("active")


def watermarks(generator, timestamps):
    output = Collected()
    for timestamp in timestamps:
        generator.on_event("event", timestamp, output)
        generator.on_periodic_emit(output)
    return output.watermarks


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Punctuated(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output):
        pass


def test_bounded_out_of_orderness_trails_the_largest_timestamp():
    generator = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10)).create_generator()
    assert watermarks(generator, [100, 90, 120]) == [89, 89, 109]


def test_monotonous_timestamps_leave_room_for_equal_ones():
    generator = WatermarkStrategy.for_monotonous_timestamps().create_generator()
    assert watermarks(generator, [1, 2, 2]) == [0, 1, 1]


@pytest.mark.parametrize("generator", [BoundedOutOfOrdernessWatermarks(60_000), AscendingTimestampsWatermarks()])
def test_no_watermark_before_the_first_record(generator):
    output = Collected()
    generator.on_periodic_emit(output)
    assert output.watermarks == []


@given(st.lists(st.integers(MIN_WATERMARK, MAX_WATERMARK)), st.integers(0, 2**63))
def test_bounded_watermarks_never_go_back_nor_out_of_range(timestamps, bound):
    emitted = watermarks(BoundedOutOfOrdernessWatermarks(bound), timestamps)
    assert emitted == sorted(emitted)
    assert all(MIN_WATERMARK <= watermark <= MAX_WATERMARK for watermark in emitted)


def test_no_watermarks_means_none():
    assert watermarks(WatermarkStrategy.no_watermarks().create_generator(), [1, 2, 3]) == []


@pytest.mark.parametrize(
    ("length", "bound"),
    [(Duration.of_seconds(1), 1_000), (Time.seconds(1), 1_000), (timedelta(seconds=1), 1_000), (5, 5)],
)
def test_bounds_are_any_length_of_time(length, bound):
    generator = WatermarkStrategy.for_bounded_out_of_orderness(length).create_generator()
    assert generator.out_of_orderness_millis == bound


def test_negative_bounds_are_refused_where_the_job_is_defined():
    with pytest.raises(InvalidProgramError, match="negative"):
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(-1))


@pytest.mark.parametrize("timeout", [0, -1, Duration.of_nanos(999)])
def test_idle_timeouts_below_a_millisecond_are_refused(timeout):
    with pytest.raises(InvalidProgramError, match="idle timeout"):
        WatermarkStrategy.no_watermarks().with_idleness(timeout)


def test_with_methods_keep_everything_in_any_order():
    base = WatermarkStrategy.for_bounded_out_of_orderness(7)
    steps = {
        "assigner": lambda strategy: strategy.with_timestamp_assigner(SecondField()),
        "idleness": lambda strategy: strategy.with_idleness(Duration.of_seconds(1)),
        "alignment": lambda strategy: strategy.with_watermark_alignment("group", Duration.of_seconds(2)),
    }
    for order in (
        ["assigner", "idleness", "alignment"],
        ["alignment", "assigner", "idleness"],
        ["idleness", "alignment", "assigner"],
    ):
        strategy = base
        for step in order:
            strategy = steps[step](strategy)
        assert strategy.timestamp_assigner.extract_timestamp(("a", 42), 0) == 42
        assert strategy.idle_timeout == 1_000
        assert strategy.alignment == WatermarkAlignment("group", 2_000, 1_000)
        assert strategy.create_generator().out_of_orderness_millis == 7


def test_with_methods_leave_the_original_alone():
    base = WatermarkStrategy.no_watermarks()
    base.with_idleness(5)
    assert base.idle_timeout is None
    with pytest.raises(AttributeError):
        base.idle_timeout = 5


@pytest.mark.parametrize(("drift", "interval"), [(-1, 1), (1, 0)])
def test_wrong_alignments_are_refused(drift, interval):
    with pytest.raises(InvalidProgramError, match="alignment"):
        WatermarkStrategy.no_watermarks().with_watermark_alignment("group", drift, interval)


class DuckTyped:
    def extract_timestamp(self, value, record_timestamp):
        return value[1] + record_timestamp


@pytest.mark.parametrize(
    ("assigner", "expected"),
    [
        (SecondField(), 42),
        (lambda value, record_timestamp: value[1] + record_timestamp, 142),
        (lambda value: value[1], 42),
        (lambda value, position=1: value[position], 42),
        (lambda *args: args[0][1] + args[1], 142),
        (operator.itemgetter(1), 42),
        (len, 2),
        (DuckTyped(), 142),
    ],
)
def test_assigners_are_objects_or_functions_of_one_or_two_arguments(assigner, expected):
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(assigner)
    assert strategy.timestamp_assigner.extract_timestamp(("a", 42), 100) == expected


def test_what_is_no_assigner_is_refused():
    with pytest.raises(InvalidProgramError, match="timestamp assigner"):
        WatermarkStrategy.no_watermarks().with_timestamp_assigner(5)


@pytest.mark.parametrize("factory", [lambda ctx: Punctuated(), Punctuated])
def test_own_generators_are_made_anew_for_each_split(factory):
    strategy = WatermarkStrategy.for_generator(factory)
    first, second = strategy.create_generator(), strategy.create_generator()
    assert first is not second
    assert watermarks(first, [3, 5]) == [3, 5]


def test_a_generator_class_may_take_the_context():
    class NeedsContext(Punctuated):
        def __init__(self, context):
            self.metrics = context.get_metric_group()

    assert WatermarkStrategy.for_generator(NeedsContext).create_generator().metrics is None


def test_an_instance_instead_of_a_factory_is_refused():
    with pytest.raises(InvalidProgramError, match="lambda ctx"):
        WatermarkStrategy.for_generator(Punctuated())


def test_a_factory_that_makes_no_generator_is_refused():
    with pytest.raises(InvalidProgramError, match="WatermarkGenerator"):
        WatermarkStrategy.for_generator(lambda ctx: None).create_generator()


def test_ingestion_time_uses_the_processing_time_it_is_given():
    assigner = WatermarkStrategy.for_ingestion_time().timestamp_assigner
    assert assigner.uses_processing_time
    assert assigner.extract_timestamp("event", 1_234) == 1_234


@pytest.mark.parametrize(
    "strategy",
    [
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField()).with_idleness(5),
        WatermarkStrategy.for_bounded_out_of_orderness(5),
        WatermarkStrategy.no_watermarks(),
        WatermarkStrategy.for_ingestion_time(),
        WatermarkStrategy.for_generator(Punctuated),
    ],
)
def test_strategies_survive_pickling(strategy):
    twin = pickle.loads(pickle.dumps(strategy))
    assert twin.idle_timeout == strategy.idle_timeout
    assert type(twin.create_generator()) is type(strategy.create_generator())
    assert type(twin.timestamp_assigner) is type(strategy.timestamp_assigner)


@pytest.mark.parametrize(
    "generator", [BoundedOutOfOrdernessWatermarks(5), AscendingTimestampsWatermarks(), NoWatermarksGenerator()]
)
def test_generators_survive_pickling_with_what_they_saw(generator):
    watermarks(generator, [100])
    twin = pickle.loads(pickle.dumps(generator))
    assert watermarks(twin, [50]) == watermarks(generator, [50])


def test_watermarks_are_values_clamped_to_64_bits():
    assert Watermark(5) == Watermark(5) != Watermark(6)
    assert Watermark(5) < Watermark(6)
    assert Watermark(-(2**80)) == Watermark.MIN
    assert Watermark(2**80) == Watermark.MAX == Watermark.MAX_WATERMARK
    assert Watermark(5).get_timestamp() == 5
    assert pickle.loads(pickle.dumps(Watermark(5))) == Watermark(5)


def test_java_assigners_are_refused():
    with pytest.raises(UnsupportedFeatureError, match="for_generator"):
        AssignerWithPeriodicWatermarksWrapper(object())
