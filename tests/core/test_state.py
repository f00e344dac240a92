import pickle
from datetime import timedelta

import pytest

from penstock.common import Duration, Time, Types
from penstock.common.errors import InvalidProgramError
from penstock.core.functions import AggregateFunction, ReduceFunction
from penstock.core.state import (
    AggregatingStateDescriptor,
    BroadcastState,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReadOnlyBroadcastState,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)


class Sum(ReduceFunction):
    def reduce(self, value1, value2):
        return value1 + value2


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


MAKERS = [
    ValueStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    lambda name: ReducingStateDescriptor(name, Sum()),
    lambda name: AggregatingStateDescriptor(name, Count()),
]


@pytest.mark.parametrize("make", MAKERS)
def test_types_are_optional_and_names_are_kept(make):
    descriptor = make("s")
    assert descriptor.get_name() == descriptor.name == "s"
    assert descriptor.type_info is None
    assert descriptor.ttl_config is None
    assert pickle.loads(pickle.dumps(descriptor)) == descriptor


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", ["", None, 5])
def test_empty_names_and_names_that_are_no_strings_are_refused(make, name):
    with pytest.raises(InvalidProgramError, match="name of a state"):
        make(name)


def test_types_must_be_types():
    with pytest.raises(InvalidProgramError, match="'count'"):
        ValueStateDescriptor("count", int)


def test_descriptors_know_their_types():
    assert ValueStateDescriptor("v", Types.INT()).type_info == Types.INT()
    assert ListStateDescriptor("l", Types.INT()).type_info == Types.LIST(Types.INT())
    assert ListStateDescriptor("l", Types.INT()).elem_type_info == Types.INT()
    descriptor = MapStateDescriptor("m", Types.STRING(), Types.INT())
    assert descriptor.type_info == Types.MAP(Types.STRING(), Types.INT())
    assert (descriptor.key_type_info, descriptor.value_type_info) == (Types.STRING(), Types.INT())
    assert MapStateDescriptor("m", Types.STRING()).type_info is None


def test_value_state_may_have_a_default():
    assert ValueStateDescriptor("v").default_value is None
    assert ValueStateDescriptor("v", Types.INT(), 0).default_value == 0


@pytest.mark.parametrize("function", [Sum(), lambda a, b: a + b])
def test_reducing_state_takes_a_function_object_or_a_callable(function):
    assert ReducingStateDescriptor("r", function, Types.INT()).get_reduce_function().reduce(1, 2) == 3


def test_functions_of_the_wrong_kind_are_refused():
    with pytest.raises(InvalidProgramError, match="ReduceFunction"):
        ReducingStateDescriptor("r", 5)
    with pytest.raises(InvalidProgramError, match="AggregateFunction"):
        AggregatingStateDescriptor("a", lambda a, b: a)


def test_aggregating_state_keeps_its_function():
    assert AggregatingStateDescriptor("a", Count(), Types.INT()).get_agg_function().create_accumulator() == 0


def test_descriptors_of_one_kind_and_name_are_equal():
    assert ValueStateDescriptor("v") == ValueStateDescriptor("v", Types.INT())
    assert hash(ValueStateDescriptor("v")) == hash(ValueStateDescriptor("v"))
    assert ValueStateDescriptor("v") != ValueStateDescriptor("w")
    assert ValueStateDescriptor("v") != ListStateDescriptor("v")
    assert repr(ValueStateDescriptor("v")) == "ValueStateDescriptor('v')"


def test_ttl_defaults_are_flinks():
    config = StateTtlConfig.new_builder(Time.hours(1)).build()
    assert config.get_ttl() == Time.hours(1)
    assert config.ttl_millis == 3_600_000
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
    assert config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
    assert config.is_enabled()
    cleanup = config.get_cleanup_strategies()
    assert cleanup.is_cleanup_in_background()
    assert not cleanup.in_full_snapshot()
    assert cleanup.get_incremental_cleanup_strategy().get_cleanup_size() == 5
    assert not cleanup.get_incremental_cleanup_strategy().run_cleanup_for_every_record()
    assert cleanup.get_rocksdb_compact_filter_cleanup_strategy().get_query_time_after_num_entries() == 1000


@pytest.mark.parametrize("ttl", [timedelta(seconds=2), 2_000], ids=["timedelta", "milliseconds"])
def test_ttl_is_any_length_of_time(ttl):
    config = StateTtlConfig.new_builder(ttl).build()
    assert config.ttl_millis == config.get_ttl().to_milliseconds() == 2_000


@pytest.mark.parametrize("config", [None, StateTtlConfig.new_builder(Time.hours(1))], ids=["none", "not built"])
def test_ttl_that_is_none_is_refused_at_once(config):
    with pytest.raises(
        InvalidProgramError, match=r"the time to live of state 'v' must be the result of .*build\(\), got"
    ):
        ValueStateDescriptor("v").enable_time_to_live(config)


def test_ttl_builder_sets_everything():
    config = (
        StateTtlConfig.new_builder(Time.hours(1))
        .set_ttl(Duration.of_seconds(5))
        .update_ttl_on_read_and_write()
        .return_expired_if_not_cleaned_up()
        .use_processing_time()
        .cleanup_full_snapshot()
        .cleanup_incrementally(10, True)
        .cleanup_in_rocksdb_compact_filter(7, Duration.of_days(1))
        .disable_cleanup_in_background()
        .build()
    )
    assert config.ttl_millis == 5_000
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
    cleanup = config.get_cleanup_strategies()
    assert not cleanup.is_cleanup_in_background()
    assert cleanup.in_full_snapshot()
    assert cleanup.get_incremental_cleanup_strategy().get_cleanup_size() == 10
    assert cleanup.get_rocksdb_compact_filter_cleanup_strategy().get_periodic_compaction_time() == Duration.of_days(1)
    assert pickle.loads(pickle.dumps(config)).get_update_type() is config.get_update_type()


def test_without_background_cleanup_there_is_no_default_strategy():
    cleanup = StateTtlConfig.new_builder(Time.hours(1)).disable_cleanup_in_background().build().get_cleanup_strategies()
    assert cleanup.get_incremental_cleanup_strategy() is None
    assert cleanup.get_rocksdb_compact_filter_cleanup_strategy() is None


def test_builder_shortcuts_undo_each_other():
    builder = (
        StateTtlConfig.new_builder(Time.hours(1)).update_ttl_on_read_and_write().return_expired_if_not_cleaned_up()
    )
    config = builder.update_ttl_on_create_and_write().never_return_expired().build()
    assert config.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
    assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired


@pytest.mark.parametrize("ttl", [Time.milliseconds(0), Time.seconds(-1), Duration.of_nanos(5)])
def test_a_time_to_live_below_a_millisecond_is_refused(ttl):
    with pytest.raises(InvalidProgramError, match="time to live"):
        StateTtlConfig.new_builder(ttl).build()


def test_a_cleanup_of_no_entries_is_refused():
    with pytest.raises(InvalidProgramError, match="clean up"):
        StateTtlConfig.new_builder(Time.hours(1)).cleanup_incrementally(0, False)


def test_ttl_is_enabled_on_the_descriptor_unless_disabled():
    descriptor = ValueStateDescriptor("v")
    config = StateTtlConfig.new_builder(Time.hours(1)).build()
    descriptor.enable_time_to_live(config)
    assert descriptor.ttl_config is config
    disabled = StateTtlConfig.new_builder(Time.hours(1)).set_update_type(StateTtlConfig.UpdateType.Disabled).build()
    descriptor.enable_time_to_live(disabled)
    assert descriptor.ttl_config is None


class DictState(MapState, BroadcastState):
    """The smallest map state there can be."""

    def __init__(self):
        self.entries = {}

    def get(self, key):
        return self.entries.get(key)

    def contains(self, key):
        return key in self.entries

    def items(self):
        return self.entries.items()

    def keys(self):
        return self.entries.keys()

    def values(self):
        return self.entries.values()

    def is_empty(self):
        return not self.entries

    def put(self, key, value):
        self.entries[key] = value

    def put_all(self, dict_value):
        self.entries.update(dict_value)

    def remove(self, key):
        self.entries.pop(key, None)

    def clear(self):
        self.entries.clear()


def test_map_state_acts_as_a_dict():
    state = DictState()
    state["a"] = 1
    state["b"] = 2
    del state["b"]
    assert "a" in state
    assert "b" not in state
    assert state["a"] == 1
    assert state["b"] is None
    assert list(state) == ["a"]


def test_read_only_broadcast_state_cannot_be_written():
    for name in ("put", "put_all", "remove", "__setitem__", "__delitem__"):
        assert not hasattr(ReadOnlyBroadcastState, name)
        assert hasattr(BroadcastState, name)


def test_list_state_is_iterable():
    class Three(ListState):
        def get(self):
            return [1, 2, 3]

        add = add_all = update = clear = lambda self, *args: None

    assert list(Three()) == [1, 2, 3]
