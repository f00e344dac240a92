"""A savepoint and a program with other types: what fits, what is refused, and with which words (rules J01 to J10)."""

import copy

import pytest
from tests.runtime.savepoint.versions import OTHER_OPERATOR_TYPES, Keeps, Program, restored, saved, typed

from penstock.common import Row, Time, Types
from penstock.common.errors import InvalidProgramError, SavepointError
from penstock.datastream import AggregateFunction, KeyedCoProcessFunction, WindowFunction
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.datastream.window import TumblingProcessingTimeWindows

LAST = ValueStateDescriptor("last", Types.LONG())


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
    ids=["list", "keys of a map", "values of a map", "a value that was not a list", "a value that was not a row"],
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
            SavepointError, match=r"'keeps'. had another key type .*cannot become STRING.*Key types cannot"
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


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "seen"])
@pytest.mark.parametrize(("mode", "before", "after", "value"), OTHER_OPERATOR_TYPES)
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
    assert typed("list").start(path).feed(3) == [[1, 2]]  # a state without a declared type takes what is stored


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
