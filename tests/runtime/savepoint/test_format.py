"""The files of a savepoint: complete, checked, movable."""

import json
import random
from pathlib import Path

import pytest
from support import At, Script, Wm

from penstock.common import WatermarkStrategy
from penstock.common.errors import PenstockError, SavepointError
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor
from penstock.runtime.records.key_groups import key_group_for
from penstock.runtime.savepoint import capture
from penstock.runtime.savepoint.blocks import BlockFile, BlockWriter
from penstock.runtime.savepoint.manifest import read_manifest, verify
from penstock.runtime.savepoint.restore import keyed_entries
from penstock.runtime.savepoint.storage import ArrowDirectory, LocalDirectory, directory_at
from penstock.state_processor import SavepointReader, SavepointWriter
from penstock.testing import ManualClock, MiniCluster

KEYS = 300


class Remember(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))
        self.all = runtime_context.get_list_state(ListStateDescriptor("all"))

    def process_element(self, value, ctx):
        self.last.update(value)
        self.all.add(value)
        ctx.timer_service().register_event_time_timer(1_000 + value % 10)
        yield len(list(self.all.get()))


def job(savepoint=None, parallelism=2, **settings):
    cluster = MiniCluster(clock=ManualClock(5))
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(parallelism)
    source = Script([At(n, n) for n in range(KEYS)], [Wm(9)], bounded=False)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "Script").uid("script")
    stream.key_by(lambda n: n).process(Remember()).uid("remember").print()
    return cluster.start(list(env.sinks), env.job_settings("job"), savepoint=savepoint, **settings)


@pytest.fixture
def savepoint(tmp_path, capsys):
    running = job()
    running.run()
    return running.stop_with_savepoint(str(tmp_path))


def test_the_manifest_says_what_there_is(savepoint):
    content = json.loads((LocalDirectory(savepoint)._root / "_metadata").read_text())
    assert (content["format"], content["version"], content["job"]["name"]) == ("penstock-savepoint", 1, "job")
    (operator,) = [operator for operator in content["operators"] if operator["uid"] == "remember"]
    assert (operator["parallelism"], operator["max_parallelism"]) == (2, 128)
    assert [(state["name"], state["kind"]) for state in operator["keyed_states"]] == [
        ("last", "value state"),
        ("all", "list state"),
    ]
    assert operator["keyed_states"][0]["type"] == {"type": "PYTHON", "seen": ["int"]}
    assert sum(file["keys"] for file in operator["keyed_files"]) == KEYS
    (source,) = content["sources"].values()
    assert source.pop("splits") == {"0": [KEYS, 0], "1": [1, 0]}
    assert source == {"uid": "script", "name": "Source: Script", "parallelism": 2}


def test_blocks_hold_the_keys_of_their_key_group(savepoint):
    operator = read_manifest(savepoint).find("remember")
    files = [BlockFile(directory_at(savepoint), description) for description in operator.keyed_files]
    groups = range(30, 40)
    found = {entry[0]: entry[1:] for entry in keyed_entries(files, groups, ["all", "last"], "x")}
    assert set(found) == {n for n in range(KEYS) if key_group_for(n, 128) in groups}
    assert all(entry == ({1_000 + n % 10}, None, [n], n) for n, entry in found.items())


def test_a_savepoint_can_be_moved(savepoint, tmp_path, capsys):
    moved = tmp_path / "moved to"
    LocalDirectory(savepoint)._root.rename(moved)
    capsys.readouterr()
    again = job(moved.as_uri())
    again.run()
    assert capsys.readouterr().out == ""  # nothing is read twice
    assert verify(again.savepoint(str(tmp_path))).find("remember").has_state


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove", "extend", "swap"])
def test_any_damaged_file_is_an_error_and_never_a_wrong_result(savepoint, damage):
    chance = random.Random(damage)
    directory = LocalDirectory(savepoint)
    names = directory.files()
    assert len(names) >= 3
    for name in names:
        path = directory._root / name
        good = path.read_bytes()
        for _ in range(8):
            if damage == "flip":
                bad = bytearray(good)
                bad[chance.randrange(len(good))] ^= 1 << chance.randrange(8)
                path.write_bytes(bad)
            elif damage == "truncate":
                path.write_bytes(good[: chance.randrange(len(good))])
            elif damage == "extend":
                path.write_bytes(good + b"x" * chance.randint(1, 9))
            elif damage == "swap":
                other = directory._root / chance.choice([other for other in names if other != name])
                path.write_bytes(other.read_bytes())
            else:
                path.unlink()
            with pytest.raises(SavepointError, match=r"savepoint"):
                verify(savepoint)
            if damage != "flip":  # a flipped bit in a block that is not read does no harm
                with pytest.raises(PenstockError, match=r"savepoint|damaged|missing"):
                    job(savepoint, parallelism=3).run()
            path.write_bytes(good)
    verify(savepoint)


class Add(KeyedProcessFunction):
    def __init__(self, step):
        self.step = step

    def open(self, runtime_context):
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum"))

    def process_element(self, value, ctx):
        self.sum.update((self.sum.value() or 0) + self.step)


def test_files_of_the_same_size_cannot_be_taken_for_each_other(tmp_path):
    def two_sums(savepoint=None):
        cluster = MiniCluster(clock=ManualClock(5))
        env = StreamExecutionEnvironment(executor=cluster).set_parallelism(1)
        numbers = env.from_source(Script([1, 2, 1], bounded=False), WatermarkStrategy.no_watermarks(), "Script")
        for step in (1, 2):
            numbers.key_by(lambda n: n).process(Add(step)).uid(f"by {step}").print()
        running = cluster.start(list(env.sinks), env.job_settings("sums"), savepoint=savepoint)
        running.run()
        return running

    savepoint = two_sums().stop_with_savepoint(str(tmp_path))
    one, other = sorted(Path(savepoint).glob("*/keyed-*.data"))
    assert one.stat().st_size == other.stat().st_size
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    with pytest.raises(PenstockError, match="another file than the one that was written"):
        two_sums(savepoint)
    with pytest.raises(SavepointError, match="another file than the one that was written"):
        list(SavepointReader.read(savepoint).read_keyed_state("by 1", "sum"))


@pytest.mark.parametrize("name", ["a#b", "a?b", "a b", "größe-ж", "100%"])
def test_a_file_address_keeps_savepoints_of_odd_directories_apart(tmp_path, name, capsys):
    running = job()
    running.run()
    paths = [running.savepoint(f"file://{tmp_path / name}") for _ in range(2)]
    for path in paths:  # the second one has not removed the first
        assert SavepointReader.read(path).verify().operators() == ["remember"]
    assert [directory.name for directory in tmp_path.iterdir()] == [name]


def test_an_address_that_names_a_machine_is_refused(tmp_path, capsys):
    running = job()
    with pytest.raises(SavepointError, match=r"names a host 'tmp'.*use file:///tmp/"):
        running.savepoint("file://tmp/savepoints")
    with pytest.raises(SavepointError, match=r"names a host 'tmp'"):
        SavepointReader.read("file://tmp/savepoints/one")


def test_a_path_object_is_a_directory_too(tmp_path, capsys):
    running = job()
    running.run()
    assert SavepointReader.read(Path(running.savepoint(tmp_path))).operators() == ["remember"]
    with pytest.raises(SavepointError, match="a path or a URI, got None"):
        SavepointReader.read(None)


def test_a_file_that_may_not_be_read_is_not_said_to_be_missing(savepoint, monkeypatch):
    def denied(path, *, follow_symlinks=True):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", denied)
    with pytest.raises(SavepointError, match=r"cannot read .*_metadata: .*Permission denied"):
        read_manifest(savepoint)


def test_a_directory_without_metadata_is_no_savepoint(tmp_path):
    with pytest.raises(SavepointError, match="no complete savepoint"):
        job(str(tmp_path))


def test_another_version_is_refused_with_what_to_do(savepoint):
    path = LocalDirectory(savepoint)._root / "_metadata"
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(SavepointError, match="format version 2, this Penstock reads version 1"):
        job(savepoint)


def test_a_savepoint_that_cannot_be_written_does_not_disturb_the_job(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    running = job()
    with pytest.raises(SavepointError, match="file"):
        running.savepoint(str(tmp_path / "file"))
    running.run()
    assert not running.finished


def test_a_failure_in_a_task_is_the_savepoints_error_and_not_the_jobs(tmp_path, capsys, monkeypatch):
    running = job()
    running.run()
    monkeypatch.setattr(capture, "encode", lambda value, what: 1 / 0)
    with pytest.raises(SavepointError, match="could not write its state: division by zero"):
        running.savepoint(str(tmp_path))
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []  # nothing is left of it
    verify(running.savepoint(str(tmp_path)))


@pytest.mark.parametrize("address", ["below", "file:below"])
def test_a_relative_path_is_the_same_place_for_all(tmp_path, monkeypatch, address):
    monkeypatch.chdir(tmp_path)
    running = job()
    running.run()
    path = running.stop_with_savepoint(address)
    assert Path(path).parent == tmp_path / "below"
    relative = str(Path(path).relative_to(tmp_path))
    restored, reader = job(relative), SavepointReader.read(relative)
    copy = SavepointWriter.from_existing_savepoint(relative).write("copy")
    monkeypatch.chdir("/")  # where workers are
    restored.run()
    reader.verify()
    assert sorted(SavepointReader.read(copy).operators()) == sorted(reader.operators())


def test_a_savepoint_of_a_job_that_has_ended_leaves_nothing_behind(tmp_path):
    running = job()
    running.drain()
    with pytest.raises(SavepointError, match="the job has ended"):
        running.savepoint(str(tmp_path))
    with pytest.raises(SavepointError, match="the job has ended"):
        running.savepoint(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_memory_does_not_grow_with_the_state(tmp_path, monkeypatch):
    monkeypatch.setattr(capture, "BUFFERED_ENTRIES", 1_000)
    entries = ((n, None, None, n) for n in range(10_000))
    directory = LocalDirectory(str(tmp_path))
    description, seen = capture.write_keyed_file(
        directory, "a.data", entries, [("s", "value state")], 16, compress=False, label="x"
    )
    blocks = BlockFile(directory, description).index()
    assert len(blocks) == 160
    assert (description["keys"], seen.describe("s", None)) == (10_000, {"type": "PYTHON", "seen": ["int"]})


def test_compressed_blocks_read_the_same(tmp_path):
    directory = LocalDirectory(str(tmp_path))
    with directory.create("a.data") as stream:
        writer = BlockWriter(stream, compress=True)
        writer.add(1, b"a" * 10_000, 1)
        writer.add(2, b"\x00\x17", 1)  # compression would only make it longer
        description = {"path": "a.data", **writer.finish()}
    assert description["size"] < 1_000
    assert [data for _, data in BlockFile(directory, description).read()] == [b"a" * 10_000, b"\x00\x17"]


@pytest.mark.parametrize("kind", [LocalDirectory, ArrowDirectory])
def test_a_directory_shows_files_when_they_are_complete(kind, tmp_path):
    directory = kind(str(tmp_path) if kind is LocalDirectory else tmp_path.as_uri())
    with pytest.raises(TypeError), directory.create("sub/a.data") as stream:
        stream.write("no bytes")
    assert directory.size("sub/a.data") is None
    with directory.create("sub/a.data") as stream:
        stream.write(b"whole")
    assert directory.size("sub/a.data") == 5
    with directory.open("sub/a.data") as stream:
        stream.seek(2)
        assert stream.read(2) == b"ol"
    assert "sub/a.data" in directory.files()
    with pytest.raises(SavepointError), directory.open("other"):
        pass
    directory.dispose()
    assert directory.files() == []
