import errno
import os
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.common import storage
from penstock.common.errors import StorageError
from penstock.common.storage import directory_trouble, free_space, storage_errors


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def full_disk(monkeypatch):
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda path: Usage(3 << 30, 3 << 30, 12_288))


def failing(path, error):
    with pytest.raises(StorageError) as caught, storage_errors(path, "Do something"):
        raise error
    return str(caught.value)


def test_a_full_disk_is_named_with_the_space_that_is_left(tmp_path, full_disk):
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    expected = f"cannot write to {tmp_path}: no space left there (12.0 KB of 3.0 GB free). Do something"
    assert failing(tmp_path, error) == expected


def test_a_disk_that_is_nearly_full_is_taken_for_full(tmp_path, full_disk):
    assert "no space left there" in directory_trouble(tmp_path)
    assert "no space left there" in failing(tmp_path, OSError(errno.EIO, "Input/output error"))


def test_a_file_in_the_place_of_a_directory_is_named(tmp_path):
    (tmp_path / "file").touch()
    below = tmp_path / "file" / "below"
    assert directory_trouble(below) == f"{tmp_path / 'file'} is a file and not a directory"
    with pytest.raises(StorageError, match="is a file and not a directory"), storage_errors(below, "Do something"):
        below.mkdir()


def test_a_directory_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(storage.os, "access", lambda path, mode: False)
    assert directory_trouble(tmp_path / "new") == f"{tmp_path} is not writable for this user"


def test_a_directory_that_was_deleted_is_named(tmp_path):
    gone = tmp_path / "gone"
    with pytest.raises(StorageError, match=f"cannot write to {gone}: it was deleted"), storage_errors(gone, "..."):
        (gone / "file").open("wb")


def test_any_other_error_of_the_file_system_says_what_happened_and_how_much_is_free(tmp_path):
    message = failing(tmp_path, OSError(errno.EIO, "Input/output error"))
    assert message == f"cannot write to {tmp_path}: Input/output error ({free_space(tmp_path)}). Do something"


@pytest.mark.parametrize("error", [ConnectionResetError("peer"), FileNotFoundError(errno.ENOENT, "No", "/elsewhere")])
def test_errors_that_do_not_concern_the_directory_stay_as_they_are(tmp_path, error):
    with pytest.raises(type(error)), storage_errors(tmp_path, "Do something"):
        raise error


def test_a_directory_that_can_be_written_is_no_trouble(tmp_path):
    assert directory_trouble(tmp_path / "not" / "yet" / "there") is None
    assert Path(tmp_path).exists()
