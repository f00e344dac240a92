"""Functions that keep operator state: CheckpointedFunction (rules 3.7, D02 to D07)."""

import threading
from itertools import pairwise

import pytest
from support import script

from penstock.common import Types
from penstock.common.errors import PenstockError
from penstock.datastream import CheckpointedFunction, MapFunction
from penstock.datastream.functions import ListCheckpointed
from penstock.datastream.state import ListStateDescriptor


class CountAll(MapFunction, CheckpointedFunction):
    """Counts in a plain member, which every checkpoint writes to list state."""

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("count", Types.INT()))
        self.count = sum(self.state.get())
        self.restored = context.is_restored()

    def snapshot_state(self, context):
        assert context.get_checkpoint_id() > 0
        self.state.update([self.count])

    def map(self, value):
        self.count += 1
        return value, self.count


class Union(MapFunction, CheckpointedFunction):
    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_union_list_state(ListStateDescriptor("seen", Types.INT()))

    def snapshot_state(self, context):
        pass

    def map(self, value):
        self.state.add(value)
        return sorted(self.state.get())


@pytest.mark.variants(modes=["STREAMING"])
@pytest.mark.on_spark((1, "STREAMING"))
def test_a_member_written_at_checkpoints_survives_everything(env, run):
    numbers = env.from_collection(range(1, 8))
    results = run(
        count=numbers.global_().map(CountAll()), right_behind_the_source=numbers.map(CountAll()).set_parallelism(1)
    )
    expected = [(n, n) for n in range(1, 8)]
    assert results == {"count": expected, "right_behind_the_source": expected}


def test_list_state_written_while_records_come(hand):
    source = script(hand.env, [3, 1], bounded=False)
    hand.watch(source.global_().map(Union()))
    assert hand.step() == [[3], [1, 3]]
    source._source.source.add(2)
    assert hand.step() == [[1, 2, 3]]


def test_every_subtask_has_operator_state_of_its_own(hand):
    source = script(hand.env, [1, 2, 3, 4, 5, 6], bounded=False)
    hand.watch(source.partition_custom(lambda key, n: key % 2, lambda v: v).map(CountAll()).set_parallelism(2))
    assert sorted(hand.step()) == [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3)]
    source._source.source.add(7)
    assert hand.step() == [(7, 4)]


class SplitCount(MapFunction, ListCheckpointed):
    """The count in ten parts that differ by one at most, so that it can be dealt out (rule B07)."""

    def restore_state(self, state):
        self.count = sum(state)
        self.parts = len(state)

    def snapshot_state(self, checkpoint_id, timestamp):
        share, more = divmod(self.count, 10)
        return [share + 1] * more + [share] * (10 - more)

    def map(self, value):
        self.count += 1
        return value, self.count


def test_list_checkpointed_functions_keep_plain_members(hand):
    source = script(hand.env, range(1, 24), bounded=False)
    hand.watch(source.global_().map(SplitCount()))
    assert hand.step()[-1] == (23, 23)
    source._source.source.add(24)
    assert hand.step() == [(24, 24)]


def test_restore_state_is_called_with_nothing_at_the_first_start_and_splits_are_even():
    function = SplitCount()
    function.restore_state([])
    assert (function.count, function.parts) == (0, 0)
    function.count = 23
    assert function.snapshot_state(1, 0) == [3, 3, 3, 2, 2, 2, 2, 2, 2, 2]


class Returns(MapFunction, ListCheckpointed):
    def __init__(self, kept):
        self.kept = kept

    def restore_state(self, state):
        self.restored = state

    def snapshot_state(self, checkpoint_id, timestamp):
        return self.kept

    def map(self, value):
        return value, self.restored


def test_a_list_checkpointed_function_may_have_nothing_to_keep(hand):
    source = script(hand.env, [1], bounded=False)
    hand.watch(source.global_().map(Returns(None)))
    assert hand.step() == [(1, [])]
    source._source.source.add(2)
    assert hand.step() == [(2, [])]


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (lambda: 5, r"snapshot_state\(\) of operator 'keeps' returned 5: return a list"),
        (lambda: [threading.Lock()], "operator state 'list-checkpointed' of operator 'keeps' cannot be pickled"),
    ],
    ids=["no list", "cannot be pickled"],
)
def test_what_cannot_be_kept_is_named_with_its_operator(hand, keep, message):
    class Keeps(Returns):
        def snapshot_state(self, checkpoint_id, timestamp):
            return keep()

    hand.watch(script(hand.env, [1], bounded=False).global_().map(Keeps(None)).name("keeps"))
    with pytest.raises(PenstockError, match=message):
        hand.step()


class Told(MapFunction, ListCheckpointed):
    """Emits what it was told at the checkpoints so far."""

    def restore_state(self, state):
        self.told = list(state)

    def snapshot_state(self, checkpoint_id, timestamp):
        self.told.append((checkpoint_id, timestamp))
        return self.told

    def map(self, value):
        return tuple(self.told)


def test_checkpoint_ids_increase_and_every_subtask_hears_when_the_driver_began(hand):
    source = script(hand.env, [0, 1], bounded=False)
    hand.watch(source.partition_custom(lambda key, n: key % n, lambda v: v).map(Told()).set_parallelism(2))
    assert hand.step() == [(), ()]
    for _ in range(3):
        hand.clock.advance(100)
        source._source.source.add(0, 1)
        found = hand.step()
        assert len(set(found)) == 1  # all subtasks have the same ids, and the same times
    ids, times = zip(*found[0], strict=True)
    assert list(ids) == list(range(ids[0], ids[0] + 3))
    assert [after - before for before, after in pairwise(times)] == [100, 100]


class KeepsAnObject(MapFunction, CheckpointedFunction):
    """Holds what is in its state as a member, and changes it there."""

    def __init__(self, union):
        self.union = union

    def initialize_state(self, context):
        store, descriptor = context.get_operator_state_store(), ListStateDescriptor("seen")
        state = store.get_union_list_state(descriptor) if self.union else store.get_list_state(descriptor)
        self.seen = next(iter(state.get()), None)
        if self.seen is None:
            self.seen = []
            state.add(self.seen)

    def snapshot_state(self, context):
        pass

    def map(self, value):
        self.seen.append(value)
        return tuple(self.seen)


@pytest.mark.parametrize("union", [False, True], ids=["list", "union"])
def test_an_object_in_list_state_that_is_changed_in_place_is_kept(hand, union):
    source = script(hand.env, [], bounded=False)
    hand.watch(source.global_().map(KeepsAnObject(union=union)))
    for number in range(1, 5):
        source._source.source.add(number)
        assert hand.step() == [tuple(range(1, number + 1))]
