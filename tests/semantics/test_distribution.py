"""Which subtask gets a record (rule 5.5)."""

from collections import Counter, defaultdict

import pytest

from penstock.datastream import MapFunction, Partitioner, RuntimeContext

pytestmark = pytest.mark.variants(parallelism=[4])


class WithSubtask(MapFunction):
    """(subtask that handles the record, record)"""

    def open(self, runtime_context: RuntimeContext):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return self.subtask, value


class Parity(Partitioner):
    def partition(self, key, num_partitions):
        return key % num_partitions


def seen(records):
    subtasks = defaultdict(list)
    for subtask, value in records:
        subtasks[subtask].append(value)
    return subtasks


@pytest.mark.on_spark((4, "STREAMING"), (4, "BATCH"))
def test_every_way_to_distribute_records(env, run, variant):
    numbers = list(range(40))
    source = env.from_collection(numbers)
    pairs = source.rescale().map(WithSubtask()).set_parallelism(2)
    results = run(
        shuffle=source.shuffle().map(WithSubtask()),
        rebalance=source.rebalance().map(WithSubtask()),
        rescale_up=source.rescale().map(WithSubtask()),
        rescale_pairs=pairs.rescale().map(WithSubtask()),
        broadcast=source.broadcast().map(WithSubtask()),
        global_=source.global_().map(WithSubtask()),
        java_global=getattr(source, "global")().map(WithSubtask()),
        forward=source.map(lambda n: n).map(WithSubtask()).forward().map(WithSubtask()),
        custom=source.partition_custom(Parity(), lambda n: n).map(WithSubtask()),
        custom_function=source.partition_custom(lambda key, n: 3 if key < 0 else 1, lambda n: -n).map(WithSubtask()),
        keyed=source.key_by(lambda n: n % 5).map(WithSubtask()),
    )
    for name in ("shuffle", "rebalance", "rescale_up", "rescale_pairs", "global_", "custom", "keyed", "forward"):
        assert len(results[name]) == len(numbers), name
    for name in ("shuffle", "rebalance", "rescale_up", "global_", "custom"):
        assert sorted(value for _, value in results[name]) == numbers, name
    for name in ("rebalance", "rescale_up"):
        shares = [len(seen(results[name])[subtask]) for subtask in range(4)]
        # Round robin within a batch; where a batch starts depends on nothing but its number.
        assert max(shares) - min(shares) <= (2 if variant.executor == "cold" else 0)
    if variant.executor in ("warm", "spark"):
        assert set(seen(results["shuffle"])) == {0, 1, 2, 3}
    assert seen(results["broadcast"]) == dict.fromkeys(range(4), numbers)
    assert seen(results["global_"]) == seen(results["java_global"]) == {0: numbers}
    assert all(subtask == before for subtask, (before, _) in results["forward"])
    assert seen(results["custom"]) == {subtask: numbers[subtask::4] for subtask in range(4)}
    assert seen(results["custom_function"]) == {1: [0], 3: numbers[1:]}
    # Sender i of 2 reaches receivers 2i and 2i+1 only.
    for subtask, (sender, _) in results["rescale_pairs"]:
        assert subtask // 2 == sender
    # A key is in one place.
    place = defaultdict(set)
    for subtask, value in results["keyed"]:
        place[value % 5].add(subtask)
    assert all(len(subtasks) == 1 for subtasks in place.values())


def test_fewer_receivers_than_senders(env, run):
    source = env.from_sequence(1, 12).map(WithSubtask())
    results = run(
        rescaled=source.rescale().map(WithSubtask()).set_parallelism(2),
        rebalanced=source.rebalance().map(WithSubtask()).set_parallelism(2),
        single=source.map(WithSubtask()).set_parallelism(1),
    )
    assert all(subtask == sender // 2 for subtask, (sender, _) in results["rescaled"])
    assert Counter(subtask for subtask, _ in results["single"]) == {0: 12}
    assert sum(1 for _ in results["rebalanced"]) == 12


@pytest.mark.variants(executors=["warm"])
def test_large_batches_cross_the_exchanges_in_order(env, run):
    """More records than fit into one frame."""
    numbers = env.from_sequence(1, 80_000).key_by(lambda n: n % 5).map(WithSubtask())
    spread = numbers.rebalance().map(lambda pair: pair[1]).key_by(lambda n: n % 3).map(lambda n: n).set_parallelism(2)
    results = run(keyed=numbers, spread=spread)
    assert sorted(results["spread"]) == list(range(1, 80_001))
    for splits in range(4):  # the order of one sender's records stays
        low, high = splits * 20_000, (splits + 1) * 20_000
        for key in range(5):
            mine = [n for _, n in results["keyed"] if low < n <= high and n % 5 == key]
            assert mine == sorted(mine)


def test_the_last_partitioning_wins(env, run):
    assert set(seen(run(env.from_collection(range(8)).rebalance().global_().map(WithSubtask())))) == {0}


def test_parallelism_of_single_operators(env, run):
    source = env.from_collection(range(24))
    results = run(
        default=source.rebalance().map(WithSubtask()),
        double=source.rebalance().map(WithSubtask()).set_parallelism(8),
        two=source.rebalance().map(WithSubtask()).set_parallelism(2),
    )
    assert {name: len(seen(records)) for name, records in results.items()} == {"default": 4, "double": 8, "two": 2}


def test_key_groups_decide_where_a_key_lives(env, run):
    from penstock.runtime.records.key_groups import key_group_for, subtask_for_key_group

    env.set_max_parallelism(16)
    records = run(env.from_collection([f"key {n}" for n in range(50)]).key_by(lambda k: k).map(WithSubtask()))
    assert {key: subtask for subtask, key in records} == {
        key: subtask_for_key_group(key_group_for(key, 16), 4, 16) for key in (f"key {n}" for n in range(50))
    }
