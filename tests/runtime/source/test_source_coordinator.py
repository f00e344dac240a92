"""Batches are planned by the coordinator: how far, when, and what is the end."""

import json

import pytest
from support import Script

from penstock.core.source import Boundedness, Source, SourceSplit, SplitEnumerator
from penstock.runtime.plan.job_vertex import ChainedOperator, JobVertex
from penstock.runtime.plan.offset import Offset, SplitPosition
from penstock.runtime.source.batch_sizer import FIRST_BATCH_RECORDS, BatchSizer
from penstock.runtime.source.source_coordinator import SourceCoordinator


class Idle:
    """Stands for an operator with an idleness timeout."""

    def __init__(self, timeout):
        self.idle_timeout = timeout


def vertex(source, number=0, parallelism=1, idle_timeout=None):
    operators = [ChainedOperator(f"source {number}", "source", None, source, None, 128)]
    if idle_timeout is not None:
        operators.append(ChainedOperator("watermarks", "watermarks", Idle(idle_timeout), None, None, 128))
    return JobVertex(number, "source", parallelism, 128, operators, source_bounded=source.is_bounded)


class Clock:
    now = 1000

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def coordinator(clock, *vertices, limit=None):
    made = SourceCoordinator(list(vertices), clock=clock, sizer=BatchSizer(limit))
    made.start()
    return made


def logged(offset):
    """The offset as it comes back from an engine's log."""
    return Offset.from_json(json.loads(json.dumps(offset.to_json())))


def positions(offset, source="source 0"):
    return {split: at.offset for split, at in offset.of_source(source).items()}


def test_a_bounded_source_is_read_in_batches_to_its_end(clock):
    plan = coordinator(clock, vertex(Script(list("abcde"))), limit=2)
    first = plan.plan(plan.initial_offset)
    second = plan.plan(first)
    third = plan.plan(second)
    assert [positions(offset) for offset in (first, second, third)] == [{"0": 2}, {"0": 4}, {"0": 5}]
    assert [offset.is_last for offset in (first, second, third)] == [False, False, True]
    assert [offset.checkpoint_id for offset in (first, second, third)] == [1, 2, 3]
    assert plan.plan(third) is None


def test_offsets_survive_json_and_a_replayed_batch_is_the_same_batch(clock):
    plan = coordinator(clock, vertex(Script(list("abc"), list("xyz"))), limit=4)
    start = plan.plan(plan.initial_offset)
    end = plan.plan(start)
    start, end = logged(start), logged(end)
    again = coordinator(clock, vertex(Script(list("abc"), list("xyz"))))
    clock.now += 50_000  # the time of the batch is its own
    works = again.assignments(start, end)
    assert [(r.split.split_id, r.start, r.end, r.split.elements) for work in works for r in work.ranges] == [
        ("0", 2, 3, ["c"]),
        ("1", 2, 3, ["z"]),
    ]
    assert again.header(end).now == 1000
    assert again.header(end) == plan.header(end)


def test_the_first_batch_of_a_run_comes_at_once_then_only_when_there_is_something_to_do(clock):
    source = Script([], bounded=False)
    plan = coordinator(clock, vertex(source))
    offset = plan.plan(plan.initial_offset)
    assert offset is not None
    assert plan.plan(offset) is None
    source.add("a")
    offset = plan.plan(offset)
    assert positions(offset) == {"0": 1}
    assert plan.plan(offset) is None


def test_after_a_restart_the_tasks_are_asked_once_what_they_wait_for(clock):
    """A processing-time timer may have come due while the job was down."""
    offset = Offset(5, 900, splits={"source 0": {"0": SplitPosition(0, subtask=0)}})
    plan = coordinator(clock, vertex(Script([], bounded=False)))
    woken = plan.plan(offset)
    assert woken.checkpoint_id == 6
    assert plan.plan(woken) is None


def test_a_batch_is_planned_when_a_timer_is_due(clock):
    plan = coordinator(clock, vertex(Script([], bounded=False)))
    offset = plan.plan(plan.initial_offset)
    plan.wake_at(1500)
    assert plan.plan(offset) is None
    clock.now = 1500
    offset = plan.plan(offset)
    assert offset.processing_time == 1500
    assert plan.plan(offset) is None  # until the batch reports the next time


def test_a_change_before_the_wait_ends_it_at_once(clock):
    sources = coordinator(clock)
    sources.wake()
    sources.wait_for_change(3_600)


def test_time_never_goes_back(clock):
    source = Script([], bounded=False)
    plan = coordinator(clock, vertex(source))
    offset = plan.plan(plan.initial_offset)
    clock.now = 10
    source.add("a")
    assert plan.plan(offset).processing_time == 1000


def test_draining_ends_an_unbounded_job_with_one_more_batch(clock):
    plan = coordinator(clock, vertex(Script(["a"], bounded=False)))
    offset = plan.plan(plan.initial_offset)
    plan.drain()
    last = plan.plan(offset)
    header = plan.header(last)
    assert last.is_last
    assert header.end_of_input
    assert header.finished_sources == {0}
    assert all(status.finished for status in header.splits[0].values())
    assert plan.plan(last) is None


def test_a_job_ends_when_all_its_sources_have(clock):
    plan = coordinator(clock, vertex(Script(["a"]), 0), vertex(Script(list("abc")), 1), limit=2)
    first = plan.plan(plan.initial_offset)
    assert not first.is_last
    assert plan.header(first).finished_sources == {0}
    second = plan.plan(first)
    third = plan.plan(second)
    assert (second.is_last, third.is_last) == (False, True)


def test_splits_are_dealt_out_to_the_subtasks(clock):
    plan = coordinator(clock, vertex(Script(["a"], ["b"], ["c"], ["d"], ["e"]), parallelism=2))
    end = plan.plan(plan.initial_offset)
    works = plan.assignments(plan.initial_offset, end)
    assert {work.subtask: [r.split.split_id for r in work.ranges] for work in works} == {
        0: ["0", "2", "4"],
        1: ["1", "3"],
    }
    assert {split: status.subtask for split, status in plan.header(end).splits[0].items()} == {
        "0": 0,
        "1": 1,
        "2": 0,
        "3": 1,
        "4": 0,
    }


def test_the_last_batch_calls_every_source_task_so_that_it_can_close(clock):
    plan = coordinator(clock, vertex(Script(["a"]), 0), vertex(Script(list("abc")), 1), limit=2)
    offset = plan.plan(plan.initial_offset)
    offset = plan.plan(offset)
    last = plan.plan(offset)
    assert [(work.vertex, len(work.ranges)) for work in plan.assignments(offset, last)] == [(0, 0), (1, 1)]


def test_a_split_is_idle_after_more_than_the_timeout_and_active_with_its_next_record(clock):
    source = Script(["a"], ["b"], bounded=False)
    plan = coordinator(clock, vertex(source, idle_timeout=100))

    def idle(offset):
        return {split: status.idle for split, status in plan.header(offset).splits[0].items()}

    offset = plan.plan(plan.initial_offset)
    assert idle(offset) == {"0": False, "1": False}
    clock.now += 60
    source.add("a2")
    offset = plan.plan(offset)
    clock.now += 40
    assert plan.plan(offset) is None  # not yet: exactly the timeout
    clock.now += 1
    offset = plan.plan(offset)  # nothing came, but the second split became idle
    assert idle(offset) == {"0": False, "1": True}
    source.add("b2", split=1)
    offset = plan.plan(offset)
    assert idle(offset) == {"0": False, "1": False}


def test_without_a_timeout_the_driver_says_nothing_about_idleness(clock):
    plan = coordinator(clock, vertex(Script(["a"], bounded=False)))
    offset = plan.plan(plan.initial_offset)
    assert plan.header(offset).splits[0]["0"].idle is None


class Parcels(Source):
    """Splits of one record each; more of them as they are read."""

    def __init__(self, total, *, forgets=True, bounded=True):
        self.total, self.forgets, self.bounded = total, forgets, bounded

    def get_boundedness(self):
        return Boundedness.BOUNDED if self.bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism):
        return ParcelEnumerator(self)

    def create_reader(self):
        raise NotImplementedError

    def initial_offset(self, split):
        return 0


class ParcelEnumerator(SplitEnumerator):
    def __init__(self, source):
        self.source = source
        self.done = set()
        self.restored = None

    def discover_splits(self):
        names = [str(number) for number in range(self.source.total) if str(number) not in self.done]
        return [SourceSplit(name) for name in names[:3]]

    def has_more_splits(self):
        return self.source.total - len(self.done) > 3

    def latest_offset(self, split, start_offset, max_records):
        return 1

    def is_finished(self, split, offset):
        return offset == 1

    def forget(self, split_ids):
        self.done.update(split_ids)
        return self.source.forgets

    def remembered(self):
        return sorted(self.done)

    def restore(self, finished):
        self.restored = dict(finished)

    def restore_split(self, split_id):
        return SourceSplit(split_id)


def test_finished_splits_leave_the_offset_when_the_source_remembers_them(clock):
    plan = coordinator(clock, vertex(Parcels(7), parallelism=2))
    offset, seen = plan.initial_offset, []
    while not offset.is_last:
        before, offset = offset, plan.plan(offset)
        seen.append(sorted(positions(offset)))
        assert [r.split.split_id for work in plan.assignments(before, offset) for r in work.ranges]
    assert seen == [["0", "1", "2"], ["3", "4", "5"], ["6"]]
    assert len(plan.sources[0].splits) <= 3
    assert len(plan.sources[0].last_active) <= 3


def test_a_savepoint_names_splits_that_only_the_source_remembers(clock):
    plan = coordinator(clock, vertex(Parcels(7)))
    second = plan.plan(plan.plan(plan.initial_offset))
    assert sorted(positions(second)) == ["3", "4", "5"]
    assert sorted(positions(plan.with_forgotten_splits(second))) == ["0", "1", "2", "3", "4", "5"]


def test_a_bounded_source_does_not_end_before_its_last_split_is_listed(clock):
    plan = coordinator(clock, vertex(Parcels(4)))
    first = plan.plan(plan.initial_offset)
    assert (first.is_last, first.more) == (False, ("source 0",))
    assert plan.header(first).finished_sources == frozenset()
    second = plan.plan(first)
    assert second.is_last
    assert not second.more
    assert plan.header(second).finished_sources == {0}


def test_finished_splits_stay_in_the_offset_when_the_source_cannot_remember_them(clock):
    plan = coordinator(clock, vertex(Parcels(4, forgets=False, bounded=False)))
    first = plan.plan(plan.initial_offset)
    second = plan.plan(first)
    assert sorted(positions(second)) == ["0", "1", "2", "3"]
    assert list(plan.header(second).splits[0]) == ["3"]
    assert plan.assignments(first, second)[0].ranges[0].split.split_id == "3"
    assert plan.plan(second) is None  # that splits are over is no reason for a batch


def test_a_split_stays_with_its_subtask_and_new_ones_go_where_there_are_fewest(clock):
    plan = coordinator(clock, vertex(Parcels(7), parallelism=2))
    offset = plan.initial_offset
    owners = {}
    while not offset.is_last:
        offset = plan.plan(offset)
        for name, at in offset.of_source("source 0").items():
            assert owners.setdefault(name, at.subtask) == at.subtask
    assert owners == {"0": 0, "1": 1, "2": 0, "3": 0, "4": 1, "5": 0, "6": 0}


def test_a_continued_job_tells_the_source_what_its_checkpoint_has_and_asks_for_lost_splits(clock):
    plan = coordinator(clock, vertex(Parcels(4)))
    first = plan.plan(plan.initial_offset)
    start, end = logged(plan.initial_offset), logged(first)
    again = coordinator(clock, vertex(Parcels(0)))  # nothing of it is listed any more
    assert [r.split.split_id for work in again.assignments(start, end) for r in work.ranges] == ["0", "1", "2"]
    again.plan(end)
    assert again.sources[0].enumerator.restored == {"0": True, "1": True, "2": True}


# -- splits that appear, and where they begin --------------------------------------------------------------------------


class Log(Source):
    """Partitions that grow; a new one begins where its end is at the moment of asking."""

    def __init__(self):
        self.ends = {}
        self.asked = []

    @property
    def is_bounded(self):
        return False

    def create_enumerator(self, parallelism):
        return LogEnumerator(self)

    def create_reader(self):
        raise NotImplementedError

    def initial_offset(self, split):
        raise AssertionError("the enumerator says")


class LogEnumerator(SplitEnumerator):
    def __init__(self, log):
        self.log = log

    def discover_splits(self):
        return [SourceSplit(name) for name in sorted(self.log.ends)]

    def starting_offset(self, split, *, fresh):
        self.log.asked.append((split.split_id, fresh))
        return self.log.ends[split.split_id] if fresh else 0

    def latest_offset(self, split, start_offset, max_records):
        return min(self.log.ends[split.split_id], start_offset + max_records)

    def pending_records(self, split_id, offset):
        return self.log.ends[split_id] - offset

    def is_finished(self, split, offset):
        return False


def ranges(works):
    return [(r.split.split_id, r.start, r.end) for work in works for r in work.ranges]


def test_where_a_split_begins_is_part_of_the_plan_and_asked_once(clock):
    log = Log()
    log.ends = {"b": 10}
    plan = coordinator(clock, vertex(log))
    first = logged(plan.plan(plan.initial_offset))
    log.ends["b"] = 25  # after a crash: the end is elsewhere, the plan is not
    again = coordinator(clock, vertex(log))
    assert ranges(again.assignments(again.initial_offset, first)) == []
    second = again.plan(first)
    assert ranges(again.assignments(first, second)) == [("b", 10, 25)]
    assert log.asked == [("b", True)]


def test_o111_the_lag_of_a_source_is_what_it_knows_behind_the_plan(clock):
    log = Log()
    log.ends = {"a": 3, "b": 10}
    plan = coordinator(clock, vertex(log))
    offset = plan.plan(plan.initial_offset)
    log.ends = {"a": 8, "b": 10}
    assert plan.pending_records(offset) == {plan.sources[0].key: {"a": 5, "b": 0}}
    parcels = coordinator(clock, vertex(Parcels(4)))
    assert parcels.pending_records(parcels.plan(parcels.initial_offset)) == {}


def test_a_split_that_is_gone_since_the_checkpoint_is_in_the_way_of_nothing(clock):
    """A topic that was deleted: nothing is read of it, and event time waits for it no longer than for a silent one."""
    log = Log()
    log.ends = {"a": 3, "b": 3}
    plan = coordinator(clock, vertex(log, idle_timeout=100))
    start = logged(plan.plan(plan.initial_offset))
    del log.ends["a"]
    log.ends["b"] = 5
    again = coordinator(clock, vertex(log, idle_timeout=100))
    end = again.plan(start)
    assert ranges(again.assignments(start, end)) == [("b", 3, 5)]
    clock.now += 101
    end = again.plan(end)
    assert {name: status.idle for name, status in again.header(end).splits[0].items()} == {"a": True, "b": True}


def test_a_split_that_appears_later_is_known_as_such_and_moves_no_other(clock):
    log = Log()
    log.ends = {"b": 10, "c": 10}
    plan = coordinator(clock, vertex(log, parallelism=2))
    first = plan.plan(plan.initial_offset)
    log.ends = {"a": 3, "b": 12, "c": 12}  # listed first, but new
    second = plan.plan(first)
    assert sorted(ranges(plan.assignments(first, second))) == [("a", 0, 3), ("b", 10, 12), ("c", 10, 12)]
    assert log.asked == [("b", True), ("c", True), ("a", False)]
    before, after = (plan.header(offset).splits[0] for offset in (first, second))
    assert all(before[name].subtask == after[name].subtask for name in "bc")


class TestBudgets:
    """How the records that a batch may have are shared out."""

    @staticmethod
    def sizes(before, after):
        return [positions(after)[split] - positions(before).get(split, 0) for split in positions(after)]

    def test_splits_that_are_read_share_what_a_batch_may_have_evenly(self, clock):
        plan = coordinator(clock, vertex(Script(*[["x"] * 1_000] * 4)), limit=100)
        first = plan.plan(plan.initial_offset)
        second = plan.plan(first)
        assert [self.sizes(a, b) for a, b in ((EMPTY, first), (first, second))] == [[25] * 4] * 2

    @pytest.mark.parametrize("quiet", [[], ["x"]], ids=["silent", "finished"])
    def test_one_busy_split_among_many_is_not_held_back_by_the_others(self, clock, quiet):
        source = Script(["x"] * 1_000, *[quiet] * 99, bounded=False)
        source.ended = {str(split) for split in range(1, 100)} if quiet else set()
        plan = coordinator(clock, vertex(source), limit=200)
        first = plan.plan(plan.initial_offset)
        second = plan.plan(first)
        third = plan.plan(second)
        assert self.sizes(EMPTY, first)[0] == 2
        assert self.sizes(second, third)[0] >= 100

    def test_a_batch_never_has_more_than_the_limit_whoever_wakes_up(self, clock):
        source = Script(["x"] * 10_000, *[[] for _ in range(9)], bounded=False)
        plan = coordinator(clock, vertex(source), limit=100)
        before = plan.plan(plan.initial_offset)
        for _ in range(5):
            after = plan.plan(before)
            assert 50 <= sum(self.sizes(before, after)) <= 100
            before = after
        for split in range(1, 10):
            source.add(*["y"] * 10_000, split=split)
        for _ in range(5):
            after = plan.plan(before)
            assert sum(self.sizes(before, after)) <= 100
            before = after
        assert self.sizes(before, plan.plan(before)) == [10] * 10

    def test_a_source_that_is_silent_leaves_its_share_to_the_others(self, clock):
        busy, silent = (Script(part, bounded=False) for part in (["x"] * 1_000_000, []))
        plan = SourceCoordinator([vertex(busy, 0), vertex(silent, 1), vertex(silent, 2)], clock=clock)
        plan.start()
        first = plan.plan(plan.initial_offset)
        assert positions(first) == {"0": FIRST_BATCH_RECORDS // 3}
        second = plan.plan(first)
        assert FIRST_BATCH_RECORDS // 2 <= self.sizes(first, second)[0] <= FIRST_BATCH_RECORDS


EMPTY = Offset()
