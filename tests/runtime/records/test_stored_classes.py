"""Which classes appear in stored data, and how they are found."""

import io
import pickle
import shutil
import tarfile
from collections import OrderedDict

import pytest
from tests.fixtures import continued
from tests.fixtures.continued import HERE

from penstock.common import Duration, Row, RowKind, Time
from penstock.connectors.file_system.part_files import Numbering, Pending
from penstock.core.window import CountWindow, GlobalWindow, TaggedUnion, TimeWindow
from penstock.runtime.checkpoint.commit_log import CommitLog
from penstock.runtime.records import stored_classes
from penstock.runtime.records.stored_classes import STORED_CLASSES, find_stored_class, load_stored
from penstock.runtime.savepoint.blocks import BlockFile
from penstock.runtime.savepoint.codec import decode, encode
from penstock.runtime.savepoint.manifest import read_manifest
from penstock.runtime.savepoint.storage import directory_at
from penstock.runtime.state import stored_values as values
from penstock.runtime.state.key_slices import KeySlices
from penstock.runtime.storage.checked_file import read_checked


class Recorder(pickle.Unpickler):
    """Notes which classes and functions a pickle names, without using any of them."""

    def __init__(self, blob):
        super().__init__(io.BytesIO(blob))
        self.paths = set()

    def find_class(self, module, name):
        self.paths.add(f"{module}:{name}")
        return Anything


class Anything:
    def __new__(cls, *_, **__):
        return object.__new__(cls)

    def ignore(self, *_):
        pass

    __call__ = __setstate__ = __setitem__ = append = extend = add = ignore


def classes_in(blob):
    """The paths of our classes and functions in a pickle."""
    recorder = Recorder(blob)
    recorder.load()
    return {path for path in recorder.paths if path.startswith("penstock.")}


def test_every_registered_class_can_be_found():
    for path in STORED_CLASSES:
        assert callable(find_stored_class(path)), path


def test_a_class_that_moved_is_registered_under_its_new_path_too():
    """What is written from now on names it by this path."""
    for path in STORED_CLASSES:
        found = find_stored_class(path)
        assert f"{found.__module__}:{found.__qualname__}" in STORED_CLASSES


def test_savepoints_rebuild_values_with_registered_functions():
    helpers = {"class_by_name", "class_name"}
    assert {f"{values.__name__}:{name}" for name in set(values.__all__) - helpers} <= STORED_CLASSES.keys()


@pytest.mark.parametrize(
    "value",
    [
        Row(1, 2),
        Row(a=1),
        Row.of_kind(RowKind.DELETE, 1),
        TimeWindow(0, 5),
        GlobalWindow(),
        CountWindow(3),
        TaggedUnion.one("a"),
        KeySlices({0: 1}, 2),
        Pending("a", "b"),
        Numbering(1, 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_ours_come_back_from_pages_and_savepoints(value):
    blob = pickle.dumps(value, 5)
    assert classes_in(blob)
    assert classes_in(blob) | classes_in(encode(value, "a value")) <= STORED_CLASSES.keys()
    for copy in (load_stored(blob), decode(encode(value, "a value"), "a value")):
        assert type(copy) is type(value)
        assert copy == value


def test_a_class_that_moved_is_found_under_its_old_path(monkeypatch):
    monkeypatch.setitem(STORED_CLASSES, "penstock.gone:Old", "collections:OrderedDict")
    assert load_stored(b"cpenstock.gone\nOld\n.") is OrderedDict


@pytest.mark.parametrize("public", [Time, Duration])
def test_a_public_class_that_moved_is_found_by_its_public_name(public):
    """Programs may keep values of any public class in their state; no list could name all of them."""
    assert load_stored(f"cpenstock.somewhere.else\n{public.__name__}\n.".encode()) is public
    assert stored_classes.unregistered
    stored_classes.unregistered.clear()


def test_a_class_that_is_gone_is_an_error():
    with pytest.raises(ModuleNotFoundError):
        load_stored(b"cpenstock.nowhere\nNothing\n.")
    stored_classes.unregistered.clear()


# -- what earlier versions have written ------------------------------------------------------------------------------


def test_committables_and_writer_states_of_connectors_come_back(tmp_path):
    shutil.copytree(HERE / "connectors", tmp_path / "log")
    blob = read_checked(tmp_path / "log" / "7.log")
    assert len(classes_in(blob)) == 6
    assert classes_in(blob) <= STORED_CLASSES.keys()
    [(checkpoint_id, [kafka, pending, *_])] = CommitLog(str(tmp_path / "log")).entries()
    assert checkpoint_id == 7
    assert classes_in(kafka.data) <= STORED_CLASSES.keys()
    assert [chunk.values for chunk in kafka.chunks] == [[b"a", None]]
    assert pending == Pending("/out/.part.pending.9d41e0b2", "/out/part")


def test_all_classes_in_the_driver_s_files_of_the_old_checkpoint_are_registered(tmp_path):
    continued.unpack("every-kind-checkpoint", tmp_path)
    checkpoint = tmp_path / "checkpoint"
    sealed = [*checkpoint.glob("committables/*/*.log"), *checkpoint.glob("received/*/*/*.log")]
    sealed += [path for path in checkpoint.glob("unions/*") if not path.name.startswith(".")]
    assert len(sealed) == 7
    named = {path for file in sealed for path in classes_in(read_checked(file))}
    assert named == {"penstock.runtime.state.operator_state:UnionPart"}
    assert named <= STORED_CLASSES.keys()


def test_all_classes_in_the_old_savepoint_are_registered(tmp_path):
    directory = directory_at(str(continued.unpack("every-kind-savepoint", tmp_path)))
    blocks = [
        data
        for description in read_manifest(str(tmp_path)).files()
        for _, data in BlockFile(directory, description).read()
    ]
    named = {path for data in blocks for path in classes_in(data)}
    assert len(named) >= 7
    assert named <= STORED_CLASSES.keys()


def test_the_fixtures_are_small():
    for archive in HERE.glob("*.tar.gz"):
        assert archive.stat().st_size < 100_000
        assert tarfile.is_tarfile(archive)
