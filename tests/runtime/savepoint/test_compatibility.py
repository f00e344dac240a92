"""A savepoint and a changed program: what fits, what is refused, and with which words (spec: 3.10, ch. 7 F and J)."""

import copy
from dataclasses import dataclass

import pytest
from tests.runtime.savepoint.versions import Keeps, Program, restored, saved

from penstock.common import Row, Time, Types
from penstock.common.errors import InvalidProgramError, PenstockError, SavepointError
from penstock.datastream import AggregateFunction, KeyedCoProcessFunction, MapFunction, WindowFunction
from penstock.datastream.functions import CheckpointedFunction, CheckpointListener, ListCheckpointed
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.datastream.window import TumblingProcessingTimeWindows
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


@pytest.mark.parametrize(
    "other",
    [
        ListStateDescriptor("last", Types.LONG()),
        MapStateDescriptor("last", Types.LONG(), Types.LONG()),
        ReducingStateDescriptor("last", lambda a, b: a + b, Types.LONG()),
    ],
    ids=lambda descriptor: type(descriptor).__name__,
)
def test_another_kind_of_state_is_refused(tmp_path, other):
    path = saved(tmp_path, LAST)
    with pytest.raises(
        InvalidProgramError, match=r"state 'last' of operator .* is a value state and cannot be used as"
    ):
        restored(path, other).feed(3)


def test_time_to_live_cannot_be_switched_on_or_off(tmp_path):
    expiring = ValueStateDescriptor("last", Types.LONG())
    expiring.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    path = saved(tmp_path, LAST)
    with pytest.raises(InvalidProgramError, match="is a value state and cannot be used as a value state with TTL"):
        restored(path, expiring).feed(3)


def test_another_type_is_refused_when_the_job_starts_and_not_when_a_value_is_read(tmp_path):
    path = saved(tmp_path, ValueStateDescriptor("last", Types.STRING()), update=lambda value, key: key)
    with pytest.raises(
        InvalidProgramError, match=r"state 'last' of operator .* another type: STRING cannot become DOUB"
    ):
        restored(path, ValueStateDescriptor("last", Types.DOUBLE())).job.run()


def test_values_of_a_state_without_a_type_are_looked_at(tmp_path):
    path = saved(tmp_path, ValueStateDescriptor("last"), update=lambda value, key: key)
    with pytest.raises(InvalidProgramError, match="values of type str, which cannot become DOUBLE"):
        restored(path, ValueStateDescriptor("last", Types.DOUBLE())).job.run()
    assert restored(path, ValueStateDescriptor("last", Types.STRING())).feed(3) == [{"last": "3"}]


@pytest.mark.parametrize(
    "wanted", [Types.SQL_TIMESTAMP(), Types.SQL_DATE(), Types.SQL_TIME(), Types.INSTANT()], ids=str
)
def test_numbers_without_a_type_do_not_become_times(tmp_path, wanted):
    path = saved(tmp_path, ValueStateDescriptor("last"))
    with pytest.raises(InvalidProgramError, match="it has values of type int, which cannot become"):
        restored(path, ValueStateDescriptor("last", wanted)).job.run()


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            ListStateDescriptor("last"),
            ListStateDescriptor("last", Types.STRING()),
            "type int, which cannot become STRI",
        ),
        (MapStateDescriptor("last"), MapStateDescriptor("last", Types.STRING(), Types.INT()), "cannot become STRING"),
        (MapStateDescriptor("last"), MapStateDescriptor("last", Types.INT(), Types.STRING()), "cannot become STRING"),
        (ValueStateDescriptor("last"), ValueStateDescriptor("last", Types.LIST(Types.INT())), "cannot become LIST"),
        (ValueStateDescriptor("last"), ValueStateDescriptor("last", Types.ROW([Types.INT()])), "cannot become ROW"),
    ],
    ids=["list", "keys of a map", "values of a map", "a value that was no list", "a value that was no row"],
)
@pytest.mark.parametrize("ttl", [False, True], ids=["", "with TTL"])
def test_what_lists_and_maps_without_a_type_hold_is_looked_at(tmp_path, before, after, message, ttl):
    before, after = copy.copy(before), copy.copy(after)
    if ttl:
        for descriptor in (before, after):
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    path = saved(tmp_path, before)
    with pytest.raises(InvalidProgramError, match=f"state 'last' of operator .* another type: .*{message}"):
        restored(path, after).job.run()
    assert restored(path, before).feed(3) == restored(path, before, parallelism=1).feed(3)


def test_a_type_may_become_wider_but_not_narrower(tmp_path):
    path = saved(tmp_path, ValueStateDescriptor("last", Types.INT()))
    assert restored(path, LAST).feed(3) == [{"last": 3}]
    path = saved(tmp_path, LAST)
    with pytest.raises(InvalidProgramError, match="LONG cannot become INT"):
        restored(path, ValueStateDescriptor("last", Types.INT())).job.run()


def keyed(selector, key_type):
    program = Program()
    program.stream().key_by(selector, key_type=key_type).process(Keeps(LAST)).uid("keeps").sink_to(program.sink)
    return program


def test_keys_of_another_type_are_refused_and_their_state_is_not_lost_silently(tmp_path):
    for declared in (Types.INT(), None):
        program = keyed(lambda value: value, declared).start()
        program.feed(1, 2, 3)
        path = program.stop(tmp_path)
        with pytest.raises(
            SavepointError, match=r"'keeps'. had keys of another type .*cannot become STRING.*Keys cannot"
        ):
            keyed(str, Types.STRING()).start(path)
        for same in (Types.INT(), Types.LONG(), None):
            assert keyed(lambda value: value, same).start(path).feed(2) == [{"last": 2}]


def test_two_inputs_may_declare_their_keys_otherwise(tmp_path):
    class Remembers(KeyedCoProcessFunction):
        def open(self, runtime_context):
            self.last = runtime_context.get_state(LAST)

        def process_element1(self, value, ctx):
            yield self.last.value()
            self.last.update(value)

        def process_element2(self, value, ctx):
            return ()

    def connected():
        program = Program()
        stream = program.stream()
        first, second = (stream.key_by(lambda n: n, key_type=kind) for kind in (Types.LONG(), Types.INT()))
        first.connect(second).process(Remembers()).uid("keeps").sink_to(program.sink)
        return program

    program = connected().start()
    program.feed(1, 2)
    assert connected().start(program.stop(tmp_path)).feed(2) == [2]


def test_the_fields_of_a_maps_keys_cannot_change(tmp_path):
    def held(*names):
        key = Types.TUPLE([Types.ROW_NAMED(list(names), [Types.LONG()] * len(names))])
        return MapStateDescriptor("last", key, Types.LONG())

    path = saved(tmp_path, held("a"))
    with pytest.raises(InvalidProgramError, match=r"state 'last' .* the fields of keys cannot change"):
        restored(path, held("a", "b")).job.run()


OLD_ROW = Types.ROW_NAMED(["a", "gone"], [Types.LONG(), Types.STRING()])
NEW_ROW = Types.ROW_NAMED(["added", "a"], [Types.STRING(), Types.LONG()])


def test_rows_without_names_have_the_fields_of_the_type_they_were_written_with(tmp_path):
    path = saved(tmp_path, ValueStateDescriptor("last", OLD_ROW), update=Row)
    assert restored(path, ValueStateDescriptor("last", NEW_ROW)).feed(3) == [{"last": Row(added=None, a=3)}]


def test_rows_in_tuples_get_fields_and_lose_others(tmp_path):
    old, new = (Types.TUPLE([Types.LONG(), row]) for row in (OLD_ROW, NEW_ROW))
    path = saved(tmp_path, ValueStateDescriptor("last", old), update=lambda value, key: (value, Row(a=value, gone=key)))
    assert restored(path, ValueStateDescriptor("last", new)).feed(3) == [{"last": (3, Row(added=None, a=3))}]


@pytest.mark.parametrize("names", [True, False], ids=["named", "unnamed"])
def test_rows_may_get_fields_and_lose_others(tmp_path, names):
    def row(value, key):
        return Row(a=value, gone=key) if names else Row(value, key, 0)

    old = OLD_ROW if names else Types.ROW_NAMED(["a", "gone", "too"], [Types.LONG(), Types.STRING(), Types.INT()])
    before = [ValueStateDescriptor("last", old), ListStateDescriptor("all", old)]
    path = saved(tmp_path, *before, update=row)
    after = [ValueStateDescriptor("last", NEW_ROW), ListStateDescriptor("all", NEW_ROW)]
    program = restored(path, *after, update=lambda value, key: Row(added="new", a=value))
    adapted = Row(added=None, a=3)
    assert program.feed(3) == [{"last": adapted, "all": [adapted]}]
    again = restored(program.stop(tmp_path), *after, parallelism=1, update=lambda value, key: Row(added="", a=value))
    assert again.feed(3) == [{"last": Row(added="new", a=3), "all": [adapted, Row(added="new", a=3)]}]
    with pytest.raises(InvalidProgramError, match="field 'a': LONG cannot become STRING"):
        restored(path, ValueStateDescriptor("last", Types.ROW_NAMED(["a"], [Types.STRING()])), allow=True).job.run()


def joined(stream, way, type_info):
    """Windows that hold elements, or what was made of them."""
    windows = (
        stream.map(lambda v: v, type_info).key_by(lambda v: 0).window(TumblingProcessingTimeWindows.of(Time.days(1)))
    )
    if way == "reduce":
        return windows.reduce(lambda a, b: a + b)
    if way == "aggregate":
        return windows.aggregate(Joined(), accumulator_type=type_info)
    return windows.apply(AllElements())


class Joined(AggregateFunction):
    def create_accumulator(self):
        return ""

    def add(self, value, accumulator):
        return accumulator + str(value)

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a + b


class AllElements(WindowFunction):
    def apply(self, key, window, inputs):
        yield from inputs


@pytest.mark.parametrize("way", ["reduce", "aggregate", "apply"])
def test_windows_over_records_of_another_type_are_refused(tmp_path, way):
    def program(type_info):
        made = Program(1)
        joined(made.stream(), way, type_info).uid("windows").name("windows").sink_to(made.sink)
        return made

    first = program(Types.STRING()).start()
    first.feed("a")
    path = first.stop(tmp_path)
    with pytest.raises(InvalidProgramError, match=r"of operator 'windows' was stored .*: STRING cannot become LONG"):
        program(Types.LONG()).start(path).feed(1)
    again = program(Types.STRING()).start(path)
    again.feed("b")
    again.cluster.clock.advance(86_400_000)
    assert sorted("".join(again.feed("c"))) == ["a", "b"]


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
        SavepointError, match=r"uid 'keeps'. had max parallelism 4 .* has parallelism 5: .* of 4 at most"
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


@dataclass
class Typed(MapFunction, CheckpointedFunction):
    """Operator state of any kind, with a declared type or without."""

    mode: str
    types: tuple

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        if self.mode == "broadcast":
            self.state = store.get_broadcast_state(MapStateDescriptor("kept", *self.types))
            self.given = sorted(self.state.items())
        else:
            get = store.get_list_state if self.mode == "list" else store.get_union_list_state
            self.state = get(ListStateDescriptor("kept", *self.types))
            self.given = list(self.state.get())

    def snapshot_state(self, context):
        """Everything is in the state."""

    def map(self, value):
        if self.mode == "broadcast":
            self.state.put(*value)
        else:
            self.state.add(value)
        return self.given


def typed(mode, *types, parallelism=1):
    program = Program(parallelism)
    program.stream().broadcast().map(Typed(mode, types)).uid("typed").name("typed").sink_to(program.sink)
    return program


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "seen"])
@pytest.mark.parametrize(
    ("mode", "before", "after", "value"),
    [
        ("list", [Types.STRING()], [Types.LONG()], "a"),
        ("union", [Types.STRING()], [Types.LONG()], "a"),
        ("broadcast", [Types.STRING(), Types.STRING()], [Types.STRING(), Types.LONG()], ("a", "b")),
        ("broadcast", [Types.STRING(), Types.STRING()], [Types.LONG(), Types.STRING()], ("a", "b")),
    ],
)
def test_operator_state_of_another_type_is_refused_when_the_job_starts(tmp_path, mode, before, after, value, declared):
    program = typed(mode, *(before if declared else ())).start()
    program.feed(value)
    path = program.stop(tmp_path)
    reason = "STRING cannot become LONG" if declared else "it has values of type str, which cannot become LONG"
    with pytest.raises(InvalidProgramError, match=f"operator state 'kept' of operator 'typed' was stored .*: {reason}"):
        typed(mode, *after).start(path).feed(value)
    assert typed(mode, *before).start(path).feed(value) == [[value]]


def test_operator_state_may_get_a_wider_type_but_not_a_narrower_one_also_later(tmp_path):
    program = typed("list", Types.INT()).start()
    program.feed(1)
    program = typed("list", Types.LONG()).start(program.stop(tmp_path))
    assert program.feed(2) == [[1]]
    path = program.stop(tmp_path)
    with pytest.raises(InvalidProgramError, match="LONG cannot become INT"):
        typed("list", Types.INT()).start(path).feed(3)
    assert typed("list").start(path).feed(3) == [[1, 2]]  # whoever declares nothing takes what there is


def test_rows_in_operator_state_get_fields_and_lose_others(tmp_path):
    program = typed("union", Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.INT()])).start()
    program.feed(Row(a=1, b=2))
    path = program.stop(tmp_path)
    changed = typed("union", Types.ROW_NAMED(["b", "c"], [Types.INT(), Types.STRING()])).start(path)
    assert changed.feed(Row(b=3, c="x")) == [[Row(b=2, c=None)]]


@pytest.mark.parametrize(("before", "after"), [("list", "broadcast"), ("broadcast", "union"), ("union", "list")])
def test_operator_state_of_another_kind_is_refused_whatever_its_type(tmp_path, before, after):
    program = typed(before).start()
    program.feed(("a", "b"))
    path = program.stop(tmp_path)
    with pytest.raises(InvalidProgramError, match=r"'kept' of operator 'typed' is .* and cannot be used as .*new name"):
        typed(after).start(path).feed(("a", "b"))


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


def test_state_of_an_operator_that_runs_with_its_source_now_is_refused_unless_allowed(tmp_path):
    program = listing(2).start()
    program.feed(1)
    path = program.stop(tmp_path)

    def changed():
        program = Program(2)
        program.stream().map(str).uid("lists").sink_to(program.sink)  # in one chain with the source: it keeps no state
        return program

    with pytest.raises(SavepointError, match=r"has state of operator .*'lists'.*, which keeps none in this job"):
        changed().start(path)
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
