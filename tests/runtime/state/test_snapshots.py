"""Snapshots of stages: what is encoded comes back, also what earlier versions have encoded."""

import pickle

import pytest

from penstock.common.errors import CheckpointError
from penstock.runtime.exchange.frames import SplitStatus
from penstock.runtime.state.operator_state import UnionPart
from penstock.runtime.state.pages import PageDirectory
from penstock.runtime.state.snapshots import OperatorSnapshot, SourceStatus, StageSnapshot, TaskSnapshot
from penstock.runtime.storage.checked_file import seal
from penstock.runtime.task.union_states import UnionStates

CLOCKS = (17, False, {(3, "0"): (17, False, True), (3, "1"): (20, True, False)})
OPERATOR = OperatorSnapshot(
    PageDirectory([("sum", "reducing state")], 2, 1, 512, types={"sum": {"type": "LONG"}}, key_types=[None]),
    {"list": "union"},
    16,
    {"list": {"type": "INT"}},
    {"module:Name": {"kind": "dataclass"}},
)
SOURCES = SourceStatus({0: {"a": SplitStatus(1, idle=True, finished=False, paused=True)}}, frozenset({0, 5}))
FULL = StageSnapshot(
    {4: TaskSnapshot(CLOCKS, {"op": OPERATOR, "other": OperatorSnapshot()}), 7: TaskSnapshot()},
    12,
    "1f",
    "c0de",
    SOURCES,
)


@pytest.mark.parametrize("snapshot", [StageSnapshot(), FULL])
def test_a_snapshot_comes_back_as_it_was(snapshot):
    assert StageSnapshot.decode(snapshot.encode()) == snapshot


def test_an_encoded_snapshot_names_no_class():
    encoded = FULL.encode()
    assert b"penstock" not in encoded
    assert encoded[0] == 2


def test_fields_that_the_writing_version_did_not_know_get_their_default():
    content = pickle.loads(FULL.encode()[1:])
    operator = content["tasks"][4]["operators"]["op"]
    del operator["records"], operator["directory"]["next_chunk"]
    decoded = StageSnapshot.decode(b"\2" + pickle.dumps(content)).tasks[4].operators["op"]
    assert decoded.records == {}
    assert decoded.directory == OPERATOR.directory


def test_the_first_format_had_no_version_and_negative_keys():
    old = {4: (CLOCKS, {"op": OPERATOR}), -1: (SOURCES.splits, SOURCES.finished), -2: "1f", -3: "c0de", -4: 12}
    expected = StageSnapshot({4: TaskSnapshot(CLOCKS, {"op": OPERATOR})}, 12, "1f", "c0de", SOURCES)
    assert StageSnapshot.decode(pickle.dumps(old, 5)) == expected
    assert StageSnapshot.decode(pickle.dumps({}, 5)) == StageSnapshot()


def test_objects_of_the_first_format_may_lack_fields():
    lacking = OperatorSnapshot(PageDirectory(bits=3), {}, 16)
    del lacking.operator_types, lacking.records
    del lacking.directory.next_chunk, lacking.directory.records, lacking.directory.key_types
    decoded = StageSnapshot.decode(pickle.dumps({0: (None, {"op": lacking})}, 5))
    assert decoded.tasks[0].operators["op"] == OperatorSnapshot(PageDirectory(bits=3), {}, 16)


def test_a_newer_format_is_rejected():
    with pytest.raises(CheckpointError, match="newer version of Penstock"):
        StageSnapshot.decode(b"\3...")


def test_only_a_snapshot_without_any_batch_is_empty():
    assert StageSnapshot().is_empty
    assert StageSnapshot(sources=SOURCES).is_empty
    assert not any(s.is_empty for s in (StageSnapshot(checkpoint_id=1), StageSnapshot(incarnation="1"), FULL))


class Files(dict):
    checkpoints = dict.keys

    def read(self, checkpoint_id):
        return self[checkpoint_id]


def test_union_states_of_the_first_format_are_read():
    part = UnionPart(pickle.dumps([1]), {})
    files = Files({3: seal(pickle.dumps({("op", "u"): {0: [part], 1: ["very old"]}}, 5))})
    assert UnionStates([], files).begin(3).states == {"op": {"u": [part, "very old"]}}


def test_union_states_of_a_newer_format_are_rejected():
    with pytest.raises(CheckpointError, match="format 9"):
        UnionStates([], Files({3: seal(b"\x09")})).begin(3)
