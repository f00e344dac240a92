"""A program that continues its checkpoint with other versions of the classes in its state (rules J09, J10)."""

import dataclasses
import random
from collections import namedtuple
from dataclasses import dataclass, field, make_dataclass
from typing import NamedTuple

import pytest
from tests.runtime.savepoint.versions import Keeps, Program, typed

from penstock.common import Time, Types, WatermarkStrategy
from penstock.common.errors import InvalidProgramError
from penstock.datastream import WindowFunction
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.runtime.records.serialization import dumps
from penstock.runtime.state.backend import KeyedStateBackend
from penstock.runtime.state.changed_classes import united
from penstock.runtime.state.keyed_store import KeyedStateFactory
from penstock.runtime.state.operator_state import UnionPart
from penstock.runtime.state.pages import MemoryPageStore
from penstock.runtime.state.record_types import RecordNotes
from penstock.runtime.state.snapshots import OperatorSnapshot

LAST = ValueStateDescriptor("last")
STATES = [LAST, ListStateDescriptor("list"), MapStateDescriptor("map", Types.LONG(), Types.PICKLED_BYTE_ARRAY())]


def keeping(cls, *descriptors, update=None):
    return Program().keeping(*(descriptors or (LAST,)), update=update or (lambda value, key: cls(value)))


def fed(program, *values):
    program.start().feed(*(values or (1, 2, 3, 4, 5)))
    return program


def named(fields, defaults=()):
    return namedtuple("Held", fields, defaults=defaults)  # noqa: PYI024 - without types, which have tests of their own


def held(*fields, **options):
    return make_dataclass("Held", [("x", int), *fields], **options)


ADDED = ("y", int, 5)

FITTING = {
    "a default": (held(), held(ADDED)),
    "a default factory": (held(), held(("y", list, field(default_factory=list)))),
    "slots": (held(slots=True), held(ADDED, slots=True)),
    "slots now": (held(), held(ADDED, slots=True)),
    "slots before": (held(slots=True), held(ADDED)),
    "only slots": (held(), held(slots=True)),
    "frozen": (held(frozen=True), held(ADDED, frozen=True)),
    "frozen with slots, another order": (
        held(frozen=True, slots=True),
        make_dataclass("Held", [ADDED, ("x", int, 0)], frozen=True, slots=True),
    ),
    "removed": (held(("gone", str, "old")), held()),
    "a wider type": (held(), make_dataclass("Held", [("x", float)])),
    "a named tuple": (NamedTuple("Held", [("x", int)]), named(["x", "y"], defaults=[5])),
    "a named tuple, another order": (
        named(["gone", "x"], defaults=["old", 0]),
        named(["y", "x"], defaults=[5, 0]),
    ),
}


@pytest.mark.parametrize("case", FITTING)
def test_fields_go_and_come_with_a_default(versions, case):
    old, new = FITTING[case]
    versions(Held=old)
    first = fed(keeping(old, *STATES, update=lambda value, key: old(x=value)))
    versions(Held=new)
    second = keeping(new, *STATES, update=lambda value, key: new(x=value * 10)).continue_from(first)
    (found,) = second.feed(3)
    assert (found["last"], found["list"]) == (new(x=3), [new(x=3)])
    assert type(found["last"]) is new
    assert getattr(found["last"], "__dict__", None) == getattr(new(x=3), "__dict__", None)  # nothing old is left
    third = keeping(new, *STATES).continue_from(second)  # stored values have the new form, no matter who wrote it
    assert sorted((each["last"] for each in third.feed(3, 4)), key=lambda each: each.x) == [new(x=4), new(x=30)]


def test_classes_deep_inside_of_what_is_kept_evolve(versions):
    @dataclass
    class Outer:
        inner: object
        many: list

    old, new = held(), held(ADDED)
    versions(Held=old, Outer=Outer)
    first = fed(keeping(None, update=lambda value, key: {"at": (value, Outer(old(value), [old(1)]))}))
    versions(Held=new, Outer=Outer)
    (found,) = keeping(None, update=lambda value, key: None).continue_from(first).feed(3)
    assert found["last"]["at"] == (3, Outer(new(3), [new(1)]))


def test_classes_in_collections_that_are_stored_in_chunks_evolve(versions):
    old, new = held(), held(ADDED)
    store = MemoryPageStore()

    def open_states(directory=None):
        backend = KeyedStateBackend("op", "op", store, 128, directory, page_bytes=100)
        factory = KeyedStateFactory(backend, lambda: 0)
        states = [factory.create(ListStateDescriptor("list")), factory.create(MapStateDescriptor("map"))]
        backend.set_current_key("k")
        return backend, *states

    versions(Held=old)
    backend, elements, entries = open_states()
    elements.add_all([old(number) for number in range(1_000)])
    entries.put_all({number: (number, [old(number)]) for number in range(1_000)})
    snapshot = OperatorSnapshot(backend.snapshot(0))
    assert len([name for name in store if name.startswith("op/c")]) > 10
    versions(Held=new)
    snapshot.adopt_classes_of_keyed_state("op", "op", store)
    assert snapshot.directory.total_bytes == sum(map(len, store.blobs.values()))
    backend, elements, entries = open_states(snapshot.directory)
    assert list(elements.get()) == [new(number) for number in range(1_000)]
    assert entries.get(700) == (700, [new(700)])
    next(elements.get()).y = "changed in place"
    _, elements, entries = open_states(backend.snapshot(0))
    assert [held.y for held in elements.get()] == ["changed in place", *[5] * 999]


def with_a_reader():
    def set_state(self, state):
        self.__dict__.update(state, y=-1)

    return make_dataclass("Held", [("x", int), ("y", int)], namespace={"__setstate__": set_state})


def test_a_class_that_reads_old_values_itself_is_left_to_it(versions):
    old, new = held(), with_a_reader()
    versions(Held=old)
    first = fed(keeping(old))
    versions(Held=new)
    (found,) = keeping(new, update=lambda value, key: None).continue_from(first).feed(3)
    assert (found["last"].x, found["last"].y) == (3, -1)


def by_value(cls):
    """As classes of the main program come to a worker: with copies of the mark that a field has no default."""
    for each in dataclasses.fields(cls):
        for part in ("default", "default_factory"):
            if getattr(each, part) is dataclasses.MISSING:
                setattr(each, part, type(dataclasses.MISSING)())
    return cls


MISFITS = {
    "no default": (held(), held(("must", int)), "it has the new field 'must'. Give the field a default"),
    "no default, in the main program": (held(), by_value(held(("must", int))), "it has the new field 'must'. Give"),
    "another type": (held(), make_dataclass("Held", [("x", str)]), "the field 'x' was int and is str now. Use a new"),
    "no dataclass": (held(), named("x"), "it was a dataclass. Keep it one"),
    "no named tuple": (named("x"), held(), "it was a named tuple. Keep it one"),
    "named tuple, no default": (named("x"), named("a x"), "it has the new field 'a'. Give"),
}


@pytest.mark.parametrize("case", MISFITS)
def test_what_does_not_fit_is_refused_before_the_first_record(versions, case):
    old, new, message = MISFITS[case]
    versions(Held=old)
    first = fed(keeping(old))
    versions(Held=new)
    with pytest.raises(
        InvalidProgramError,
        match=f"values of class Held in the state of operator 'KeyedProcess' that do not .*: {message}",
    ):
        keeping(new).continue_from(first).job.run_batch()
    versions(Held=old)
    assert keeping(old).continue_from(first).feed(3) == [{"last": old(3)}]  # nothing is lost by the attempt


def test_a_class_that_is_gone_is_named_unless_state_has_no_values_of_it(versions):
    old = held()
    versions(Held=old)
    first = fed(keeping(old))
    versions()
    with pytest.raises(
        InvalidProgramError, match=r"values of class Held .* cannot be found in module a_program\. Keep the class where"
    ):
        keeping(old).continue_from(first).job.run_batch()
    versions(Held=old)
    between = keeping(old, update=lambda value, key: None).continue_from(first)
    between.feed(1, 2, 3, 4, 5)
    versions()
    assert keeping(old, update=lambda value, key: None).continue_from(between).feed(3) == [{"last": None}]


class Plain:
    def __init__(self, x):
        self.x = x


def test_any_other_class_that_is_gone_is_named(versions):
    versions(Plain=Plain)
    first = fed(keeping(Plain))
    versions()
    with pytest.raises(
        InvalidProgramError,
        match=r"state of operator 'KeyedProcess' cannot be read from the checkpoint .*'Plain'.*restore the previous",
    ):
        keeping(Plain).continue_from(first).feed(3)


# -- keys ------------------------------------------------------------------------------------------------------------


def keyed(cls, parallelism):
    program = Program(parallelism)
    keeps = Keeps(ValueStateDescriptor("last", Types.LONG()))
    program.stream().key_by(lambda v: ("a", cls(v))).process(keeps).uid("keeps").sink_to(program.sink)
    return program


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (named("x"), named("x y", defaults=[5])),
        (held(frozen=True), held(ADDED, frozen=True)),
    ],
    ids=["named tuple", "dataclass"],
)
def test_the_class_of_keys_cannot_change(versions, old, new, parallelism):
    versions(Held=old)
    first = fed(keyed(old, parallelism))
    assert keyed(old, parallelism).continue_from(first).feed(3) == [{"last": 3}]
    versions(Held=new)
    with pytest.raises(
        InvalidProgramError, match=r"under the key \('a', Held\(x=\d, y=5\)\), whose class Held had other"
    ):
        keyed(new, parallelism).continue_from(first).job.run_batch()


def version_of_key(hashed):
    class Key:
        def __init__(self, x):
            self.x = hashed(x)

        def __eq__(self, other):
            return self.__getstate__() == other.__getstate__()

        def __hash__(self):
            return hash(self.x)

        def __getstate__(self):
            return {"x": int(self.x)}

        def __setstate__(self, state):
            self.x = hashed(state["x"])

    return Key


def test_keys_that_hash_otherwise_are_refused_when_their_page_is_read(versions):
    old, new = version_of_key(int), version_of_key(str)
    versions(Key=old)
    first = fed(keyed(old, 2), *range(50))
    versions(Key=new)
    with pytest.raises(InvalidProgramError, match=r"under the key .*Key.*, whose hash has changed since it was writt"):
        keyed(new, 2).continue_from(first).feed(*range(50))


# -- windows and operator state --------------------------------------------------------------------------------------


class Contents(WindowFunction):
    def apply(self, key, window, inputs):
        yield [(each.x, each.y) for each in inputs]


def test_what_windows_hold_evolves(versions):
    def windows(cls):
        program = Program()
        times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda n, _: n)
        stream = program.stream().assign_timestamps_and_watermarks(times).map(cls)
        ten = TumblingEventTimeWindows.of(Time.milliseconds(10))
        stream.key_by(lambda each: each.x % 2).window(ten).apply(Contents()).uid("windows").sink_to(program.sink)
        return program

    old, new = held(), held(ADDED)
    versions(Held=old)
    first = fed(windows(old), 1, 2, 3)
    versions(Held=new)
    found = windows(new).continue_from(first).feed(4, 20, 21)
    assert sorted(found) == [[(1, 5), (3, 5)], [(2, 5), (4, 5)]]


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("mode", ["list", "union", "broadcast"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (held(frozen=True, slots=True), make_dataclass("Held", [ADDED, ("x", int, 0)], frozen=True, slots=True)),
        (named("gone x", defaults=[0, 0]), named("y x", defaults=[5, 0])),
        (named("a b x", defaults=[0, 0, 0]), named("x")),
    ],
    ids=["dataclass", "named tuple", "shorter named tuple"],
)
def test_what_operator_state_holds_evolves(versions, old, new, mode, parallelism):
    def value(cls):
        return ("k", cls(x=1)) if mode == "broadcast" else cls(x=1)

    versions(Held=old)
    first = fed(typed(mode, parallelism=parallelism), value(old))
    versions(Held=new)
    second = typed(mode, parallelism=parallelism).continue_from(first)
    expected = [value(new)] * (parallelism if mode == "union" else 1)
    assert second.feed(value(new)) == [expected] * parallelism
    third = typed(mode, parallelism=parallelism).continue_from(second)
    assert {type(each[1] if mode == "broadcast" else each) for found in third.feed(value(new)) for each in found} == {
        new
    }


def test_operator_state_of_a_class_that_does_not_fit_is_refused(versions):
    old, new = held(), held(("must", int))
    for mode in ("list", "union"):
        versions(Held=old)
        first = fed(typed(mode), old(1))
        versions(Held=new)
        with pytest.raises(InvalidProgramError, match=r"class Held in the state of operator 'typed' .* field 'must'"):
            typed(mode).continue_from(first).job.run_batch()


def test_elements_of_union_state_from_before_they_were_kept_in_parts_are_taken_as_they_are(versions):
    old, new = held(), held(ADDED)
    versions(Held=old)
    notes = RecordNotes({})
    blob = dumps([old(1), old(2)], "state")
    notes.note(blob)
    versions(Held=new)
    assert united([7, UnionPart(blob, notes.known), b"old"], "op") == [7, new(1), new(2), b"old"]


# -- a job that started from a savepoint ------------------------------------------------------------------------------


def test_classes_are_known_of_state_that_came_from_a_savepoint_and_was_not_touched_since(versions, tmp_path):
    old, new = held(), held(("must", int))
    versions(Held=old)
    second = keeping(old).start(fed(keeping(old)).stop(tmp_path))
    second.feed(9)
    versions(Held=new)
    with pytest.raises(InvalidProgramError, match="field 'must'"):
        keeping(new).continue_from(second).job.run_batch()


# -- finding classes in what is written ------------------------------------------------------------------------------


class Money(NamedTuple):
    amount: int


@dataclass
class Price:
    money: Money
    note: str = ""


def test_every_class_in_a_pickle_is_found_wherever_it_is():
    for content in ([Price(Money(1))], {Money(1): {"a": (Price(Money(2)), b"\x94\x93\x94")}}):
        notes = RecordNotes({})
        notes.note(dumps(content, "state"))
        here = __name__
        assert {name: known["fields"] for name, known in notes.known.items()} == {
            f"{here}:Money": ["amount"],
            f"{here}:Price": ["money", "note"],
        }


def test_other_values_are_not_taken_for_classes(monkeypatch):
    looked = []
    monkeypatch.setattr(RecordNotes, "_note_all", lambda notes, blob: looked.append(blob))
    chance = random.Random(1)
    notes = RecordNotes({})
    for _ in range(50):
        numbers = [chance.random() for _ in range(500)]
        notes.note(dumps([numbers, [chance.randrange(1 << 40) for _ in range(500)], list(map(str, numbers))], "state"))
    assert looked == []


def test_a_class_is_looked_at_once(monkeypatch):
    looked = []
    look = RecordNotes._note_all
    monkeypatch.setattr(RecordNotes, "_note_all", lambda notes, blob: (looked.append(blob), look(notes, blob)))
    notes = RecordNotes({})
    for number in range(10):
        notes.note(dumps([Money(number)] * (number + 1), "state"))
    assert len(looked) == 1
    notes.note(dumps([Money(1), Price(Money(1))], "state"))
    assert len(looked) == 2
