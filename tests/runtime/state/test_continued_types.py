"""A program that continues its checkpoint with other types of keys or states: refused or adapted, and never without its
state (rules J08 to J10)."""

import copy
import pickle

import pytest
from tests.runtime.savepoint.versions import OTHER_OPERATOR_TYPES, Keeps, Program, typed

from penstock.common import Row, Time, Types, WatermarkStrategy
from penstock.common.errors import InvalidProgramError
from penstock.connectors.sinks import CollectSink
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from penstock.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.formats.avro import AvroSchema, GenericRecordAvroTypeInfo
from penstock.runtime.state.snapshots import StageSnapshot
from penstock.testing import MiniCluster

LAST = ValueStateDescriptor("last", Types.LONG())


def same(value):
    return value


def keyed(selector=str, key_type=None, *descriptors, update=lambda value, key: value, parallelism=2):
    program = Program(parallelism)
    keeps = Keeps(*(descriptors or (LAST,)), update=update)
    program.stream().key_by(selector, key_type=key_type).process(keeps).uid("keeps").sink_to(program.sink)
    return program


def keeping(*descriptors, **options):
    return keyed(str, None, *descriptors, **options)


def fed(program, *values):
    program.start().feed(*(values or (1, 2, 3, 4, 5)))
    return program


# -- keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", [Types.INT(), None], ids=["declared", "seen"])
def test_keys_that_are_declared_to_be_of_another_type_are_refused_before_the_first_record(declared):
    before = fed(keyed(same, declared))
    reason = "INT cannot become STRING" if declared else "it has values of type int, which cannot become STRING"
    with pytest.raises(
        InvalidProgramError, match=f"'KeyedProcess' had another key type .*: {reason}. Key types cannot change"
    ):
        keyed(str, Types.STRING()).continue_from(before).job.run_batch()  # without a record
    for fine in (Types.INT(), Types.LONG(), None):
        assert keyed(same, fine).continue_from(before).feed(2) == [{"last": 2}]


def test_keys_of_a_declared_type_stay_it_though_a_version_in_between_declared_nothing():
    between = keyed(same).continue_from(fed(keyed(same, Types.INT())))
    assert between.feed(2) == [{"last": 2}]
    with pytest.raises(InvalidProgramError, match="INT cannot become STRING"):
        keyed(str, Types.STRING()).continue_from(between).job.run_batch()


def test_a_program_that_has_not_changed_may_have_keys_of_any_form():
    def mixed(value):
        return value if value < 10 else str(value)

    before = fed(keyed(mixed, parallelism=1), 1, 2, 3)
    again = keyed(mixed, parallelism=1).continue_from(before)
    assert again.feed(11, 12) == [{"last": None}, {"last": None}]
    with pytest.raises(InvalidProgramError, match="is a tuple of 1, and was a number or a str"):
        keyed(lambda value: (value,), parallelism=1).continue_from(again).feed(1)


OTHER_KEYS = [
    (same, str, "is a str, and was a number"),
    (str, lambda v: (v,), "is a tuple of 1, and was a str"),
    (lambda v: (v, 0), lambda v: (v, 0, 0), "is a tuple of 3, and was a tuple of 2"),
    (lambda v: ("a", v), lambda v: ("a", str(v)), "is a tuple of 2 whose field 1 is a str, and was a number"),
    (Row, lambda v: (v,), "is a tuple of 1, and was a Row of 1"),
    (str, lambda v: str(v).encode(), "is a bytes, and was a str"),
]


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize(("before", "after", "message"), OTHER_KEYS, ids=[message for *_, message in OTHER_KEYS])
def test_a_key_selector_that_returns_something_else_is_refused_with_the_first_records(
    before, after, message, parallelism
):
    first = fed(keyed(before, parallelism=parallelism))
    second = keyed(after, parallelism=parallelism).continue_from(first)
    with pytest.raises(
        InvalidProgramError, match=f"a key of operator 'KeyedProcess' {message}.*ignore-unclaimed-state"
    ):
        second.feed(1, 2)
    assert keyed(before, parallelism=parallelism).continue_from(first).feed(3, 9) == [{"last": 3}, {"last": None}]
    allowed = keyed(after, parallelism=parallelism).continue_from(first, allow_non_restored_state=True)
    assert allowed.feed(3) == [{"last": None}]


def test_the_same_holds_for_a_savepoint(tmp_path):
    path = fed(keyed(same)).stop(tmp_path)
    with pytest.raises(InvalidProgramError, match="is a str, and was a number"):
        keyed(str).start(path).feed(1)
    assert keyed(str).start(path, allow_non_restored_state=True).feed(1) == [{"last": None}]


class Counts(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield ctx.get_current_key(), self.count.value()


def test_one_program_may_have_keys_of_several_types():
    env = StreamExecutionEnvironment(executor=MiniCluster(cold=True, max_records=1)).set_parallelism(1)
    sink = CollectSink()
    env.from_collection([1, 1, "a", "a", (1,), b"a", None, 1]).key_by(same).process(Counts()).sink_to(sink)
    env.execute()
    found = []
    while not sink.records.empty():
        found += sink.records.get_nowait()
    assert found[-1] == (1, 3)


def test_numbers_of_any_type_are_the_same_keys():
    assert keyed(float).continue_from(fed(keyed(same))).feed(2) == [{"last": 2}]


# -- keyed state -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            ValueStateDescriptor("last"),
            ValueStateDescriptor("last", Types.STRING()),
            "type int, which cannot become STR",
        ),
        (
            ListStateDescriptor("last"),
            ListStateDescriptor("last", Types.STRING()),
            "type int, which cannot become STRI",
        ),
        (MapStateDescriptor("last"), MapStateDescriptor("last", Types.STRING(), Types.INT()), "cannot become STRING"),
        (MapStateDescriptor("last"), MapStateDescriptor("last", Types.INT(), Types.STRING()), "cannot become STRING"),
        (LAST, ValueStateDescriptor("last", Types.STRING()), "LONG cannot become STRING"),
        (LAST, ValueStateDescriptor("last", Types.INT()), "LONG cannot become INT"),
    ],
    ids=["value", "list", "keys of a map", "values of a map", "declared", "narrower"],
)
@pytest.mark.parametrize("ttl", [False, True], ids=["", "with TTL"])
def test_a_state_of_another_type_is_refused_before_the_first_record(before, after, message, ttl):
    before, after = copy.copy(before), copy.copy(after)
    if ttl:
        for descriptor in (before, after):
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    first = fed(keeping(before))
    second = keeping(after).continue_from(first)
    with pytest.raises(InvalidProgramError, match=f"state 'last' of operator .* another type: .*{message}"):
        second.job.run_batch()
    assert keeping(before).continue_from(first).feed(3) == keeping(before).continue_from(first).feed(3)


def test_what_is_in_a_state_is_looked_at_only_when_its_type_is_declared_for_the_first_time(monkeypatch):
    second = keeping(LAST).continue_from(fed(keeping(ValueStateDescriptor("last"))))
    assert second.feed(3) == [{"last": 3}]
    monkeypatch.setattr("penstock.runtime.state.backend.SeenTypes", None)
    assert keeping(LAST).continue_from(second).feed(3) == [{"last": 3}]


def test_rows_and_avro_records_are_adapted():
    old, new = (Types.ROW_NAMED(names, [Types.LONG()] * len(names)) for names in (["a", "gone"], ["added", "a"]))
    first = fed(keeping(ValueStateDescriptor("last", old), update=lambda v, key: Row(a=v, gone=0)))
    second = keeping(ValueStateDescriptor("last", new), update=lambda v, key: Row(added=1, a=v)).continue_from(first)
    assert second.feed(3) == [{"last": Row(added=None, a=3)}]

    def avro(*fields):
        return GenericRecordAvroTypeInfo(AvroSchema({"type": "record", "name": "R", "fields": list(fields)}))

    a, b = {"name": "a", "type": "int"}, {"name": "b", "type": "string"}
    first = fed(keeping(ValueStateDescriptor("last", avro(a)), update=lambda v, key: {"a": v}))
    second = keeping(ValueStateDescriptor("last", avro(a, {**b, "default": "x"})), update=lambda v, key: None)
    assert second.continue_from(first).feed(3) == [{"last": {"a": 3, "b": "x"}}]
    with pytest.raises(InvalidProgramError, match="field 'b' was added without a default"):
        keeping(ValueStateDescriptor("last", avro(a, b))).continue_from(first).job.run_batch()


def test_time_to_live_cannot_be_switched_on_or_off():
    expiring = ValueStateDescriptor("last", Types.LONG())
    expiring.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    for before, after in ((LAST, expiring), (expiring, LAST)):
        with pytest.raises(InvalidProgramError, match=r"is a value state.* and cannot be used as a value state"):
            keeping(after).continue_from(fed(keeping(before))).job.run_batch()


def windows(assigner):
    program = Program(1)
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda n, _: n)
    stream = program.stream().assign_timestamps_and_watermarks(times).key_by(lambda n: 0)
    stream.window(assigner).reduce(lambda a, b: a + b).uid("windows").sink_to(program.sink)
    return program


def milliseconds(kind, *numbers):
    return kind(*map(Time.milliseconds, numbers))


TEN = milliseconds(TumblingEventTimeWindows.of, 10)


@pytest.mark.parametrize(
    "other",
    [
        milliseconds(TumblingEventTimeWindows.of, 20),
        milliseconds(TumblingEventTimeWindows.of, 10, 5),
        milliseconds(SlidingEventTimeWindows.of, 10, 5),
        milliseconds(EventTimeSessionWindows.with_gap, 10),
    ],
    ids=["size", "offset", "sliding", "sessions"],
)
def test_windows_of_another_kind_size_or_offset_are_refused_before_the_first_record(other):
    first = fed(windows(TEN), 1, 2, 3)
    with pytest.raises(
        InvalidProgramError, match=r"had tumbling event-time windows of 10 ms with offset 0 ms .*cannot"
    ):
        windows(other).continue_from(first).job.run_batch()
    assert windows(TEN).continue_from(first).feed(4, 30) == [10]


# -- operator state --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "seen"])
@pytest.mark.parametrize(("mode", "before", "after", "value"), OTHER_OPERATOR_TYPES)
def test_operator_state_of_another_type_is_refused_before_the_first_record(mode, before, after, value, declared):
    first = fed(typed(mode, *(before if declared else ())), value)
    reason = "STRING cannot become LONG" if declared else "it has values of type str, which cannot become LONG"
    with pytest.raises(InvalidProgramError, match=f"operator state 'kept' of operator 'typed' was stored .*: {reason}"):
        typed(mode, *after).continue_from(first).job.run_batch()
    assert typed(mode, *before).continue_from(first).feed(value) == [[value]]


def test_operator_state_of_another_kind_is_refused():
    with pytest.raises(
        InvalidProgramError, match="'kept' of operator 'typed' is list state and cannot be used as union"
    ):
        typed("union").continue_from(fed(typed("list"), 1)).job.run_batch()


# -- what was written before these things were noted -----------------------------------------------------------------


def test_a_checkpoint_from_before_types_of_keys_and_classes_were_noted_is_continued():
    first = fed(keyed(same, Types.INT()))
    offset, channels, *others = pickle.loads(first.job.snapshot())
    for key, (blobs, encoded) in channels.items():
        known = StageSnapshot.decode(encoded)
        for task in known.tasks.values():
            for operator in task.operators.values():
                del operator.records
                if operator.directory is not None:
                    del operator.directory.records
                    del operator.directory.key_types
        version_1 = {vertex: (task.clocks, task.operators) for vertex, task in known.tasks.items()}
        channels[key] = (blobs, pickle.dumps({**version_1, -2: known.incarnation}))
    old = pickle.dumps((offset, channels, *others))
    assert keyed(same, Types.INT()).start(snapshot=old).feed(2) == [{"last": 2}]
    assert keyed(same).start(snapshot=old).feed(2) == [{"last": 2}]
    with pytest.raises(InvalidProgramError, match="values of type int, which cannot become STRING"):
        keyed(str, Types.STRING()).start(snapshot=old).job.run_batch()
