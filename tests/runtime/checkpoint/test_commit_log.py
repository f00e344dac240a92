"""The commit log: entries survive a crash, and the run of a batch that counts is the one that was completed."""

from penstock.runtime.checkpoint.commit_log import CommitLog


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_an_entry_is_there_until_it_is_removed_also_after_a_crash(tmp_path):
    CommitLog(str(tmp_path)).put(7, ["a"])
    log = CommitLog(str(tmp_path))
    assert (log.entries(), log.uncertain) == ([(7, ["a"])], {7})
    log.remove(7)
    assert CommitLog(str(tmp_path)).entries() == []
    assert names(tmp_path) == []


def test_a_batch_that_this_driver_runs_again_replaces_its_own_entry(tmp_path):
    log = CommitLog(str(tmp_path))
    log.put(7, ["a"])
    log.put(7, ["b"])
    assert log.entries() == [(7, ["b"])]
    assert names(tmp_path) == ["7.log"]


def test_the_entry_of_the_driver_before_is_kept_until_this_driver_has_completed_the_batch(tmp_path):
    CommitLog(str(tmp_path)).put(7, ["of the driver before"])
    log = CommitLog(str(tmp_path))
    log.put(7, ["own"])
    assert (log.entries(), log.uncertain) == ([(7, ["own"])], set())
    assert names(tmp_path) == ["7.former", "7.log"]
    log.remove(7)
    log.forget_former()
    assert names(tmp_path) == []


def test_the_entry_of_the_driver_before_counts_if_that_one_has_completed_the_batch(tmp_path):
    CommitLog(str(tmp_path)).put(7, ["of the driver before"])
    log = CommitLog(str(tmp_path))
    log.put(7, ["own"])
    log.completed_by_the_driver_before(7)
    assert (log.entries(), log.uncertain) == ([(7, ["of the driver before"])], {7})
    assert CommitLog(str(tmp_path)).entries() == log.entries()


def test_a_batch_without_an_entry_that_the_driver_before_has_completed_has_none(tmp_path):
    log = CommitLog(str(tmp_path))
    log.put(7, ["own"])
    log.completed_by_the_driver_before(7)
    assert log.entries() == []
    assert names(tmp_path) == []


def test_an_entry_of_the_driver_before_for_a_batch_that_now_has_none_is_set_aside(tmp_path):
    CommitLog(str(tmp_path)).put(7, ["of the driver before"])
    log = CommitLog(str(tmp_path))
    log.set_aside(7)
    assert log.entries() == []
    log.completed_by_the_driver_before(7)
    assert log.entries() == [(7, ["of the driver before"])]


def test_after_a_crash_the_own_entry_wins_and_nothing_is_left_in_the_end(tmp_path):
    CommitLog(str(tmp_path)).put(7, ["of the driver before"])
    CommitLog(str(tmp_path)).put(7, ["own"])
    log = CommitLog(str(tmp_path))
    assert log.entries() == [(7, ["own"])]
    log.remove(7)
    log.forget_former()
    assert names(tmp_path) == []


def test_a_crash_before_the_own_entry_was_written_leaves_the_one_of_the_driver_before(tmp_path):
    CommitLog(str(tmp_path)).put(7, ["of the driver before"])
    CommitLog(str(tmp_path)).set_aside(7)
    log = CommitLog(str(tmp_path))
    assert log.entries() == [(7, ["of the driver before"])]
    log.remove(7)
    assert names(tmp_path) == []


def test_an_entry_set_aside_twice_is_still_the_one_of_the_driver_before(tmp_path):
    CommitLog(str(tmp_path)).put(7, ["of the driver before"])
    CommitLog(str(tmp_path)).set_aside(7)
    log = CommitLog(str(tmp_path))
    log.put(7, ["own"])
    log.completed_by_the_driver_before(7)
    assert log.entries() == [(7, ["of the driver before"])]


def test_without_a_directory_it_is_the_same_in_memory():
    log = CommitLog(None)
    log.put(7, ["a"])
    log.put(7, ["b"])
    assert log.entries() == [(7, ["b"])]
    log.completed_by_the_driver_before(7)
    assert log.entries() == []
