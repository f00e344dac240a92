"""Partitioners split batches: every record once, in order, with its timestamp (rule 5.5)."""

import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.errors import InvalidProgramError, KeySelectorError
from penstock.runtime.exchange.partitioner import (
    BroadcastPartitioner,
    CustomPartitioner,
    ForwardPartitioner,
    GlobalPartitioner,
    KeyGroupPartitioner,
    RebalancePartitioner,
    RescalePartitioner,
    ShufflePartitioner,
    rescale_targets,
)
from penstock.runtime.plan.job_vertex import JobEdge
from penstock.runtime.records.key_groups import key_group_for, subtask_for_key_group

SINGLE = {
    "global": GlobalPartitioner,
    "rebalance": RebalancePartitioner,
    "rescale": RescalePartitioner,
    "shuffle": ShufflePartitioner,
    "key": lambda: KeyGroupPartitioner(lambda value: value % 7),
    "custom": lambda: CustomPartitioner(lambda key, channels: key % channels, lambda value: value),
}

BATCHES = st.lists(st.lists(st.integers(), max_size=12), max_size=5)


def ready(partitioner, sender=0, senders=1, channels=4):
    partitioner.setup(sender, senders, channels, 128, "target")
    return partitioner


def routed(partitioner, batches, *, stamped=False, first_batch=1):
    """The records of each channel: (value, timestamp)."""
    channels = {}
    for number, values in enumerate(batches, first_batch):
        partitioner.begin_batch(number)
        stamps = [value * 10 for value in values] if stamped else None
        for channel, part, part_stamps in partitioner.route(list(values), stamps):
            pairs = zip(part, part_stamps if part_stamps is not None else [None] * len(part), strict=True)
            channels.setdefault(channel, []).extend(pairs)
    return channels


@pytest.mark.parametrize("name", SINGLE)
@given(batches=BATCHES, senders=st.integers(1, 4), channels=st.integers(1, 5), stamped=st.booleans(), data=st.data())
def test_every_record_goes_to_one_channel_in_order_with_its_timestamp(name, batches, senders, channels, stamped, data):
    sender = data.draw(st.integers(0, senders - 1))
    found = routed(ready(SINGLE[name](), sender, senders, channels), batches, stamped=stamped)
    assert set(found) <= set(range(channels))
    everything = [value for values in batches for value in values]
    assert Counter(value for pairs in found.values() for value, _ in pairs) == Counter(everything)
    for pairs in found.values():
        remaining = iter(everything)
        assert all(any(value == other for other in remaining) for value, _ in pairs)  # a subsequence
        assert all(stamp == (value * 10 if stamped else None) for value, stamp in pairs)


@pytest.mark.parametrize("name", SINGLE)
@given(batches=BATCHES)
def test_a_batch_that_is_run_again_elsewhere_is_routed_the_same(name, batches):
    warm = ready(SINGLE[name]())
    for number, values in enumerate(batches, 1):
        fresh = ready(SINGLE[name]())
        assert routed(warm, [values], first_batch=number) == routed(fresh, [values], first_batch=number)


@given(BATCHES, st.integers(1, 5))
def test_broadcast_sends_everything_to_everybody(batches, channels):
    found = routed(ready(BroadcastPartitioner(), channels=channels), [batch for batch in batches if batch])
    everything = [(value, None) for values in batches for value in values]
    assert found == (dict.fromkeys(range(channels), everything) if everything else {})


def test_forward_keeps_the_subtask():
    assert ready(ForwardPartitioner(), sender=2, senders=4).route([1, 2], [5, 6]) == [(2, [1, 2], [5, 6])]


@given(st.integers(0, 50), st.integers(1, 6), st.integers(0, 5))
def test_rebalance_is_fair_within_a_batch(records, channels, sender):
    found = routed(ready(RebalancePartitioner(), sender, 6, channels), [range(records)])
    shares = [len(found.get(channel, [])) for channel in range(channels)]
    assert max(shares) - min(shares) <= 1


def test_rebalance_spreads_small_batches_too():
    found = routed(ready(RebalancePartitioner()), [[n] for n in range(8)])
    assert {channel: len(pairs) for channel, pairs in found.items()} == dict.fromkeys(range(4), 2)


@given(st.integers(1, 12), st.integers(1, 12))
def test_rescale_reaches_exactly_what_the_edge_says(senders, receivers):
    edge = JobEdge(0, 0, 0, None, 1, 0, RescalePartitioner(), senders, receivers, 128, "target")
    reached = set()
    for sender in range(senders):
        found = set(routed(ready(RescalePartitioner(), sender, senders, receivers), [range(60)]))
        assert found == set(edge.reachable(sender))
        reached |= found
    assert reached == set(range(receivers))  # no receiver is left out
    for receiver in range(receivers):
        assert edge.senders_to(receiver) == [s for s in range(senders) if receiver in edge.reachable(s)]


@given(st.lists(st.text(max_size=3), max_size=30), st.integers(1, 6))
def test_keys_go_where_their_key_group_lives(keys, channels):
    found = routed(ready(KeyGroupPartitioner(lambda key: key), channels=channels), [keys])
    for channel, pairs in found.items():
        for key, _ in pairs:
            assert channel == subtask_for_key_group(key_group_for(key, 128), channels, 128)


def test_shuffle_uses_all_channels():
    found = routed(ready(ShufflePartitioner()), [range(200)])
    assert all(30 <= len(found[channel]) <= 70 for channel in range(4))


def test_a_failing_key_selector_names_target_and_record():
    partitioner = ready(KeyGroupPartitioner(lambda value: value["id"]))
    with pytest.raises(KeySelectorError, match=r"before 'target' failed for record \{'x': 1\}: KeyError: 'id'"):
        partitioner.route([{"id": 1}, {"x": 1}], None)


def test_a_selector_that_fails_once_only_fails_the_job_all_the_same():
    moods = iter([True, True])  # the first record is looked at before
    partitioner = ready(KeyGroupPartitioner(lambda value: 1 // 0 if next(moods, False) else value))
    with pytest.raises(
        KeySelectorError, match=r"record \(unknown: the key selector did not fail again\): ZeroDivision"
    ):
        partitioner.route([1, 2], None)


def test_more_keys_than_are_remembered_go_where_they_belong(monkeypatch):
    monkeypatch.setattr("penstock.runtime.exchange.partitioner._CACHED_KEYS", 50)
    one = ready(KeyGroupPartitioner(lambda key: key), channels=3)
    batches = [[f"key {n}" for n in range(start, start + 40)] for start in (0, 20, 40, 0)]
    found = routed(one, batches)
    for channel, pairs in found.items():
        for key, _ in pairs:
            assert channel == subtask_for_key_group(key_group_for(key, 128), 3, 128)
    assert sum(map(len, found.values())) == 160


def test_a_failing_custom_partitioner_names_target_and_record():
    partitioner = ready(CustomPartitioner(lambda key, channels: 1 // key, lambda value: value))
    with pytest.raises(InvalidProgramError, match=r"before 'target' failed for record 0: ZeroDivisionError"):
        partitioner.route([1, 0], None)
    with pytest.raises(InvalidProgramError, match=r"returned -1 for record -1, but there are channels 0 to 3"):
        partitioner.route([-1], None)


@pytest.mark.parametrize(
    ("senders", "receivers", "expected"),
    [
        (2, 4, [[0, 1], [2, 3]]),
        (4, 2, [[0], [0], [1], [1]]),
        (2, 5, [[0, 1, 2], [3, 4]]),
        (5, 2, [[0], [0], [1], [1], [1]]),
        (3, 3, [[0], [1], [2]]),
    ],
)
def test_rescale_deals_receivers_out_in_flinks_portions(senders, receivers, expected):
    assert [rescale_targets(sender, senders, receivers) for sender in range(senders)] == expected


def test_rescale_takes_the_receivers_of_a_sender_in_turn():
    partitioner = ready(RescalePartitioner(), 0, 1, 3)
    assert [partitioner.route([value], None)[0][0] for value in range(4)] == [0, 1, 2, 0]


def test_global_sends_everything_to_the_first():
    assert list(routed(ready(GlobalPartitioner(), channels=3), [range(5)])) == [0]


def test_shuffle_has_one_choice_among_one_channel():
    assert list(routed(ready(ShufflePartitioner(), channels=1), [range(5)])) == [0]


@pytest.mark.parametrize("channels", [1, 2, 1024])
def test_records_with_the_same_key_go_to_the_same_channel(channels):
    partitioner = KeyGroupPartitioner(lambda value: value[0])
    partitioner.setup(0, 1, channels, 1024, "target")
    assert len(partitioner.route([("test", 0), ("test", 42)], None)) == 1


@pytest.mark.parametrize(
    "partitioner",
    [
        ForwardPartitioner(),
        GlobalPartitioner(),
        BroadcastPartitioner(),
        RebalancePartitioner(),
        RescalePartitioner(),
        ShufflePartitioner(),
    ],
    ids=lambda partitioner: partitioner.name,
)
def test_partitioners_survive_pickling_and_only_broadcast_says_so(partitioner):
    again = pickle.loads(pickle.dumps(partitioner))
    assert type(again) is type(partitioner)
    assert again.broadcast == (again.name == "BROADCAST")
