"""Types of state that change between two versions of a program (rules J03 to J10)."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from tests.runtime.savepoint.versions import Keeps, Program, restored, saved

from penstock.common import Row, Time, Types, WatermarkStrategy
from penstock.common.errors import InvalidProgramError, PenstockError, SavepointError
from penstock.common.typeinfo import TypeInformation
from penstock.datastream import CheckpointedFunction, MapFunction, WindowFunction
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.formats.avro import AvroSchema, GenericRecordAvroTypeInfo
from penstock.state_processor import SavepointReader


def avro(*fields, name="Reading", **more) -> TypeInformation:
    return GenericRecordAvroTypeInfo(AvroSchema({"type": "record", "name": name, "fields": list(fields), **more}))


def a_field(name, kind, **more):
    return {"name": name, "type": kind, **more}


OLD = avro(a_field("id", "string"), a_field("value", "int"), a_field("gone", "string"))
NEW = avro(a_field("value", "double"), a_field("id", "string"), a_field("unit", "string", default="C"))


def old_record(value, key):
    return {"id": key, "value": value, "gone": "x"}


def states(type_info):
    expiring = ValueStateDescriptor("expiring", type_info)
    expiring.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    return [ValueStateDescriptor("last", type_info), ListStateDescriptor("all", type_info), expiring]


def test_avro_records_may_lose_fields_and_get_fields_with_defaults(tmp_path):
    path = saved(tmp_path, *states(OLD), update=old_record)
    program = restored(path, *states(NEW), update=lambda value, key: {"id": key, "value": 0.5, "unit": "K"})
    adapted = {"id": "3", "value": 3.0, "unit": "C"}
    (found,) = program.feed(3)
    assert found == {"last": adapted, "all": [adapted], "expiring": adapted}
    assert type(found["last"]["value"]) is float
    # The next savepoint has the new schema: the old one is not needed any more.
    newest = avro(a_field("id", "string"), a_field("unit", ["null", "string"]))
    again = restored(
        program.stop(tmp_path), *states(newest), parallelism=1, update=lambda value, key: {"id": key, "unit": None}
    )
    assert again.feed(3, 4) == [
        {"last": {"id": "3", "unit": "K"}, "all": [{"id": "3", "unit": "C"}, {"id": "3", "unit": "K"}],
         "expiring": {"id": "3", "unit": "K"}},
        {"last": {"id": "4", "unit": "C"}, "all": [{"id": "4", "unit": "C"}], "expiring": {"id": "4", "unit": "C"}},
    ]  # fmt: skip


def test_avro_records_in_maps_lists_and_nested_records_evolve(tmp_path):
    def nested(inner):
        return Types.LIST(
            avro(a_field("at", "long"), a_field("inner", {"type": "array", "items": inner}), name="Outer")
        )

    def inner(*fields):
        return {"type": "record", "name": "Inner", "fields": list(fields)}

    before = nested(inner(a_field("a", "int")))
    after = nested(inner(a_field("a", "long"), a_field("b", ["null", "int"], default=None)))

    def kept(value, key):
        return [{"at": value, "inner": [{"a": value}, {"a": value + 1}]}]

    path = saved(tmp_path, ValueStateDescriptor("last", before), update=kept)
    found = restored(path, ValueStateDescriptor("last", after), update=kept).feed(2)
    assert found == [{"last": [{"at": 2, "inner": [{"a": 2, "b": None}, {"a": 3, "b": None}]}]}]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (avro(a_field("id", "string"), a_field("added", "int")), "field 'added' was added without a default"),
        (avro(a_field("value", "string")), "field 'value': Avro's int cannot be read as string"),
        (avro(a_field("value", ["null", "boolean"])), r"field 'value': Avro's int is not among \[null, boolean\]"),
        (avro(a_field("id", "string"), name="Other"), "the record 'Reading' is not 'Other'"),
        (Types.ROW_NAMED(["id"], [Types.STRING()]), "AVRO cannot become ROW"),
        (Types.STRING(), "AVRO cannot become STRING"),
    ],
    ids=["no default", "type", "union", "name", "row", "string"],
)
def test_an_incompatible_avro_schema_is_refused_when_the_job_starts(tmp_path, changed, message):
    path = saved(tmp_path, ValueStateDescriptor("last", OLD), update=old_record)
    with pytest.raises(
        InvalidProgramError, match=f"state 'last' of operator .* was stored with another type: {message}"
    ):
        restored(path, ValueStateDescriptor("last", changed), update=old_record).job.run()


def test_aliases_unions_enums_and_fixed_follow_avros_rules(tmp_path):
    symbols = {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}
    old = avro(a_field("kind", symbols), a_field("old_name", "int"), a_field("maybe", "int"))
    more = {"type": "enum", "name": "Kind", "symbols": ["B", "A", "C"]}
    new = avro(
        a_field("kind", more), a_field("new_name", "long", aliases=["old_name"]), a_field("maybe", ["null", "int"])
    )

    def record(value, key):
        return {"kind": "A", "old_name": value, "maybe": 7}

    path = saved(tmp_path, ValueStateDescriptor("last", old), update=record)
    found = restored(path, ValueStateDescriptor("last", new), update=record).feed(3)
    assert found == [{"last": {"kind": "A", "new_name": 3, "maybe": 7}}]
    less = avro(a_field("kind", {"type": "enum", "name": "Kind", "symbols": ["B"]}))
    with pytest.raises(InvalidProgramError, match="the symbol 'A' of enum 'Kind' is gone"):
        restored(path, ValueStateDescriptor("last", less), update=record).job.run()


def test_a_value_that_never_fitted_its_avro_schema_is_named(tmp_path):
    path = saved(tmp_path, ValueStateDescriptor("last", OLD), update=lambda value, key: {"nonsense": value})
    with pytest.raises(PenstockError, match=r"'nonsense'.* does not match the Avro schema 'Reading'"):
        restored(path, ValueStateDescriptor("last", NEW), update=old_record).job.run()


# -- rows -------------------------------------------------------------------------------------------------------------


def test_rows_in_rows_lists_and_maps_evolve_twice_in_a_row(tmp_path):
    def shape(inner):
        return Types.ROW_NAMED(["rows", "map"], [Types.LIST(inner), Types.MAP(Types.STRING(), inner)])

    first = Types.ROW_NAMED(["a"], [Types.INT()])
    second = Types.ROW_NAMED(["a", "b"], [Types.LONG(), Types.INT()])
    third = Types.ROW_NAMED(["b"], [Types.LONG()])

    def kept(value, key):
        return Row(rows=[Row(a=value)], map={key: Row(a=value)})

    path = saved(tmp_path, ValueStateDescriptor("last", shape(first)), update=kept)
    program = restored(
        path, ValueStateDescriptor("last", shape(second)), update=lambda value, key: Row(rows=[Row(a=1, b=2)], map={})
    )
    assert program.feed(3) == [{"last": Row(rows=[Row(a=3, b=None)], map={"3": Row(a=3, b=None)})}]
    path = program.stop(tmp_path)
    wrong = shape(Types.ROW_NAMED(["b"], [Types.STRING()]))  # the second version has the first b
    with pytest.raises(InvalidProgramError, match="field 'b': INT cannot become STRING"):
        restored(path, ValueStateDescriptor("last", wrong), update=kept).job.run()
    found = restored(path, ValueStateDescriptor("last", shape(third)), update=kept, parallelism=1).feed(3, 4)
    assert found == [{"last": Row(rows=[Row(b=2)], map={})}, {"last": Row(rows=[Row(b=None)], map={"4": Row(b=None)})}]


# -- classes: each version of a program has its own module of the same name --------------------------------------------


NAMED = Types.ROW_NAMED(["id", "value"], [Types.STRING(), Types.INT()])
BY_PLACE = Types.ROW([Types.STRING(), Types.INT()])


@pytest.mark.parametrize(
    ("before", "row", "after", "expected"),
    [
        (BY_PLACE, Row("a", 1), NAMED, {"id": "a", "value": 1}),
        (NAMED, Row(id="a", value=1), BY_PLACE, {"f0": "a", "f1": 1}),
        (
            BY_PLACE,
            Row("a", 1),
            Types.ROW([Types.STRING(), Types.LONG(), Types.INT()]),
            {"f0": "a", "f1": 1, "f2": None},
        ),
    ],
    ids=["named", "not named any more", "longer"],
)
def test_fields_without_names_are_found_by_their_places(tmp_path, before, row, after, expected):
    path = saved(tmp_path, ValueStateDescriptor("last", before), update=lambda value, key: row)
    (found,) = restored(path, ValueStateDescriptor("last", after), update=lambda value, key: row).feed(1)
    assert found["last"].as_dict() == expected
    wrong = Types.ROW_NAMED(["value", "id"], [Types.INT(), Types.STRING()])
    if before is BY_PLACE:
        with pytest.raises(InvalidProgramError, match="field 'value': STRING cannot become INT"):
            restored(path, ValueStateDescriptor("last", wrong)).job.run()


def test_a_tuple_that_stands_for_a_row_evolves_with_it(tmp_path):
    path = saved(tmp_path, ValueStateDescriptor("last", NAMED), update=lambda value, key: (key, value))
    after = Types.ROW_NAMED(["new", "value", "id"], [Types.INT(), Types.INT(), Types.STRING()])
    assert restored(path, ValueStateDescriptor("last", after)).feed(3) == [{"last": (None, 3, "3")}]


def test_dataclasses_in_lists_maps_and_other_dataclasses_evolve(tmp_path, versions):
    @dataclass
    class Inner:
        x: int
        gone: str = "old"

    @dataclass(frozen=True)
    class Outer:
        inner: Inner
        many: list
        by_name: dict

    versions(Inner=Inner, Outer=Outer)
    listed, mapped = ListStateDescriptor("list"), MapStateDescriptor("map", Types.LONG(), Types.PICKLED_BYTE_ARRAY())
    path = saved(
        tmp_path, ValueStateDescriptor("last"), listed, mapped,
        update=lambda value, key: Outer(Inner(value), [Inner(1)], {key: Inner(2)}),
    )  # fmt: skip

    @dataclass(slots=True)
    class NewInner:
        added: list = field(default_factory=lambda: ["new"])
        x: int = 0

    @dataclass(frozen=True)
    class NewOuter:
        by_name: dict
        inner: NewInner
        added: str = "with a default"

    module = versions(Inner=NewInner, Outer=NewOuter)
    program = restored(path, ValueStateDescriptor("last"), listed, mapped, update=lambda value, key: "another")
    (found,) = program.feed(3)
    expected = module.Outer({"3": module.Inner(["new"], 2)}, module.Inner(["new"], 3))
    assert found["last"] == expected
    assert found["list"] == [expected]
    assert found["last"].inner.added is not found["list"][0].inner.added  # each has a list of its own

    @dataclass
    class Narrow:
        x: int
        must: int

    versions(Inner=Narrow, Outer=NewOuter)
    must = Narrow.__dataclass_fields__["must"]
    for missing in (dataclasses.MISSING, type(dataclasses.MISSING)()):  # as in a class that came to a worker by value
        must.default = must.default_factory = missing
        with pytest.raises(SavepointError, match=r"the dataclass Inner has a new field 'must'.*give it a default"):
            restored(path, ValueStateDescriptor("last"), listed, mapped).job.run()


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (int, str, "'x' was int and is str now"),
        (list[int], dict[int, int], "'x' was list and is dict now"),
        (int | str | None, "int | None", "'x' was int | str and is int now"),
        (int, float, None),
        (int, int | None, None),
        (bool, "int", None),
        (int, Any, None),
        (int, "Unknown", None),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["dataclass", "named tuple"])
def test_a_field_of_another_type_is_refused_when_the_job_starts(tmp_path, versions, kind, before, after, message):
    def version(annotation):
        if kind == "dataclass":
            return dataclasses.make_dataclass("Inner", [("x", annotation)])
        return NamedTuple("Inner", [("x", annotation)])

    inner = version(before)
    versions(Inner=inner)
    listed = ListStateDescriptor("list")  # also deep inside of what is kept
    path = saved(tmp_path, listed, update=lambda value, key: {"at": (value, inner(value))})
    versions(Inner=version(after))
    program = restored(path, listed, update=lambda value, key: "another")
    if message is None:
        assert program.feed(3)[0]["list"][0]["at"][1].x == 3
        return
    with pytest.raises(SavepointError) as failure:
        program.job.run()
    assert "state of operator 'KeyedProcess' (uid 'keeps') cannot be read" in str(failure.value)
    assert f"values of Inner with a field of another type: {message}" in str(failure.value)


def test_a_class_that_was_renamed_or_removed_is_named_in_the_error(tmp_path, versions):
    @dataclass
    class Old:
        x: int

    versions(Old=Old)
    path = saved(tmp_path, ValueStateDescriptor("last"), update=lambda value, key: Old(value))
    module = versions(New=dataclasses.make_dataclass("New", ["x"]))
    with pytest.raises(
        SavepointError, match=r"values of class Old of module a_program, which cannot be found.*keep the"
    ):
        restored(path, ValueStateDescriptor("last")).job.run()
    module.Old = module.New  # what the message asks for
    found = restored(path, ValueStateDescriptor("last"), update=lambda value, key: None).feed(3)
    assert found == [{"last": module.New(3)}]


class OldKey(NamedTuple):
    id: int
    kind: str


class NewKey(NamedTuple):
    id: int
    kind: str
    region: str = "EU"


def test_a_changed_key_is_refused_and_not_lost(tmp_path, versions):
    """Keys do not evolve, as in Flink: state would be where no record looks for it."""
    versions(Key=OldKey)

    def program(cls, parallelism, savepoint=None):
        made = Program(parallelism)
        keyed = made.stream().key_by(lambda v: cls(v, "k"))
        keyed.process(Keeps(ValueStateDescriptor("last", Types.LONG()))).uid("keeps").sink_to(made.sink)
        return made.start(savepoint)

    first = program(OldKey, 2)
    first.feed(1, 2, 3, 4, 5)
    path = first.stop(tmp_path)
    assert sorted(each["last"] for each in program(OldKey, 3, path).feed(1, 2, 3, 4, 5)) == [1, 2, 3, 4, 5]
    versions(Key=NewKey)
    with pytest.raises(SavepointError, match=r"key Key\(id=\d, kind='k', region='EU'\).* keys cannot change"):
        program(NewKey, 2, path).job.run()
    # Who reads a savepoint sees keys as they are now, and can write another one.
    assert {key.region for key, _ in SavepointReader.read(path).read_keyed_state("keeps", "last")} == {"EU"}


class Contents(WindowFunction):
    def apply(self, key, window, inputs):
        yield [(reading.value, getattr(reading, "unit", None)) for reading in inputs]


def test_what_windows_hold_evolves(tmp_path, versions):
    @dataclass
    class Reading:
        at: int
        value: int

    versions(Reading=Reading)

    def windows(cls, savepoint=None):
        made = Program(2)
        times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda n, _: n)
        readings = made.stream().assign_timestamps_and_watermarks(times).map(lambda n: cls(n, n))
        readings.key_by(lambda r: r.value % 2).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).apply(
            Contents()
        ).uid("windows").sink_to(made.sink)
        return made.start(savepoint)

    first = windows(Reading)
    first.feed(1, 2, 3)
    path = first.stop(tmp_path)
    newer = dataclasses.make_dataclass("Reading", [("at", int), ("value", int), ("unit", str, field(default="C"))])
    versions(Reading=newer)
    held = list(SavepointReader.read(path).read_window_state("windows"))
    assert sorted(r.unit for _, _, contents in held for r in contents) == ["C"] * 3
    found = windows(newer, path).feed(4, 20, 21)
    assert sorted(found) == [[(1, "C"), (3, "C")], [(2, "C"), (4, "C")]]


class Seen(MapFunction, CheckpointedFunction):
    """Keeps objects of a class in list state and in broadcast state, and emits what it was given at the start."""

    def __init__(self, cls):
        self.cls = cls

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.list = store.get_list_state(ListStateDescriptor("list"))
        self.shared = store.get_broadcast_state(MapStateDescriptor("shared"))
        self.given = list(self.list.get()), dict(self.shared.items())

    def snapshot_state(self, context):
        pass

    def map(self, value):
        self.list.add(self.cls(value))
        self.shared.put("last", self.cls(value))
        return self.given


def test_what_operator_state_holds_evolves(tmp_path, versions):
    old = dataclasses.make_dataclass("Held", [("x", int), ("gone", str, "old")])
    new = dataclasses.make_dataclass("Held", [("x", int), ("added", str, "new")])

    def program(cls, savepoint=None):
        made = Program(1)
        made.stream().rebalance().map(Seen(cls)).uid("seen").sink_to(made.sink)
        return made.start(savepoint)

    versions(Held=old)
    first = program(old)
    first.feed(1, 2)
    path = first.stop(tmp_path)
    versions(Held=new)
    assert program(new, path).feed(3) == [([new(1), new(2)], {"last": new(2)})]
