"""Time to live of keyed state (rule A20)."""

import pytest
from support import script

from penstock.common import Time, Types
from penstock.datastream import KeyedProcessFunction, RuntimeContext
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueState,
    ValueStateDescriptor,
)
from penstock.datastream.window import GlobalWindows, Trigger, TriggerResult
from penstock.state_processor import SavepointReader

WRITE = StateTtlConfig.UpdateType.OnCreateAndWrite
READ = StateTtlConfig.UpdateType.OnReadAndWrite


class Commands(KeyedProcessFunction):
    """A record is (command, argument...); the result of the command on the state is emitted."""

    def __init__(self, kind, update_type=WRITE, *, return_expired=False, cleanup=None):
        self.kind = kind
        builder = StateTtlConfig.new_builder(Time.milliseconds(100)).set_update_type(update_type)
        if cleanup is not None:
            cleanup(builder)
        if return_expired:
            builder.return_expired_if_not_cleaned_up()
        self.config = builder.build()

    def open(self, runtime_context: RuntimeContext):
        from test_keyed_state import Average

        descriptors = {
            "value": (runtime_context.get_state, ValueStateDescriptor("s", Types.INT())),
            "list": (runtime_context.get_list_state, ListStateDescriptor("s", Types.INT())),
            "map": (runtime_context.get_map_state, MapStateDescriptor("s", Types.STRING(), Types.INT())),
            "reducing": (runtime_context.get_reducing_state, ReducingStateDescriptor("s", max, Types.INT())),
            "aggregating": (
                runtime_context.get_aggregating_state,
                AggregatingStateDescriptor("s", Average(), Types.TUPLE([Types.INT(), Types.INT()])),
            ),
        }
        get, descriptor = descriptors[self.kind]
        descriptor.enable_time_to_live(self.config)
        self.state = get(descriptor)

    def process_element(self, value, ctx):
        result = getattr(self.state, value[0])(*value[1:])
        if value[0] in ("get", "items", "keys", "values") and not isinstance(result, (int, float, type(None))):
            result = list(result)
        if value[0] in ("value", "get", "items", "keys", "contains", "is_empty"):
            yield result


@pytest.fixture
def state(hand):
    """Runs commands on the state of one key, at times of its own."""

    class Job:
        def start(self, *arguments, **options):
            self.source = script(hand.env, [], bounded=False)
            hand.watch(self.source.key_by(lambda v: 0).process(Commands(*arguments, **options)))

        def at(self, now, *commands):
            self.source._source.source.add(*commands)
            return hand.advance(now - hand.clock.now)

    return Job()


def test_a_value_expires_a_lifetime_after_it_was_written(state):
    state.start("value")
    assert state.at(0, ("update", 1), ("value",)) == [1]
    assert state.at(99, ("value",)) == [1]
    assert state.at(100, ("value",)) == [None]
    assert state.at(120, ("update", 2)) == []
    assert state.at(200, ("update", 3)) == []
    assert state.at(299, ("value",)) == [3]
    assert state.at(300, ("value",)) == [None]


def test_a_read_gives_a_value_a_new_life_if_so_configured(state):
    state.start("value", READ)
    state.at(0, ("update", 1))
    assert state.at(90, ("value",)) == [1]
    assert state.at(180, ("value",)) == [1]
    assert state.at(280, ("value",)) == [None]


def test_an_expired_value_may_be_returned_until_it_is_cleaned_up(state):
    state.start("value", return_expired=True)
    state.at(0, ("update", 1))
    assert state.at(150, ("value",)) in ([1], [None])  # whether it was cleaned up already is not defined
    assert state.at(151, ("value",)) == [None]


def test_elements_of_a_list_expire_one_by_one(state):
    state.start("list")
    state.at(0, ("add", 1))
    state.at(50, ("add", 2))
    assert state.at(99, ("get",)) == [[1, 2]]
    assert state.at(100, ("get",)) == [[2]]
    assert state.at(149, ("add", 3), ("get",)) == [[2, 3]]
    assert state.at(150, ("get",)) == [[3]]
    assert state.at(249, ("get",)) == [[]]


def test_entries_of_a_map_expire_one_by_one(state):
    state.start("map")
    state.at(0, ("put", "x", 1))
    state.at(50, ("put", "y", 2))
    assert state.at(99, ("get", "x"), ("keys",)) == [1, ["x", "y"]]
    assert state.at(100, ("contains", "x"), ("items",), ("is_empty",)) == [False, [("y", 2)], False]
    assert state.at(150, ("get", "y"), ("is_empty",)) == [None, True]


def test_a_read_of_a_map_entry_renews_that_entry_only(state):
    state.start("map", READ)
    state.at(0, ("put", "x", 1), ("put", "y", 2))
    assert state.at(60, ("get", "x")) == [1]
    assert state.at(120, ("keys",)) == [["x"]]


def test_to_ask_whether_a_map_has_an_entry_is_a_read_and_renews_it(state):
    state.start("map", READ)
    state.at(0, ("put", "x", 1), ("put", "y", 2))
    assert state.at(60, ("contains", "x"), ("is_empty",)) == [True, False]
    assert state.at(120, ("contains", "x"), ("contains", "y")) == [True, False]
    assert state.at(200, ("keys",)) == [["x"]]


def test_expired_elements_of_a_list_may_be_returned_with_those_that_live(state):
    state.start("list", return_expired=True)
    state.at(0, ("add", 1))
    state.at(50, ("add", 2))
    assert state.at(100, ("get",), ("get",)) in ([[1, 2]] * 2, [[2]] * 2)
    assert state.at(150, ("get",))[-1] in ([1, 2], [2], [])
    assert state.at(151, ("get",)) == [[]]


@pytest.mark.parametrize(("kind", "three", "nine"), [("reducing", 3, 9), ("aggregating", 2.0, 9.0)])
def test_reducing_and_aggregating_state_live_from_their_last_update(state, kind, three, nine):
    state.start(kind)
    state.at(0, ("add", 1))
    assert state.at(80, ("add", 3), ("get",)) == [three]
    assert state.at(170, ("get",)) == [three]
    assert state.at(180, ("get",)) == [None]
    assert state.at(190, ("add", 9), ("get",)) == [nine]  # what had expired is not added to


def test_a_cleared_state_is_gone_at_once(state):
    state.start("value")
    assert state.at(0, ("update", 1), ("clear",), ("value",)) == [None]


def test_expired_state_is_removed_from_the_pages(hand):
    """Nothing may grow forever: the page forgets keys whose state has expired when it is written again."""
    source = script(hand.env, [(n, ("update", n)) for n in range(50)], bounded=False)

    class PerKey(Commands):
        def process_element(self, value, ctx):
            return super().process_element(value[1], ctx)

    hand.watch(source.key_by(0).process(PerKey("value")))
    hand.step()
    before = hand.job.progress.vertices[1].state_size
    hand.clock.advance(1000)
    source._source.source.add(*[(n, ("update", n)) for n in range(1000, 1004)])
    hand.step()
    assert hand.job.progress.vertices[1].state_size < before


CLEANUPS = {
    "default": (lambda builder: builder, True),
    "none": (lambda builder: builder.disable_cleanup_in_background(), False),
    "snapshots": (lambda builder: builder.disable_cleanup_in_background().cleanup_full_snapshot(), False),
    "incremental": (lambda builder: builder.disable_cleanup_in_background().cleanup_incrementally(10, False), True),
    "files": (lambda builder: builder.disable_cleanup_in_background().cleanup_in_rocksdb_compact_filter(1000), True),
}


@pytest.mark.parametrize(("cleanup", "removes"), CLEANUPS.values(), ids=CLEANUPS)
def test_in_the_background_state_is_removed_unless_that_is_switched_off(hand, cleanup, removes):
    source = script(hand.env, [(n, ("update", n)) for n in range(50)], bounded=False)

    class PerKey(Commands):
        def process_element(self, value, ctx):
            return super().process_element(value[1], ctx)

    hand.watch(source.key_by(0).process(PerKey("value", cleanup=cleanup)))
    hand.step()
    before = hand.job.progress.vertices[1].state_size
    hand.clock.advance(1000)
    source._source.source.add(*[(n, ("update", n)) for n in range(1000, 1004)])
    hand.step()
    assert (hand.job.progress.vertices[1].state_size < before) is removes


class Sometimes(Trigger):
    """Counts the elements of the last 100 ms in a state of each kind, and keeps none of them."""

    def on_element(self, element, timestamp, window, ctx):
        ttl = StateTtlConfig.new_builder(Time.milliseconds(100)).build()
        for descriptor in (
            ValueStateDescriptor("value", Types.INT()),
            ListStateDescriptor("list", Types.INT()),
            MapStateDescriptor("map", Types.INT(), Types.INT()),
            ReducingStateDescriptor("reducing", max, Types.INT()),
        ):
            descriptor.enable_time_to_live(ttl)
            state = ctx.get_partitioned_state(descriptor)
            if isinstance(state, MapState):
                state.put(1, 1)
            elif isinstance(state, ValueState):
                state.update(1)
            else:
                state.add(1)
        return TriggerResult.PURGE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        raise NotImplementedError

    def clear(self, window, ctx):
        pass


def test_expired_state_of_windows_and_triggers_is_removed_too(hand, tmp_path):
    """A global window is never cleaned up: what its trigger keeps for a time must go by itself."""
    source = script(hand.env, range(50), bounded=False)
    windows = source.key_by(lambda n: n).window(GlobalWindows.create()).trigger(Sometimes())
    hand.watch(windows.reduce(lambda a, b: a).uid("windows"))
    hand.step()
    before = hand.job.progress.vertices[1].state_size
    hand.clock.advance(1000)
    source._source.source.add(*range(1000, 1050))
    hand.step()
    assert hand.job.progress.vertices[1].state_size < before * 1.5
    reader = SavepointReader.read(hand.job.savepoint(str(tmp_path)))
    for name in ("value", "list", "map", "reducing"):
        assert {key for key, *_ in reader.read_window_state("windows", name)} == set(range(1000, 1050))
