"""The receive log: elements of a source that cannot be asked again."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.errors import SerializationError
from penstock.runtime.source.receive_log import ReceiveLog

pytestmark = pytest.mark.exhaustive


def test_elements_can_be_read_again_until_they_are_truncated(tmp_path):
    log = ReceiveLog(str(tmp_path))
    log.extend(list("abcde"))
    assert log.seal(0, 3) == 3
    assert log.pending == 2
    assert log.seal(3, 10) == 5
    assert log.read(0, 5) == list("abcde")
    assert log.read(2, 4) == ["c", "d"]
    log.truncate(3)
    assert log.read(3, 5) == ["d", "e"]
    assert len(list(tmp_path.iterdir())) == 1


def test_nothing_new_leaves_the_position_where_it_is(tmp_path):
    log = ReceiveLog(str(tmp_path))
    assert log.seal(7, 10) == 7
    assert log.end == 7


def test_a_new_log_finds_what_the_old_one_had_sealed(tmp_path):
    old = ReceiveLog(str(tmp_path))
    old.extend(["a", "b", "c"])
    old.seal(0, 2)
    new = ReceiveLog(str(tmp_path))
    assert new.end == 2
    assert new.read(0, 2) == ["a", "b"]
    new.append("d")
    assert new.seal(0, 10) == 3  # what had been sealed but not processed comes first
    assert new.read(0, 3) == ["a", "b", "d"]


def test_a_log_that_was_truncated_goes_on_behind_the_committed_position(tmp_path):
    old = ReceiveLog(str(tmp_path))
    old.extend(list(range(10)))
    old.seal(0, 10)
    old.truncate(10)
    new = ReceiveLog(str(tmp_path))
    new.append("next")
    assert new.seal(10, 5) == 11
    assert new.read(10, 11) == ["next"]


def test_a_torn_write_leaves_no_segment(tmp_path):
    log = ReceiveLog(str(tmp_path))
    (tmp_path / "00000000000000000000.tmp").write_bytes(b"half")
    log.append("a")
    assert log.seal(0, 1) == 1
    assert ReceiveLog(str(tmp_path)).read(0, 1) == ["a"]


def test_a_log_without_a_directory_removes_itself():
    log = ReceiveLog(None)
    directory = log._directory
    log.append(1)
    log.seal(0, 1)
    assert list(directory.iterdir())
    log.close()
    assert not directory.exists()


def test_elements_of_local_classes_can_be_received(tmp_path):
    class Local:
        value = 3

    log = ReceiveLog(str(tmp_path))
    log.append(Local())
    log.seal(0, 1)
    assert ReceiveLog(str(tmp_path)).read(0, 1)[0].value == 3


def test_an_element_that_cannot_be_pickled_is_named(tmp_path):
    log = ReceiveLog(str(tmp_path))
    log.append(threading.Lock())
    with pytest.raises(SerializationError, match="what a source received cannot be pickled"):
        log.seal(0, 1)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4), st.booleans()), max_size=30))
def test_every_element_is_read_once_and_in_order_whatever_happens(tmp_path_factory, rounds):
    """(elements received, limit of the batch, whether the driver dies after it)"""
    directory = str(tmp_path_factory.mktemp("log"))
    log, position, sent, got = ReceiveLog(directory), 0, 0, []
    for received, limit, dies in rounds:
        log.extend(list(range(sent, sent + received)))
        sent += received
        end = log.seal(position, limit)
        assert end - position <= limit
        got += log.read(position, end)
        position = end
        log.truncate(position)
        if dies:
            lost = log.pending
            log = ReceiveLog(directory)
            sent -= lost  # the sender sends again what was never made durable
    assert got == list(range(len(got)))
    assert len(got) == position


def test_in_the_continuous_mode_the_steps_to_a_checkpoint_share_a_file(tmp_path):
    log = ReceiveLog(str(tmp_path), arrived=lambda: None)
    log.extend(list("abcdef"))
    for position in range(4):
        assert log.seal(position, 1) == position + 1
    assert len(list(tmp_path.iterdir())) == 1
    log.truncate(2)  # a checkpoint in the middle: what follows begins a new file
    assert log.seal(4, 2) == 6
    assert len(list(tmp_path.iterdir())) == 2
    log.truncate(4)
    assert len(list(tmp_path.iterdir())) == 1
    assert log.read(4, 6) == ["e", "f"]
    log.truncate(6)
    assert list(tmp_path.iterdir()) == []


def test_the_driver_is_told_when_elements_begin_to_wait_and_not_for_each(tmp_path):
    told = []
    log = ReceiveLog(str(tmp_path), arrived=lambda: told.append(log.pending))
    log.extend([])
    log.extend(["a", "b"])
    log.append("c")
    assert told == [2]
    log.seal(0, 10)
    log.append("d")
    assert told == [2, 1]


def test_what_was_appended_is_found_after_a_crash_and_an_open_file_of_the_old_driver_is_not_read(tmp_path):
    old = ReceiveLog(str(tmp_path), arrived=lambda: None)
    old.extend(list("abcd"))
    old.seal(0, 2)
    old.seal(2, 2)
    (path,) = tmp_path.iterdir()
    with path.open("ab") as late:
        late.write(b"half a")
        new = ReceiveLog(str(tmp_path), arrived=lambda: None)
        late.write(b"nother segment")
    assert new.read(0, 4) == list("abcd")
    again = ReceiveLog(str(tmp_path))
    assert again.read(0, 4) == list("abcd")
    again.discard_after(3)
    assert ReceiveLog(str(tmp_path)).end == 3
