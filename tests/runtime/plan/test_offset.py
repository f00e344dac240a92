"""Offsets in an engine's log: what is written is read, also what earlier versions have written."""

import json

import pytest

from penstock.common.errors import CheckpointError
from penstock.runtime.plan.offset import Offset, SplitPosition, SplitState

SPLITS = {
    "words": {
        "0": SplitPosition([10, 2, "c3RhdGU="], SplitState.ACTIVE, 0),
        "1": SplitPosition(3, SplitState.IDLE, 1),
    },
    "files": {"a.txt": SplitPosition(None, SplitState.GONE, 0)},
}
FULL = Offset(7, 1_700, True, SPLITS, ("files",), {"words": {"1": 3}}, {"words": {"0": [17, 1]}})


@pytest.mark.parametrize("offset", [Offset(), FULL])
def test_an_offset_comes_back_from_the_log_as_it_was(offset):
    assert Offset.from_json(json.loads(json.dumps(offset.to_json()))) == offset


def test_what_is_logged_names_its_version_and_leaves_out_what_is_empty():
    assert Offset(1, 2, splits={"s": {"0": SplitPosition(5, subtask=1)}}).to_json() == {
        "version": 2,
        "checkpoint": 1,
        "time": 2,
        "last": False,
        "splits": {"s": {"0": [5, 0, 1]}},
    }


def test_an_offset_of_the_first_format_is_read():
    splits = {"words": {"0": [[10, 2, "c3RhdGU="], 0, 0], "1": [3, 1, 1]}, "files": {"a.txt": [None, 3, 0]}}
    old = {"n": 7, "t": 1_700, "end": True, "s": splits}
    old |= {"more": ["files"], "f": {"words": {"1": 3}}, "w": {"words": {"0": [17, 1]}}}
    assert Offset.from_json(old) == FULL


def test_a_position_of_the_first_format_may_have_no_subtask():
    offset = Offset.from_json({"n": 7, "t": 0, "end": False, "s": {"words": {"0": [10, 0]}}})
    assert offset.of_source("words") == {"0": SplitPosition(10, SplitState.ACTIVE, None)}


def test_an_offset_of_a_newer_format_is_rejected():
    with pytest.raises(CheckpointError, match="checkpoint 7 was written by a newer version of Penstock"):
        Offset.from_json({"version": 3, "checkpoint": 7})


def test_a_source_that_an_offset_does_not_name_has_no_splits():
    assert FULL.of_source("other") == {}
