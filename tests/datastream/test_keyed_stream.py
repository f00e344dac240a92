import pytest

from penstock.common import Time, Types, WatermarkStrategy
from penstock.common.errors import InvalidProgramError, KeySelectorError, UnsupportedFeatureError
from penstock.datastream import (
    AggregateFunction,
    CoGroupFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeyedStream,
    MapFunction,
    OutputTag,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
)
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import CountEvictor, CountTrigger, TumblingEventTimeWindows

READINGS = [("a", 1), ("b", 5), ("a", 3), ("a", 2)]
TEN_MS = TumblingEventTimeWindows.of(Time.milliseconds(10))


@pytest.fixture
def readings(running_env):
    return running_env.from_collection(READINGS).set_parallelism(1)


@pytest.fixture
def timed(readings):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Time.milliseconds(10))
    return readings.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda value: value[1]))


class Counter:
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def increment(self):
        self.count.update(self.count.value() + 1)
        return self.count.value()


class CountMap(Counter, MapFunction):
    def map(self, value):
        return value[0], self.increment()


class FirstOnly(Counter, FilterFunction):
    def filter(self, value):
        return self.increment() == 1


class Numbered(Counter, FlatMapFunction):
    def flat_map(self, value):
        yield value[0], self.increment()


class CountProcess(Counter, KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.get_current_key(), self.increment()


def test_functions_on_a_keyed_stream_have_state_per_key(readings, collected):
    counts = [("a", 1), ("a", 2), ("a", 3), ("b", 1)]
    keyed = readings.key_by(0)
    assert sorted(collected(keyed.map(CountMap()))) == counts
    assert sorted(collected(keyed.flat_map(Numbered()))) == counts
    assert sorted(collected(keyed.process(CountProcess()))) == counts
    assert sorted(collected(keyed.filter(FirstOnly()))) == [("a", 1), ("b", 5)]


def test_plain_functions_on_a_keyed_stream_need_no_state(readings):
    keyed = readings.key_by(0)
    for stream in (keyed.map(str), keyed.filter(bool), keyed.flat_map(list)):
        assert not stream.get_transformation().operator.keyed


def test_rolling_aggregates_emit_one_update_per_record(readings, collected):
    keyed = readings.key_by("f0")

    def of_a(stream):
        return [value for value in collected(stream) if value[0] == "a"]

    assert of_a(keyed.sum(1)) == [("a", 1), ("a", 4), ("a", 6)]
    assert of_a(keyed.min("f1")) == [("a", 1), ("a", 1), ("a", 1)]
    assert of_a(keyed.max(1)) == [("a", 1), ("a", 3), ("a", 3)]
    assert of_a(keyed.min_by(1)) == [("a", 1), ("a", 1), ("a", 1)]
    assert of_a(keyed.max_by(1)) == [("a", 1), ("a", 3), ("a", 3)]
    assert of_a(keyed.reduce(lambda a, b: (a[0], a[1] * 10 + b[1]))) == [("a", 1), ("a", 13), ("a", 132)]


def test_a_process_function_without_keys_is_fine_on_a_keyed_stream(readings, collected):
    class Plain(ProcessFunction):
        def process_element(self, value, ctx):
            yield value

    assert sorted(collected(readings.key_by(0).process(Plain()))) == sorted(READINGS)


@pytest.mark.parametrize(
    "call",
    [
        lambda keyed: keyed.process(lambda value: value),
        lambda keyed: keyed.reduce(5),
        lambda keyed: keyed.sum(-1),
        lambda keyed: keyed.map(FirstOnly()),
        lambda keyed: keyed.window(5),
        lambda keyed: keyed.count_window(0),
        lambda keyed: keyed.interval_join(5),
    ],
)
def test_wrong_arguments_are_refused(env, call):
    with pytest.raises(InvalidProgramError):
        call(env.from_elements(("a", 1)).key_by(0))


@pytest.mark.parametrize(
    "call",
    [
        lambda keyed: keyed.name("x"),
        lambda keyed: keyed.uid("x"),
        lambda keyed: keyed.set_uid_hash("0" * 32),
        lambda keyed: keyed.set_parallelism(1),
        lambda keyed: keyed.set_max_parallelism(1),
        lambda keyed: keyed.force_non_parallel(),
        lambda keyed: keyed.set_buffer_timeout(1),
        lambda keyed: keyed.start_new_chain(),
        lambda keyed: keyed.disable_chaining(),
        lambda keyed: keyed.slot_sharing_group("x"),
        lambda keyed: keyed.cache(),
        lambda keyed: keyed.shuffle(),
        lambda keyed: keyed.rebalance(),
        lambda keyed: keyed.rescale(),
        lambda keyed: keyed.broadcast(),
        lambda keyed: keyed.forward(),
        lambda keyed: keyed.global_(),
        lambda keyed: keyed.partition_custom(lambda key, n: 0, lambda value: value),
        lambda keyed: keyed.get_name(),
    ],
)
def test_what_makes_no_sense_before_the_next_operator_is_refused(env, call):
    with pytest.raises(InvalidProgramError):
        call(env.from_elements(("a", 1)).key_by(0))


def test_key_by_again_replaces_the_key(env, nodes):
    again = env.from_elements(("a", 1)).key_by(0).key_by(1)
    assert isinstance(again, KeyedStream)
    again.sum(1).name("sum").print()
    (edge,) = nodes(env)["sum"].inputs
    assert edge.partitioner.key_selector(("a", 1)) == 1


def test_a_keyed_stream_can_be_printed_collected_and_united(readings, running_env, collected, capsys):
    keyed = readings.key_by(lambda value: value[0], key_type=Types.STRING())
    assert sorted(collected(keyed)) == sorted(READINGS)
    assert sorted(collected(keyed.union(readings))) == sorted(READINGS * 2)
    keyed.print("k").set_parallelism(1)
    running_env.execute()
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_the_key_type_may_be_the_last_argument(env):
    keyed = env.from_elements(("a", 1)).key_by(0, 1, Types.STRING())
    assert keyed.get_key_type() == Types.STRING()
    assert keyed.get_key_selector()(("a", 1)) == ("a", 1)


def test_a_failing_key_selector_is_named(readings, collected):
    with pytest.raises(KeySelectorError):
        collected(readings.key_by(7).sum(1))


# Windows and joins


class Total(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class WithWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().end, list(elements)


class AllWithWindow(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield context.window().end, sorted(elements)


def test_windows_by_key(timed, collected):
    windows = timed.key_by(0).window(TEN_MS)
    assert sorted(collected(windows.sum(1))) == [("a", 6), ("b", 5)]
    assert sorted(collected(timed.key_by(0).window(TEN_MS).max_by(1))) == [("a", 3), ("b", 5)]
    assert sorted(collected(timed.key_by(0).window(TEN_MS).aggregate(Total()))) == [5, 6]
    result = timed.key_by(0).window(TEN_MS).aggregate(Total(), WithWindow())
    assert sorted(collected(result)) == [("a", 10, [6]), ("b", 10, [5])]
    result = timed.key_by(0).window(TEN_MS).process(WithWindow())
    assert sorted(collected(result))[1] == ("b", 10, [("b", 5)])
    reduced = timed.key_by(0).window(TEN_MS).reduce(lambda a, b: (a[0], a[1] + b[1]))
    assert reduced.get_name() == f"Window({TEN_MS!r}, Reduce)"
    assert sorted(collected(reduced)) == [("a", 6), ("b", 5)]


def test_windows_over_all_records_run_in_one_subtask(timed, collected):
    summed = timed.window_all(TEN_MS).sum(1)
    assert summed.get_parallelism() == 1
    assert [value[1] for value in collected(summed)] == [11]
    assert collected(timed.window_all(TEN_MS).process(AllWithWindow())) == [(10, sorted(READINGS))]
    assert collected(timed.window_all(TEN_MS).aggregate(Total(), AllWithWindow())) == [(10, [11])]


def test_count_windows(readings, collected):
    assert collected(readings.key_by(0).count_window(2).sum(1)) == [("a", 4)]
    assert [total for _, total in collected(readings.count_window_all(2).sum(1))] == [6, 5]
    assert [total for _, total in collected(readings.count_window_all(2, 1).sum(1))] == [1, 6, 8, 5]


def test_windows_take_trigger_evictor_and_lateness(timed, collected):
    late = OutputTag("late")
    windows = timed.key_by(0).window(TEN_MS).trigger(CountTrigger.of(3)).evictor(CountEvictor.of(2))
    stream = windows.allowed_lateness(Time.seconds(1)).side_output_late_data(late).sum(1)
    assert collected(stream) == [("a", 5)]
    assert collected(stream.get_side_output(late)) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda windows: windows.trigger(5),
        lambda windows: windows.evictor(5),
        lambda windows: windows.allowed_lateness(-1),
        lambda windows: windows.side_output_late_data("late"),
        lambda windows: windows.process(AllWithWindow()),
        lambda windows: windows.reduce(Total()),
        lambda windows: windows.aggregate(5),
    ],
)
def test_wrong_parts_of_a_window_are_refused(env, call):
    with pytest.raises(InvalidProgramError):
        call(env.from_elements(("a", 1)).key_by(0).window(TEN_MS))


def test_window_join_gives_every_pair_of_a_key_and_window(timed, collected):
    joined = timed.join(timed).where(0).equal_to("f0").window(TEN_MS).apply(lambda left, right: (left[1], right[1]))
    assert sorted(collected(joined)) == sorted([(x, y) for x in (1, 2, 3) for y in (1, 2, 3)] + [(5, 5)])


def test_co_group_gives_both_sides_of_a_key_and_window(timed, collected):
    class Sizes(CoGroupFunction):
        def co_group(self, first, second):
            yield len(list(first)), len(list(second))

    others = timed.filter(lambda value: value[0] == "a")
    grouped = timed.co_group(others).where(0).equal_to(0).window(TEN_MS).apply(Sizes())
    assert sorted(collected(grouped)) == [(1, 0), (3, 3)]


class Pairs(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left[1], right[1]


def test_interval_join_gives_pairs_within_bounds(timed, collected):
    keyed = timed.key_by(0)
    assert sorted(collected(keyed.interval_join(keyed).between(0, 1).process(Pairs()))) == [
        (1, 1),
        (1, 2),
        (2, 2),
        (2, 3),
        (3, 3),
        (5, 5),
    ]
    joined = keyed.interval_join(keyed).in_event_time().between(Time.milliseconds(-1), Time.milliseconds(1))
    strict = joined.lower_bound_exclusive().upper_bound_exclusive().process(Pairs())
    assert sorted(collected(strict)) == [(1, 1), (2, 2), (3, 3), (5, 5)]


def test_wrong_interval_joins_are_refused(env):
    keyed = env.from_elements(("a", 1)).key_by(0)
    with pytest.raises(InvalidProgramError, match="lower bound"):
        keyed.interval_join(keyed).between(2, 1)
    with pytest.raises(UnsupportedFeatureError, match="event time"):
        keyed.interval_join(keyed).in_processing_time()
    with pytest.raises(InvalidProgramError, match="key_by"):
        keyed.interval_join(env.from_elements(1))
    with pytest.raises(InvalidProgramError, match="OutputTag"):
        keyed.interval_join(keyed).between(1, 2).side_output_left_late_data("late")
