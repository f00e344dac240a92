"""How the work of a batch is divided among Spark's tasks, and the end of the server that does it."""

import threading

import pytest

from penstock.core.source import SourceSplit
from penstock.runtime.source.source_stage import SourceWork, SplitRange
from penstock.spark.batch_planning import _SMALL_BATCH, split_works
from penstock.spark.source_server import SourceClient, SourceServer


def work(subtask, start, end, readers=1):
    return SourceWork(1, subtask, [SplitRange(SourceSplit(str(subtask)), start, end, readers)])


def test_a_small_batch_is_read_by_one_task_unless_it_is_to_be_spread():
    works = [work(0, 0, _SMALL_BATCH // 2), work(1, 10, 10 + _SMALL_BATCH // 2)]
    assert split_works(works, 4, spread=False) == [works]
    assert split_works(works, 4, spread=True) == [works[:1], works[1:]]


def test_a_large_batch_has_as_many_tasks_as_may_run_at_once():
    works = [work(subtask, 0, _SMALL_BATCH) for subtask in range(5)]
    assert split_works(works, 2, spread=False) == [works[::2], works[1::2]]


def test_a_range_that_is_read_in_parts_counts_once():
    parts = [work(subtask, 100, 100 + _SMALL_BATCH, readers=3) for subtask in range(3)]
    assert split_works(parts, 4, spread=False) == [parts]
    parts = [work(subtask, 100, 103 + _SMALL_BATCH, readers=3) for subtask in range(3)]
    assert len(split_works(parts, 4, spread=False)) == 3


def test_where_offsets_are_no_numbers_a_batch_counts_as_large():
    works = [work(0, "a", "b"), work(1, 0, 1)]
    assert split_works(works, 4, spread=False) == [works[:1], works[1:]]


def test_a_batch_without_work_is_one_task_that_carries_the_header():
    assert split_works([], 4, spread=True) == [[]]


class Answers:
    def call(self, method, *arguments):
        return method


def test_no_thread_is_left_of_a_server_that_was_closed():
    before = set(threading.enumerate())
    server = SourceServer(Answers())
    clients = [SourceClient(server.address, server.secret) for _ in range(2)]  # they stay, as Spark's process does
    for client in clients:
        client.call("initial")
    started = set(threading.enumerate()) - before
    assert len(started) == 3
    server.close()
    for thread in started:
        thread.join(60)
    assert not any(thread.is_alive() for thread in started)
    with pytest.raises((EOFError, OSError)):
        clients[0].call("initial")
