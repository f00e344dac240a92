"""Records are snapshots: what happens to an object after it was emitted shows nowhere (rule 3.4)."""

import pytest
from support import by_key

from penstock.common import Row
from penstock.datastream import (
    CoFlatMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
)
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

pytestmark = pytest.mark.variants(modes=["STREAMING"])

SIDE = OutputTag("side")


class Reuse(MapFunction):
    """The same list again and again."""

    def open(self, runtime_context):
        self.list = []

    def map(self, value):
        self.list.append(value)
        return self.list


class ReuseInTuple(MapFunction):
    def open(self, runtime_context):
        self.list = []

    def map(self, value):
        self.list.append(value)
        return len(self.list), self.list


class ReuseFlat(FlatMapFunction):
    def open(self, runtime_context):
        self.row = Row(n=0)

    def flat_map(self, value):
        self.row["n"] = value
        yield self.row
        self.row["n"] = -value
        yield self.row


class ReuseProcess(ProcessFunction):
    def process_element(self, value, ctx):
        changed = {"n": value}
        yield changed
        ctx.output(SIDE, changed)
        changed["n"] = -value
        yield SIDE, changed
        yield changed
        changed["n"] = None


class EmitState(KeyedProcessFunction):
    """Emits the objects that the state holds, and goes on changing them."""

    def open(self, runtime_context: RuntimeContext):
        self.history = runtime_context.get_state(ValueStateDescriptor("history"))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen"))

    def process_element(self, value, ctx):
        history = self.history.value() or []
        history.append(value[1])
        self.history.update(history)
        self.seen.put("history", history)
        yield value[0], history
        ctx.output(SIDE, (value[0], self.seen.get("history")))
        ctx.timer_service().register_event_time_timer(1)

    def on_timer(self, timestamp, ctx):
        history = self.history.value()
        yield "timer", history
        history.append("changed after the timer emitted it")


class EmitStateBare(KeyedProcessFunction):
    """The object itself, not in a tuple."""

    def open(self, runtime_context: RuntimeContext):
        self.history = runtime_context.get_state(ValueStateDescriptor("history"))

    def process_element(self, value, ctx):
        history = self.history.value() or [value[0]]
        history.append(value[1])
        self.history.update(history)
        return [history]


class EmitStateFlat(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.list = runtime_context.get_list_state(ListStateDescriptor("list"))

    def flat_map(self, value):
        self.list.add(value)
        yield value[0], [element[1] for element in self.list]


class EmitStateCo(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.both = runtime_context.get_state(ValueStateDescriptor("both"))

    def _add(self, value):
        both = self.both.value() or []
        both.append(value[1])
        self.both.update(both)
        yield value[0], both

    def process_element1(self, value, ctx):
        return self._add(value)

    def process_element2(self, value, ctx):
        return self._add(value)


class Spoil(MapFunction):
    """Changes its input."""

    def map(self, value):
        value.append("spoiled")
        return value


class SpoilCo(CoFlatMapFunction):
    def flat_map1(self, value):
        value.append("spoiled")
        yield value

    def flat_map2(self, value):
        value.clear()
        yield value


def test_an_object_that_is_emitted_again_and_again(env, run):
    source = env.from_collection([1, 2, 3])
    rows = source.flat_map(ReuseFlat()).set_parallelism(1)
    processed = source.process(ReuseProcess()).set_parallelism(1)
    results = run(
        mapped=source.map(Reuse()).set_parallelism(1),
        in_tuple=source.map(ReuseInTuple()).set_parallelism(1),
        rows=rows,
        processed=processed,
        side=processed.get_side_output(SIDE),
    )
    batches = len(results["mapped"])
    assert batches == 3
    assert [record["n"] for record in results["rows"]] == [1, -1, 2, -2, 3, -3]
    assert [record["n"] for record in results["processed"]] == [1, -1, 2, -2, 3, -3]
    assert [record["n"] for record in results["side"]] == [1, -1, 2, -2, 3, -3]
    # Each list has grown by one since the one before; a task that is forgotten starts with an empty one.
    for record in [*results["mapped"], *[record[1] for record in results["in_tuple"]]]:
        assert record == list(range(record[0], record[0] + len(record)))
    assert [len(record) for record in results["mapped"]] in ([1, 2, 3], [1, 1, 1])


@pytest.mark.on_spark((1, "STREAMING"))
def test_emitted_state_objects_are_snapshots(env, run):
    source = env.from_collection([("a", 1), ("a", 2), ("b", 3), ("a", 4)])
    keyed = source.key_by(0)
    emitted = keyed.process(EmitState())
    results = run(
        emitted=emitted,
        side=emitted.get_side_output(SIDE),
        bare=keyed.process(EmitStateBare()),
        flat=keyed.flat_map(EmitStateFlat()),
        co=keyed.connect(source.filter(lambda v: False).key_by(0)).process(EmitStateCo()),
        reduced=source.map(lambda v: (v[0], [v[1]])).key_by(0).reduce(extend),
    )
    expected = {"a": [("a", [1]), ("a", [1, 2]), ("a", [1, 2, 4])], "b": [("b", [3])]}
    timers = sorted(record[1] for record in results["emitted"] if record[0] == "timer")
    assert timers == [[1, 2, 4], [3]]
    assert by_key(record for record in results["emitted"] if record[0] != "timer") == expected
    for name in ("side", "flat", "co", "reduced"):
        assert by_key(results[name]) == expected, name
    assert by_key(results["bare"]) == {"a": [["a", 1], ["a", 1, 2], ["a", 1, 2, 4]], "b": [["b", 3]]}


def extend(current, new):
    current[1].extend(new[1])
    return current


def test_consumers_of_one_stream_do_not_see_each_others_changes(env, run):
    lists = env.from_collection([[1], [2]])
    results = run(
        spoiled=lists.map(Spoil()),
        spoiled_twice=lists.map(Spoil()).map(Spoil()),
        untouched=lists.map(lambda value: value),
        connected=lists.connect(lists).flat_map(SpoilCo()),
        after_union=lists.union(lists).map(len),
    )
    assert sorted(results["spoiled"]) == [[1, "spoiled"], [2, "spoiled"]]
    assert sorted(results["spoiled_twice"]) == [[1, "spoiled", "spoiled"], [2, "spoiled", "spoiled"]]
    assert sorted(results["untouched"]) == [[1], [2]]
    assert sorted(results["connected"], key=str) == [[1, "spoiled"], [2, "spoiled"], [], []]
    assert results["after_union"] == [1, 1, 1, 1]


def test_side_outputs_and_main_output_do_not_share_objects(env, run):
    class Both(ProcessFunction):
        def process_element(self, value, ctx):
            yield SIDE, value
            yield value

    both = env.from_collection([[1], [2]]).process(Both())
    results = run(main=both.map(Spoil()), side=both.get_side_output(SIDE))
    assert sorted(results["side"]) == [[1], [2]]
    assert sorted(results["main"]) == [[1, "spoiled"], [2, "spoiled"]]


class KeepAndForward(KeyedProcessFunction):
    """Forwards its input, and shows what it kept of the input before."""

    def open(self, runtime_context: RuntimeContext):
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))

    def process_element(self, value, ctx):
        ctx.output(SIDE, self.last.value())
        self.last.update(value)
        yield value


class KeepAndFilter(FilterFunction):
    """Lets everything pass whose predecessor was not spoiled."""

    def open(self, runtime_context: RuntimeContext):
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))

    def filter(self, value):
        clean = "spoiled" not in (self.last.value() or ())
        self.last.update(value)
        return clean


class KeepInMember(FilterFunction):
    last = ()

    def filter(self, value):
        clean = "spoiled" not in self.last
        self.last = value
        return clean


class KeepAndMap(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))

    def map(self, value):
        assert "spoiled" not in (self.last.value() or ())
        self.last.update(value)
        return value


def test_a_record_that_went_into_state_can_be_changed_by_its_receiver(env, run):
    lists = env.from_collection([["a", 1], ["a", 2], ["a", 3]])
    forwarded = lists.key_by(0).process(KeepAndForward())
    results = run(
        forwarded=forwarded.map(Spoil()),
        kept=forwarded.get_side_output(SIDE),
        filtered=lists.key_by(0).filter(KeepAndFilter()).map(Spoil()),
        filtered_without_keys=lists.global_().filter(KeepInMember()).map(Spoil()),
        mapped=lists.key_by(0).map(KeepAndMap()).map(Spoil()),
    )
    spoiled = [["a", n, "spoiled"] for n in (1, 2, 3)]
    assert results.pop("kept") == [None, ["a", 1], ["a", 2]]
    assert {name: sorted(records) for name, records in results.items()} == dict.fromkeys(results, spoiled)


def test_changing_the_collection_later_does_not_change_the_source(env, run):
    elements = [[1], [2]]
    stream = env.from_collection(elements).map(lambda value: value)
    elements[0].append("later")
    elements.append([3])
    assert sorted(run(stream)) == [[1], [2]]


def test_broadcast_records_are_separate_objects_in_every_subtask(env, run):
    class SpoilKeyed(MapFunction):
        def map(self, value):
            value.append(len(value))
            return tuple(value)

    assert set(run(env.from_collection([[7]]).broadcast().map(SpoilKeyed()))) == {(7, 1)}
