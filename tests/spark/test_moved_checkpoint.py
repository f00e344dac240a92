"""A checkpoint directory in another place: what Spark has written about the old one is put right. On Spark itself: see
test_damaged_checkpoint.py."""

import json

import pytest

from penstock.common.errors import CheckpointError
from penstock.spark.moved_checkpoint import correct_paths

OLD = "file:/old/place"
SCHEMA = "0_72c2f720-23e1-4764-a54c-e610582ef2dd"


class Directory:
    """As much of a checkpoint directory as is looked at, on this machine's files."""

    def __init__(self, path):
        self.path = path
        self.location = str(path)
        self.written = []

    def qualified(self):
        return f"file:{self.path}"

    def names(self, below=""):
        folder = self.path / below
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def read(self, name):
        return (self.path / name).read_bytes()

    def write(self, name, content):
        self.written.append(name)
        (self.path / name).write_bytes(content)


def put(path, content=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def metadata(*paths):
    stores = [{"storeName": "default", "numPartitions": 2, "stateSchemaFilePaths": list(paths)}]
    return "v2\n" + json.dumps({"stateStoreInfo": stores, "operatorPropertiesJson": '{"timeMode":"NoTime"}'})


@pytest.fixture
def directory(tmp_path):
    """Two operators with state, of which the second has seen a restart."""
    for operator, batches in (("0", "0"), ("1", "05")):
        put(tmp_path / "state" / operator / "_stateSchema" / "default" / SCHEMA)
        for batch in batches:
            old = f"{OLD}/state/{operator}/_stateSchema/default/{SCHEMA}"
            put(tmp_path / "state" / operator / "_metadata" / "v2" / batch, metadata(old))
            put(tmp_path / "state" / operator / "_metadata" / "v2" / f".{batch}.crc", "checksum")
    return Directory(tmp_path)


def paths_in(directory, name):
    version, line = directory.read(name).decode().split("\n")
    content = json.loads(line)
    assert version == "v2"
    assert content["operatorPropertiesJson"] == '{"timeMode":"NoTime"}'
    return content["stateStoreInfo"][0]["stateSchemaFilePaths"]


@pytest.mark.parametrize("written_at", [None, OLD])
def test_every_path_leads_to_the_file_that_came_along(directory, written_at):
    assert correct_paths(directory, written_at)
    assert directory.written == ["state/0/_metadata/v2/0", "state/1/_metadata/v2/0", "state/1/_metadata/v2/5"]
    for name in directory.written:
        operator = name.split("/")[1]
        here = f"{directory.qualified()}/state/{operator}/_stateSchema/default/{SCHEMA}"
        assert paths_in(directory, name) == [here]
    directory.written.clear()
    assert not correct_paths(directory, None)
    assert directory.written == []


def test_a_directory_that_is_where_it_was_is_not_looked_at(directory):
    assert not correct_paths(directory, directory.qualified())
    assert directory.written == []


def test_a_file_that_did_not_come_along_is_named_and_nothing_is_changed(directory):
    (directory.path / "state/1/_stateSchema/default" / SCHEMA).unlink()
    with pytest.raises(CheckpointError, match=f"state/1/_stateSchema/default/{SCHEMA} cannot be read"):
        correct_paths(directory, OLD)
    assert directory.written == []


def test_a_checkpoint_that_holds_a_dataframe_cannot_be_moved(directory):
    put(directory.path / "frames/source/part-0.parquet")
    with pytest.raises(CheckpointError, match=f"contains a DataFrame .* Move it back to {OLD}"):
        correct_paths(directory, OLD)
    assert directory.written == []
    assert not correct_paths(directory, directory.qualified())


def test_a_job_without_state_moves_as_it_is(tmp_path):
    directory = Directory(tmp_path)
    assert correct_paths(directory, OLD)
    assert directory.written == []


@pytest.mark.parametrize("content", ["", "v2", "v2\n{", 'v2\n{"stateStoreInfo": 7}', 'v2\n{"stateStoreInfo": [{}]}'])
def test_what_is_damaged_is_left_to_spark_which_says_so(directory, content):
    put(directory.path / "state/0/_metadata/v2/0", content)
    assert correct_paths(directory, OLD)
    assert "state/0/_metadata/v2/0" not in directory.written
