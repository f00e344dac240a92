"""Small files of a checkpoint: whole, or an error."""

import pytest

from penstock.common.errors import CheckpointError
from penstock.runtime.checkpoint.commit_log import CommitLog
from penstock.runtime.source.receive_log import ReceiveLog
from penstock.runtime.storage.checked_file import read_checked, write_checked


def damages(data):
    """Every way to cut a file short, every byte changed, and nothing at all."""
    for position in range(len(data)):
        yield data[:position]
        yield data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :]
    yield data + b"\0"


def test_what_was_written_is_read(tmp_path):
    write_checked(tmp_path / "file", b"content")
    assert read_checked(tmp_path / "file") == b"content"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_any_damage_is_an_error(tmp_path):
    path = tmp_path / "file"
    write_checked(path, b"content")
    for damaged in damages(path.read_bytes()):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"file .* is damaged .*: restore it"):
            read_checked(path)
    path.unlink()
    with pytest.raises(CheckpointError, match="cannot read"):
        read_checked(path)


def test_a_damaged_commit_log_is_an_error_and_never_a_wrong_commit(tmp_path):
    CommitLog(str(tmp_path)).put(7, ["a transaction"])
    (path,) = tmp_path.glob("*.log")
    for damaged in damages(path.read_bytes()):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"7\.log"):
            CommitLog(str(tmp_path))


def test_a_damaged_receive_log_is_an_error_and_never_another_record(tmp_path):
    log = ReceiveLog(str(tmp_path))
    log.extend(["a", "b", "c"])
    log.seal(0, 2)
    log.seal(2, 2)
    first, second = sorted(tmp_path.glob("*.log"))
    whole = first.read_bytes()
    for damaged in damages(whole):
        first.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"0\.log"):
            ReceiveLog(str(tmp_path))
    first.unlink()
    with pytest.raises(CheckpointError, match="lacks elements between 0 and 3"):
        ReceiveLog(str(tmp_path)).read(0, 3)
    assert second.exists()
