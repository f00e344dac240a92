"""A driver that was replaced cannot write into the logs of the next one."""

import pytest

from penstock.common.errors import StorageError
from penstock.runtime.checkpoint.commit_log import CommitLog
from penstock.runtime.lease.epoch_directory import adopt_directory
from penstock.runtime.source.receive_log import ReceiveLog


def logs_of(path, epoch):
    return str(adopt_directory(path, "committables", epoch) / "sink")


def test_what_the_owner_before_has_left_is_adopted(tmp_path):
    CommitLog(logs_of(tmp_path, 3)).put(7, ["transaction"])
    assert CommitLog(logs_of(tmp_path, 4)).entries() == [(7, ["transaction"])]
    assert [path.name for path in tmp_path.iterdir()] == ["committables-000004"]


def test_a_directory_of_a_version_without_epochs_is_adopted(tmp_path):
    CommitLog(str(tmp_path / "committables" / "sink")).put(7, ["transaction"])
    assert CommitLog(logs_of(tmp_path, 1)).entries() == [(7, ["transaction"])]


def test_a_job_that_is_restarted_by_the_same_driver_keeps_its_directory(tmp_path):
    CommitLog(logs_of(tmp_path, 3)).put(7, ["transaction"])
    assert CommitLog(logs_of(tmp_path, 3)).entries() == [(7, ["transaction"])]


def test_a_driver_that_was_replaced_cannot_write_what_is_to_be_committed(tmp_path):
    """It was paused between check and write; else its entry would be committed by the driver that starts next."""
    stale = CommitLog(logs_of(tmp_path, 3))
    stale.put(6, ["first"])
    current = CommitLog(logs_of(tmp_path, 4))
    with pytest.raises(StorageError, match="was deleted"):
        stale.put(7, ["of the driver that was replaced"])
    current.remove(6)
    assert CommitLog(logs_of(tmp_path, 5)).entries() == []


def test_a_driver_that_was_replaced_cannot_write_what_it_receives(tmp_path):
    stale = ReceiveLog(str(adopt_directory(tmp_path, "received", 1)))
    stale.append("lost with its driver")
    current = ReceiveLog(str(adopt_directory(tmp_path, "received", 2)))
    current.append("kept")
    current.seal(0, 10)
    with pytest.raises(StorageError, match="was deleted"):
        stale.seal(0, 10)
    assert ReceiveLog(str(adopt_directory(tmp_path, "received", 3))).read(0, 1) == ["kept"]


def test_a_directory_that_a_replaced_driver_has_made_again_is_removed(tmp_path):
    CommitLog(logs_of(tmp_path, 4)).put(7, ["current"])
    CommitLog(str(tmp_path / "committables-000003" / "sink")).put(8, ["stale"])
    assert CommitLog(logs_of(tmp_path, 5)).entries() == [(7, ["current"])]
    assert [path.name for path in tmp_path.iterdir()] == ["committables-000005"]


def test_without_a_lease_there_is_no_epoch_in_the_name(tmp_path):
    assert adopt_directory(tmp_path, "received", 0) == tmp_path / "received"
