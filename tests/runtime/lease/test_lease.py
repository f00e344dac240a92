"""One driver at a time: who gets the lease on a checkpoint directory, and who notices that it is gone."""

import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from tests.runtime.lease.leases import MovedByHand, owner

from penstock.common.errors import CheckpointError, CheckpointInUseError, FencedError
from penstock.runtime.lease.owner import started_at

# -- taking it ----------------------------------------------------------------------------------------------------


def test_every_owner_has_a_higher_epoch(directory):
    epochs = []
    for _ in range(4):
        lease = directory.acquire()
        epochs.append(lease.epoch)
        lease.release()
    assert epochs == [1, 2, 3, 4]


def test_a_second_driver_is_refused_and_told_who_holds_the_lease_since_when_and_how_to_take_over(directory):
    directory.acquire(owner("counting", pid=1, started=started_at(1), host="here", since=1_700_000_000.0))
    with pytest.raises(CheckpointInUseError) as refused:
        directory.acquire()
    message = str(refused.value)
    assert str(directory.path) in message
    assert "job 'counting' (counting) in process 1 on here since 2023-11-14 22:13:20 UTC" in message
    assert "penstock cancel counting" in message
    assert "penstock run --take-over" in message
    assert "penstock.lease.take-over=true" in message


def test_two_jobs_of_one_process_do_not_share_a_directory(directory):
    first = directory.acquire()
    with pytest.raises(CheckpointInUseError):
        directory.acquire()
    first.release()
    directory.acquire().check()


def test_a_lease_that_was_given_back_is_taken_at_once(directory):
    directory.acquire(owner(machine="elsewhere")).release()
    directory.acquire(clock=MovedByHand(lambda now: pytest.fail("waited"))).check()


def test_of_many_drivers_that_start_at_once_one_gets_the_lease(directory):
    directory.acquire(owner(pid=1 << 30, started="1"))  # dead: all of them try to take over
    start, outcomes = threading.Barrier(8), []

    def drive():
        start.wait()
        try:
            outcomes.append(directory.acquire().epoch)
        except CheckpointInUseError:
            outcomes.append("refused")

    threads = [threading.Thread(target=drive) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes, key=str) == [2] + ["refused"] * 7


def test_only_the_files_of_the_last_owner_stay(directory):
    for _ in range(3):
        directory.acquire(take_over=True)
    assert directory.names == ["epoch-000003", "heartbeat-000003"]


def test_a_file_without_content_of_a_driver_that_died_in_the_middle_is_no_owner(directory):
    directory.files.create("epoch-000004", b"")
    assert directory.acquire(clock=MovedByHand()).epoch == 5


def test_without_hard_links_files_are_created_exclusively(directory, monkeypatch):
    def refuse(source, target):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("penstock.runtime.lease.files.os.link", refuse)
    assert directory.files.create("epoch-000001", b"one")
    assert not directory.files.create("epoch-000001", b"two")
    assert directory.files.read("epoch-000001") == b"one"
    assert directory.names == ["epoch-000001"]


def test_a_directory_that_cannot_be_written_is_an_error_that_names_it(tmp_path, directory):
    (tmp_path / "lease").write_text("a file")
    with pytest.raises(CheckpointError, match=f"cannot use the lease of the checkpoint directory {tmp_path}"):
        directory.acquire()


# -- owners that are dead -----------------------------------------------------------------------------------------


def test_a_dead_owner_on_this_machine_is_replaced_at_once(directory):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        dead = owner("dead", pid=process.pid, started=started_at(process.pid))
        directory.acquire(dead)
        with pytest.raises(CheckpointInUseError):
            directory.acquire()
        process.kill()
    directory.acquire(clock=MovedByHand(lambda now: pytest.fail("waited"))).check()


def test_a_process_that_has_ended_and_was_not_waited_for_is_dead(directory):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        zombie = owner("zombie", pid=process.pid, started=started_at(process.pid))
        directory.acquire(zombie)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # its number stays taken
        directory.acquire().check()


def test_another_process_with_the_number_of_a_dead_owner_is_not_the_owner(directory):
    directory.acquire(owner("dead", pid=1, started="another time"))
    directory.acquire().check()


def test_a_process_in_another_container_cannot_be_looked_up_by_its_number(directory):
    """Its number means nothing here: it may be alive though there is no such process."""
    theirs = directory.acquire(owner("theirs", machine="another pid namespace", pid=1 << 30, started="1"))
    with pytest.raises(CheckpointInUseError):
        directory.acquire(clock=MovedByHand(lambda now: theirs.renew()))


def test_a_dead_owner_on_another_machine_is_replaced_after_its_timeout(directory):
    directory.acquire(owner(machine="elsewhere"), timeout=7.0)
    clock = MovedByHand()
    assert directory.acquire(clock=clock).epoch == 2
    assert clock.now == pytest.approx(7.0, abs=0.5)


def test_a_living_owner_on_another_machine_is_noticed_with_its_next_sign_of_life(directory):
    theirs = directory.acquire(owner(machine="elsewhere"), timeout=9.0)
    clock = MovedByHand(lambda now: theirs.renew() if now >= 3 else None)
    with pytest.raises(CheckpointInUseError, match="on elsewhere"):
        directory.acquire(clock=clock)
    assert clock.now == pytest.approx(3.0, abs=0.5)


@pytest.mark.parametrize("hours", [-1, 1])
def test_clocks_that_differ_by_an_hour_neither_free_a_lease_nor_keep_it(directory, monkeypatch, hours):
    theirs = directory.acquire(owner(machine="elsewhere"))
    monkeypatch.setattr("penstock.runtime.lease.lease.time.time", lambda: hours * 3600.0)
    with pytest.raises(CheckpointInUseError):
        directory.acquire(clock=MovedByHand(lambda now: theirs.renew()))
    assert directory.acquire(clock=MovedByHand()).epoch == 2


def test_a_pause_of_the_driver_that_waits_is_no_death_of_the_owner(directory):
    """It sleeps for a moment, and an hour later the machine wakes up: the owner was renewing all the time."""
    theirs = directory.acquire(owner(machine="elsewhere"))

    class Suspended(MovedByHand):
        def sleep(self, seconds):
            super().sleep(3600.0)
            theirs.renew()

    with pytest.raises(CheckpointInUseError):
        directory.acquire(clock=Suspended())


def test_a_driver_that_waits_is_refused_if_a_third_one_takes_over_first(directory):
    directory.acquire(owner(machine="elsewhere"))
    thirds = []

    def third(now):
        if not thirds:
            thirds.append(directory.acquire(take_over=True))

    with pytest.raises(CheckpointInUseError, match="epoch 2"):
        directory.acquire(clock=MovedByHand(third))


def test_a_lease_given_back_while_a_driver_waits_is_taken_without_further_waiting(directory):
    theirs = directory.acquire(owner(machine="elsewhere"), timeout=100.0)
    clock = MovedByHand(lambda now: theirs.release())
    assert directory.acquire(clock=clock).epoch == 2
    assert clock.now < 10


# -- owners that were replaced ------------------------------------------------------------------------------------


def test_an_owner_that_was_replaced_notices_it_at_its_next_check(directory):
    first = directory.acquire(owner("first"))
    first.check()
    second = directory.acquire(owner("second"), take_over=True)
    with pytest.raises(FencedError, match=r"taken over .* job 'second' .* \(epoch 2, this driver has 1\)"):
        first.check()
    second.check()


def test_an_owner_that_was_replaced_many_times_notices_it_though_the_next_epoch_is_gone(directory):
    first = directory.acquire()
    for _ in range(3):
        last = directory.acquire(take_over=True)
    assert directory.names == ["epoch-000004", "heartbeat-000004"]
    with pytest.raises(FencedError, match="epoch 4, this driver has 1"):
        first.check()
    last.check()


def test_an_owner_that_was_replaced_neither_renews_nor_gives_back_what_is_not_its_own(directory):
    first = directory.acquire()
    second = directory.acquire(owner(machine="elsewhere"), take_over=True)
    with pytest.raises(FencedError):
        first.renew()
    first.release()
    second.check()
    with pytest.raises(CheckpointInUseError):
        directory.acquire(clock=MovedByHand(lambda now: second.renew()))


def test_an_owner_that_was_replaced_removes_nothing(directory):
    first = directory.acquire()
    directory.acquire(take_over=True)
    first.release(remove=lambda: pytest.fail("removed another driver's directory"))


def test_once_lost_is_lost_for_good(directory):
    first = directory.acquire()
    first.raise_if_lost()
    second = directory.acquire(take_over=True)
    with pytest.raises(FencedError):
        first.check()
    second.release(remove=lambda: shutil.rmtree(directory.path))
    for known in (first.check, first.raise_if_lost, first.renew):
        with pytest.raises(FencedError):
            known()
    first.release()
    assert not directory.path.exists()


def test_whoever_starts_anew_in_a_directory_that_was_emptied_owns_it(directory):
    """Epochs begin at 1 again: that is lower, but it is another driver's."""
    paused = [directory.acquire(take_over=True) for _ in range(3)][-1]
    shutil.rmtree(directory.path / "lease")
    directory.acquire().check()
    with pytest.raises(FencedError):
        paused.check()


def test_renewing_in_the_background_notices_it_without_a_batch(directory):
    first = directory.acquire(timeout=0.03)
    first.start_renewing()
    directory.acquire(take_over=True)
    first._renewing.join(timeout=60)
    with pytest.raises(FencedError):
        first.raise_if_lost()


# -- owners that are fine -----------------------------------------------------------------------------------------


def test_an_owner_that_could_not_renew_for_long_goes_on_if_nobody_has_taken_over(directory, monkeypatch):
    """A suspended machine, a slow disk, a long pause."""
    lease = directory.acquire(timeout=0.001)
    monkeypatch.setattr("penstock.runtime.lease.lease.time.time", lambda: 1e12)
    lease.check()
    lease.renew()


def test_errors_of_the_storage_while_renewing_do_not_end_the_lease(directory, monkeypatch):
    lease = directory.acquire(timeout=0.03)
    failed, renewed = threading.Semaphore(0), threading.Event()
    write = directory.files.write
    broken = threading.Event()

    def sometimes(name, content):
        if broken.is_set():
            failed.release()
            raise CheckpointError("disk full")
        write(name, content)
        renewed.set()

    monkeypatch.setattr(directory.files, "write", sometimes)
    broken.set()
    lease.start_renewing()
    for _ in range(3):
        assert failed.acquire(timeout=60)
    before = directory.files.read("heartbeat-000001")
    broken.clear()
    assert renewed.wait(timeout=60)
    assert directory.files.read("heartbeat-000001") != before
    lease.check()
    lease.release()


def test_a_lease_whose_files_were_removed_by_hand_is_restored(directory):
    lease = directory.acquire()
    shutil.rmtree(directory.path / "lease")
    lease.check()
    assert "epoch-000001" in directory.names
    with pytest.raises(CheckpointInUseError):
        directory.acquire()


def test_the_directory_can_be_removed_with_the_lease(directory):
    lease = directory.acquire(timeout=0.03)
    lease.start_renewing()
    lease.release(remove=lambda: shutil.rmtree(directory.path))
    lease._renewing.join(timeout=60)
    assert not directory.path.exists()


def test_a_check_reads_one_file_and_looks_for_one(directory, monkeypatch):
    """It is done several times in every batch."""
    lease = directory.acquire()
    calls = []
    for name in ("read", "exists", "names", "write", "create", "remove"):
        method = getattr(directory.files, name)
        monkeypatch.setattr(
            directory.files, name, lambda *args, name=name, method=method: calls.append(name) or method(*args)
        )
    lease.check()
    assert calls == ["read", "exists"]


# -- a store that does not keep to the condition -------------------------------------------------------------------


def test_of_two_that_created_the_same_epoch_the_one_that_was_overwritten_notices(directory):
    """A store that only looks before it writes, as S3 without conditional writes."""
    first = directory.acquire(owner("first"))
    content = replace(first.owner, id="another").to_json()
    (directory.path / "lease" / "epoch-000001").write_bytes(content)
    with pytest.raises(FencedError):
        first.check()
