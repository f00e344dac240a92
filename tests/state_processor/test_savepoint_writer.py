"""Savepoints as data: made from elements, changed, and continued by a job."""

import time
from pathlib import Path

import pytest
from support import At, Wm
from tests.state_processor.state_jobs import ELEMENTS, Elements, Fill, Job, Totals, by_key, filled, totals

from penstock.common import Row, Time
from penstock.common.errors import InvalidProgramError, PenstockError, SavepointError, UserFunctionError
from penstock.datastream.functions import BroadcastProcessFunction, KeySelector
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
)
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.runtime.savepoint.blocks import BlockWriter
from penstock.runtime.savepoint.storage import directory_at
from penstock.state_processor import (
    BroadcastStateBootstrapFunction,
    OperatorTransformation,
    SavepointReader,
    SavepointWriter,
    StateBootstrapFunction,
)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_job_starts_with_state_made_from_data(tmp_path, parallelism):
    pairs = ((f"key {n}", n) for n in range(12_000))
    path = SavepointWriter.new_savepoint().with_operator("totals", filled(pairs)).write(str(tmp_path / "new"))
    assert len(list(SavepointReader.read(path).verify().read_timers("totals"))) == 12_000
    job = Job(totals, ("key 7", 100), ("key 11999", 1), ("new", 5), savepoint=path, parallelism=parallelism)
    assert sorted(job.records()) == [("key 11999", 12_000, [1]), ("key 7", 107, [100]), ("new", 5, [5])]


def test_windows_can_be_filled(tmp_path):
    assigner = TumblingEventTimeWindows.of(Time.milliseconds(10))

    def job(stream):
        return stream.key_by(by_key).window(assigner).reduce(lambda a, b: (a[0], a[1] + b[1])).uid("windows")

    data = OperatorTransformation.bootstrap_with([("a", 1), ("a", 12), ("b", 3)]).assign_timestamps(lambda v: v[1])
    windows = data.key_by(by_key).window(assigner).reduce(lambda a, b: (a[0], a[1] + b[1]))
    path = SavepointWriter.new_savepoint().with_operator("windows", windows).write(str(tmp_path / "new"))
    restored = Job(job, At(("a", 5), 5), Wm(30), savepoint=path, parallelism=3)
    assert sorted(restored.records()) == [("a", 6), ("a", 12), ("b", 3)]


class FillList(StateBootstrapFunction):
    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("list"))
        self.union = context.get_operator_state_store().get_union_list_state(ListStateDescriptor("union"))
        self.values = []

    def process_element(self, value):
        self.values.append(value)

    def snapshot_state(self, context):
        self.state.update(self.values)
        self.union.update(self.values[:1])


RULES = MapStateDescriptor("rules")


class FillRules(BroadcastStateBootstrapFunction):
    def process_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value, value.upper())


class Apply(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.get_broadcast_state(RULES).get(value)

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value, "changed")


def test_operator_and_broadcast_state_can_be_filled_and_read(tmp_path):
    writer = SavepointWriter.new_savepoint()
    writer.with_operator("lists", OperatorTransformation.bootstrap_with([1, 2, 3]).transform(FillList()))
    writer.with_operator("rules", OperatorTransformation.bootstrap_with(["x", "y"]).transform(FillRules()))
    path = writer.write(str(tmp_path / "new"))
    reader = SavepointReader.read(path)
    assert list(reader.read_list_state("lists", "list")) == [1, 2, 3]
    assert list(reader.read_union_state("lists", "union")) == [1]
    assert dict(reader.read_broadcast_state("rules", "rules")) == {"x": "X", "y": "Y"}
    with pytest.raises(SavepointError, match=r"no union list state 'list'; it has: 'list' \(list state\), 'union'"):
        reader.read_union_state("lists", "list")

    def job(stream):
        rules = stream.filter(lambda value: False).broadcast(RULES)
        return stream.rebalance().connect(rules).process(Apply()).uid("rules")

    restored = Job(job, "x", "y", "z", savepoint=path, parallelism=3, allow_non_restored_state=True)
    assert sorted(restored.records()) == [("x", "X"), ("y", "Y"), ("z", None)]


def test_a_savepoint_is_changed_into_another(tmp_path):
    reader = Job(totals, *ELEMENTS).save(tmp_path / "old")
    doubled = ((key, 2 * total) for key, total in reader.read_keyed_state("totals", "total"))
    writer = SavepointWriter.from_existing_savepoint(reader.location)
    with pytest.raises(
        SavepointError, match=r"already has an operator with uid 'totals': call remove_operator\(\) first"
    ):
        writer.with_operator("totals", filled(doubled))
    path = writer.remove_operator("totals").with_operator("totals", filled(doubled)).write(str(tmp_path / "new"))
    job = Job(totals, *ELEMENTS, ("a", 1), savepoint=path)
    assert job.records() == [("a", 13, [1])]  # the source goes on where it was
    with pytest.raises(SavepointError, match="is not empty"):
        SavepointWriter.from_existing_savepoint(reader.location).write(path)


def test_state_can_be_given_to_an_operator_with_another_uid(tmp_path):
    reader = Job(totals, *ELEMENTS).save(tmp_path / "old")
    writer = SavepointWriter.from_existing_savepoint(reader.location)
    path = writer.change_operator_identifier("totals", "renamed").remove_source("source").write(str(tmp_path / "new"))
    reader.verify()

    def renamed(stream):
        return stream.key_by(by_key).process(Totals()).uid("renamed")

    job = Job(renamed, ("a", 1), savepoint=path, source_uid="another", parallelism=3)
    assert job.records() == [("a", 7, [0, 1, 2, 3, 1])]


def test_state_is_not_given_to_an_operator_that_has_some(tmp_path):
    reader = Job(totals, *ELEMENTS).save(tmp_path / "old")
    writer = SavepointWriter.from_existing_savepoint(reader.location).with_operator("made", filled([("a", 1)]))
    with pytest.raises(
        SavepointError, match=r"already has an operator with uid 'made': call remove_operator\(\) first"
    ):
        writer.change_operator_identifier("totals", "made")
    made = SavepointWriter.from_existing_savepoint(writer.write(str(tmp_path / "new")))
    with pytest.raises(SavepointError, match="already has an operator with uid 'made'"):
        made.change_operator_identifier("totals", "made")
    again = SavepointReader.read(writer.write(str(tmp_path / "again"))).verify()  # nothing was used up
    assert sorted(again.operators()) == ["made", "totals"]


def test_a_savepoint_that_cannot_be_made_leaves_nothing_behind(tmp_path):
    reader = Job(totals, *ELEMENTS).save(tmp_path / "old")
    for data in ([("a", 1), None], (("a", 1 / n) for n in (1, 0))):
        writer = SavepointWriter.from_existing_savepoint(reader.location).with_operator("made", filled(data))
        with pytest.raises((PenstockError, ZeroDivisionError)):
            writer.with_operator("more", filled(data)).write(str(tmp_path / "new"))
        assert not (tmp_path / "new").exists()


def test_a_changed_savepoint_takes_the_logs_of_dataframes_along(tmp_path):
    reader = Job(totals, *ELEMENTS).save(tmp_path / "old")
    directory, name = directory_at(reader.location), "frame/spark.data"
    with directory.create(name) as stream:
        blocks = BlockWriter(stream)
        blocks.add(0, b"a log", 1)
        source = {"uid": "frame", "name": "Frame", "parallelism": 1, "splits": {}}
        reader.manifest.sources["frame"] = {**source, "spark": {"logs": [], "file": {"path": name, **blocks.finish()}}}
    reader.manifest.write(directory)
    for number, source in enumerate(("source", "frame")):
        writer = SavepointWriter.from_existing_savepoint(reader.location).remove_source(source)
        copy = SavepointReader.read(writer.write(str(tmp_path / f"new {number}"))).verify()
        assert (directory_at(copy.location).size(name) is None) == (source == "frame")


class FillNow(Fill):
    def process_element(self, value, ctx):
        self.seen.add(value[1])
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 1)


def test_processing_time_begins_now_for_state_that_is_made(tmp_path):
    now = int(time.time() * 1000)
    state = OperatorTransformation.bootstrap_with([("a", 1)]).key_by(by_key).transform(FillNow())
    path = SavepointWriter.new_savepoint().with_operator("totals", state).write(str(tmp_path / "new"))
    ((_, _, timer, _),) = SavepointReader.read(path).read_timers("totals")
    assert timer > now
    assert Job(totals, ("a", 2), savepoint=path, now=timer).records() == [("a", 2, [1, 2])]
    assert Job(totals, ("a", 2), savepoint=path, now=timer + 3_600_000).records() == [("a", 2, [2])]


def test_functions_of_the_wrong_kind_are_refused():
    data = OperatorTransformation.bootstrap_with([Row(a=1)])
    with pytest.raises(InvalidProgramError, match="takes a KeyedStateBootstrapFunction"):
        data.key_by(by_key).transform(Totals())
    with pytest.raises(InvalidProgramError, match="takes a StateBootstrapFunction"):
        data.transform(Fill())


class FirstField(KeySelector):
    def get_key(self, value):
        return value[0]


@pytest.mark.parametrize("key", [0, "f0", FirstField(), by_key], ids=["position", "name", "selector", "function"])
def test_keys_are_given_as_in_a_job(tmp_path, key):
    made = OperatorTransformation.bootstrap_with([("a", 1), ("b", 2)]).key_by(key).transform(Fill())
    path = SavepointWriter.new_savepoint().with_operator("totals", made).write(str(tmp_path / "new"))
    assert dict(SavepointReader.read(path).read_keyed_state("totals", "total")) == {"a": 1, "b": 2}
    pairs = OperatorTransformation.bootstrap_with([("a", 1)]).key_by(0, 1).transform(Fill())
    path = SavepointWriter.new_savepoint().with_operator("totals", pairs).write(str(tmp_path / "pairs"))
    assert dict(SavepointReader.read(path).read_keyed_state("totals", "total")) == {("a", 1): 1}


class Refuses(StateBootstrapFunction):
    def initialize_state(self, context):
        pass

    def snapshot_state(self, context):
        pass

    def process_element(self, value):
        raise ValueError(f"not {value}")


class RefusesRules(BroadcastStateBootstrapFunction):
    def process_element(self, value, ctx):
        raise ValueError(f"not {value}")


@pytest.mark.parametrize("function", [Refuses(), RefusesRules()], ids=["list", "broadcast"])
def test_an_element_that_a_bootstrap_function_refuses_is_named(tmp_path, function):
    made = OperatorTransformation.bootstrap_with([7]).transform(function)
    with pytest.raises(UserFunctionError, match=r"(?s)operator 'x'.*process_element.*record: 7.*ValueError: not 7"):
        SavepointWriter.new_savepoint().with_operator("x", made).write(str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_timestamps_that_are_none_are_named_with_their_element(tmp_path):
    def made(timestamp_of):
        stamped = OperatorTransformation.bootstrap_with([("a", 1)]).assign_timestamps(timestamp_of)
        windows = stamped.key_by(0).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        SavepointWriter.new_savepoint().with_operator("x", windows.process(Elements())).write(str(tmp_path / "new"))

    with pytest.raises(InvalidProgramError, match=r"element \('a', 1\) for operator 'x' is '1'.* as an int"):
        made(lambda value: "1")
    with pytest.raises(UserFunctionError, match=r"(?s)assign_timestamps.*\('a', 1\).*IndexError"):
        made(lambda value: value[2])


def test_what_is_no_bootstrap_is_refused_at_once():
    writer = SavepointWriter.new_savepoint()
    with pytest.raises(InvalidProgramError, match="an iterable or a DataFrame, got 5"):
        OperatorTransformation.bootstrap_with(5)
    with pytest.raises(InvalidProgramError, match=r"operator 'x' must be a result of OperatorTransformation\..*, got"):
        writer.with_operator("x", Fill())
    with pytest.raises(InvalidProgramError, match="the uid of an operator must be a non-empty string"):
        writer.with_operator("", OperatorTransformation.bootstrap_with([1]).transform(Refuses()))
    with pytest.raises(SavepointError, match="an int from 1 to 32768, got '4'"):
        SavepointWriter.new_savepoint("4")


def test_an_iterator_is_not_taken_for_the_elements_that_are_left_in_it(tmp_path):
    writer = SavepointWriter.new_savepoint().with_operator("totals", filled(iter([("a", 1)])))
    writer.write(str(tmp_path / "first"))
    with pytest.raises(SavepointError, match="operator 'totals' come from an iterator that an earlier"):
        writer.write(str(tmp_path / "second"))
    again = SavepointWriter.new_savepoint().with_operator("totals", filled([("a", 1)]))
    for name in ("third", "fourth"):
        path = again.write(str(tmp_path / name))
        assert dict(SavepointReader.read(path).read_keyed_state("totals", "total")) == {"a": 1}


def test_a_damaged_savepoint_is_not_changed_into_another(tmp_path):
    reader = Job(totals, *ELEMENTS).save(tmp_path)
    damaged = next(Path(reader.location).glob("*/keyed-*.data"))
    content = bytearray(damaged.read_bytes())
    content[20] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(SavepointError, match=rf"file .*{damaged.name} of the savepoint .* is damaged"):
        SavepointWriter.from_existing_savepoint(reader.location).write(str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()
