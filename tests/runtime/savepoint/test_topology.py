"""A savepoint and a program of another shape: which operator, source and state it belongs to, and how it is dealt out
(rules 3.10, F03 to F09, J01 to J10)."""

from dataclasses import dataclass

import pytest
from tests.runtime.savepoint.versions import Keeps, Program, restored, saved, typed

from penstock.common import Types
from penstock.common.errors import PenstockError, SavepointError
from penstock.datastream import MapFunction
from penstock.datastream.functions import CheckpointedFunction, CheckpointListener, ListCheckpointed
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor
from penstock.runtime.savepoint.manifest import verify

LAST = ValueStateDescriptor("last", Types.LONG())


def test_state_belongs_to_uid_and_name(tmp_path):
    path = saved(tmp_path, LAST)
    assert restored(path, LAST).feed(3) == [{"last": 3}]


def test_an_added_state_starts_empty(tmp_path):
    path = saved(tmp_path, LAST)
    found = restored(path, LAST, ListStateDescriptor("more")).feed(3)
    assert found == [{"last": 3, "more": []}]


def test_state_of_a_removed_operator_is_refused_unless_allowed(tmp_path):
    path = saved(tmp_path, LAST)
    with pytest.raises(SavepointError, match=r"state of operator 'KeyedProcess' \(uid 'keeps'\).*ignore-unclaimed"):
        restored(path, LAST, uid="renamed")
    assert restored(path, LAST, uid="renamed", allow=True).feed(3) == [{"last": None}]


def test_a_removed_or_renamed_state_is_refused_unless_allowed(tmp_path):
    path = saved(tmp_path, LAST, ListStateDescriptor("old"))
    with pytest.raises(SavepointError, match="state 'old' of operator 'KeyedProcess'"):
        restored(path, LAST).feed(3)
    program = restored(path, LAST, allow=True)
    assert program.feed(3) == [{"last": 3}]
    states = Program(1).keeping(LAST).start(program.stop(tmp_path)).feed(4)  # and it is gone for good
    assert states == [{"last": 4}]


def test_a_removed_source_is_refused_unless_allowed(tmp_path):
    path = saved(tmp_path, LAST)
    program = Program()
    program.stream("other").key_by(str).process(Keeps(LAST)).uid("keeps").sink_to(program.sink)
    with pytest.raises(SavepointError, match=r"source 'Source: Script' .uid 'source'.*ignore-unclaimed"):
        program.start(path)
    program.start(path, allow_non_restored_state=True)
    assert program.feed(5) == [{"last": 5}]


def test_max_parallelism_is_fixed_by_the_savepoint(tmp_path):
    path = saved(tmp_path, LAST)
    program = Program(max_parallelism=64).keeping(LAST)
    with pytest.raises(SavepointError, match=r"had max parallelism 128 .* this job sets 64.*set 128"):
        program.start(path)


def test_a_max_parallelism_that_nobody_set_is_taken_from_the_savepoint(tmp_path):
    small = Program(2, max_parallelism=4).keeping(LAST).start()
    small.feed(1, 2, 3, 4, 5)
    path = small.stop(tmp_path)
    assert restored(path, LAST).feed(1, 5) == [{"last": 1}, {"last": 5}]
    with pytest.raises(
        SavepointError, match=r"uid 'keeps'. had max parallelism 4 .* has parallelism 5: .* of at most 4"
    ):
        restored(path, LAST, parallelism=5)


def test_an_operator_that_is_no_longer_keyed_is_refused(tmp_path):
    path = saved(tmp_path, LAST)
    program = Program()
    program.stream().map(str).rebalance().map(str).uid("keeps").sink_to(program.sink)
    with pytest.raises(SavepointError, match="has keyed state in the savepoint, but is not on a keyed stream"):
        program.start(path)


def test_logic_and_topology_around_the_operator_may_change(tmp_path):
    path = saved(tmp_path, LAST)
    program = Program(4)
    doubled = program.stream().filter(lambda v: v > 0).rebalance().map(lambda v: v).key_by(str)
    doubled.process(Keeps(LAST)).uid("keeps").map(lambda found: found["last"] * 10).sink_to(program.sink)
    assert program.start(path).feed(3) == [30]


def test_generated_ids_depend_on_what_comes_before(tmp_path):
    first = Program()
    first.stream().key_by(str).process(Keeps(LAST)).sink_to(first.sink)
    first.start().feed(1, 2)
    path = first.stop(tmp_path)
    same = Program(3)
    same.stream().key_by(str).process(Keeps(LAST)).sink_to(same.sink)
    assert same.start(path).feed(2) == [{"last": 2}]
    changed = Program(3)
    changed.stream().map(lambda v: v).key_by(str).process(Keeps(LAST)).sink_to(changed.sink)
    with pytest.raises(SavepointError, match=r"operator 'KeyedProcess' \(generated id [0-9a-f]{32}\)"):
        changed.start(path)


# -- operator state --------------------------------------------------------------------------------------------------


@dataclass
class Lists(MapFunction, CheckpointedFunction):
    """Keeps what it has seen in operator state and says what it was given at the start."""

    union: bool = False

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        get = store.get_union_list_state if self.union else store.get_list_state
        self.state = get(ListStateDescriptor("seen"))
        self.seen = list(self.state.get())
        self.given = (context.is_restored(), context.get_restored_checkpoint_id() is not None, tuple(self.seen))

    def snapshot_state(self, context):
        self.state.update(self.seen)

    def map(self, value):
        self.seen.append(value)
        return self.given


def listing(parallelism, *, union=False):
    program = Program(parallelism)
    program.stream().rebalance().map(Lists(union)).uid("lists").sink_to(program.sink)
    return program


def test_list_state_is_dealt_out_evenly_and_some_tasks_may_get_nothing(tmp_path):
    program = listing(2).start()
    assert set(program.feed(*range(5))) == {(False, False, ())}
    path = program.stop(tmp_path)
    given = set(listing(3).start(path).feed(*range(9)))
    assert sorted(len(seen) for _, _, seen in given) == [1, 2, 2]
    assert sorted(value for _, _, seen in given for value in seen) == list(range(5))
    assert all(restored and known for restored, known, _ in given)
    path = listing(3).start(path).stop(tmp_path)
    given = set(listing(8).start(path).feed(*range(16)))
    assert sorted(len(seen) for _, _, seen in given) == [0, 1, 1, 1, 1, 1]  # the empty ones are equal


def test_union_state_is_given_to_every_task_in_full(tmp_path):
    program = listing(2, union=True).start()
    program.feed(*range(4))
    path = program.stop(tmp_path)
    for parallelism in (2, 3, 1):
        given = set(listing(parallelism, union=True).start(path).feed(*range(6)))
        assert [sorted(seen) for _, _, seen in given] == [[0, 1, 2, 3]]


def test_operator_state_of_another_mode_is_refused(tmp_path):
    program = listing(2).start()
    program.feed(1)
    path = program.stop(tmp_path)
    with pytest.raises(
        PenstockError, match=r"'seen' of operator .* is list state and cannot be used as union list state"
    ):
        listing(2, union=True).start(path).feed(1)


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_broadcast_state_is_copied_to_new_tasks_and_survives_fewer(tmp_path, parallelism):
    program = typed("broadcast", parallelism=2).start()
    program.feed(("a", 1), ("b", 2))
    path = program.stop(tmp_path)
    found = typed("broadcast", parallelism=parallelism).start(path).feed(("c", 3))
    assert found == [[("a", 1), ("b", 2)]] * parallelism


def test_unclaimed_operator_state_is_refused_unless_allowed(tmp_path):
    program = listing(2).start()
    program.feed(1)
    path = program.stop(tmp_path)

    def changed():
        program = Program(2)
        program.stream().rebalance().map(str).uid("lists").sink_to(program.sink)
        return program

    with pytest.raises(SavepointError, match="state 'seen' of operator"):
        changed().start(path).feed(2)
    assert changed().start(path, allow_non_restored_state=True).feed(2) == ["2"]


@dataclass
class Counts(MapFunction, ListCheckpointed):
    def restore_state(self, state):
        self.given, self.count = list(state), sum(state)

    def snapshot_state(self, checkpoint_id, timestamp):
        return [1] * self.count

    def map(self, value):
        self.count += 1
        return tuple(self.given)


def test_what_list_checkpointed_functions_keep_is_dealt_out(tmp_path):
    def counting(parallelism):
        program = Program(parallelism)
        program.stream().rebalance().map(Counts()).uid("counts").sink_to(program.sink)
        return program

    program = counting(1).start()
    assert program.feed(*range(7)) == [()] * 7
    given = counting(3).start(program.stop(tmp_path)).feed(*range(3))
    assert sorted(map(len, given)) == [2, 2, 3]


class Hears(MapFunction, CheckpointListener):
    def open(self, runtime_context):
        self.heard = []

    def notify_checkpoint_complete(self, checkpoint_id):
        self.heard.append(checkpoint_id)

    def map(self, value):
        return tuple(self.heard)


def test_a_savepoint_is_a_checkpoint_that_functions_and_sinks_hear_of(tmp_path):
    program = Program(1)
    program.stream().rebalance().map(Hears()).uid("hears").sink_to(program.sink)
    program.start()
    assert program.feed(1) == [()]
    saved_as = verify(program.job.savepoint(str(tmp_path))).checkpoint_id
    assert program.feed(2)[0][-1] == saved_as  # the last one that is complete


def test_state_of_an_operator_that_runs_with_its_source_now_is_refused_unless_allowed(tmp_path):
    program = listing(2).start()
    program.feed(1)
    path = program.stop(tmp_path)

    def changed():
        program = Program(2)
        program.stream().map(str).uid("lists").sink_to(program.sink)  # in one chain with the source: it keeps no state
        return program

    with pytest.raises(SavepointError, match=r"has state of operator .*'lists'.*, which keeps no state in this job"):
        changed().start(path)
    assert changed().start(path, allow_non_restored_state=True).feed(2) == ["2"]
