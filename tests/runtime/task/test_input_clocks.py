"""From the clocks of splits, over channels and inputs, to the clock of a task (rule 3.6)."""

import pytest

from penstock.runtime.exchange.combined_watermark import CombinedWatermark, PartialWatermark
from penstock.runtime.exchange.frames import BatchHeader, SplitStatus
from penstock.runtime.exchange.partitioner import RebalancePartitioner
from penstock.runtime.plan.job_vertex import JobEdge
from penstock.runtime.task.input_clocks import InputClocks

MIN, MAX = -(2**63), 2**63 - 1


def combined(*names):
    """A combined clock, and the parts of these names."""
    clock = CombinedWatermark()
    parts = [PartialWatermark() for _ in names]
    clock.parts.update(zip(names, parts, strict=True))
    return clock, *parts


class TestCombined:
    def test_the_smallest_of_the_active_parts_counts(self):
        clock, a, b = combined("a", "b")
        a.advance(5)
        assert not clock.update()
        b.advance(2)
        assert clock.update()
        assert clock.watermark == 2
        b.advance(8)
        assert clock.update()
        assert clock.watermark == 5

    def test_a_part_that_becomes_idle_lets_go(self):
        clock, a, b = combined("a", "b")
        a.advance(5)
        b.advance(2)
        clock.update()
        b.idle = True
        assert clock.update()
        assert clock.watermark == 5

    @pytest.mark.parametrize("first", ["a", "b"])
    def test_if_all_are_idle_the_largest_counts_whichever_was_idle_first(self, first):
        clock, a, b = combined("a", "b")
        a.advance(5)
        b.advance(4)
        clock.update()
        for part in (a, b) if first == "a" else (b, a):
            part.idle = True
            clock.update()
        assert clock.watermark == 5
        assert clock.all_idle

    def test_a_part_that_returns_behind_the_others_holds_the_clock_where_it_is(self):
        clock, a, b = combined("a", "b")
        a.advance(5)
        b.advance(2)
        clock.update()
        b.idle = True
        clock.update()
        b.advance(3)
        a.advance(20)
        assert not clock.update()
        b.advance(7)
        assert clock.update()
        assert clock.watermark == 7

    def test_without_parts_there_is_nothing_to_say(self):
        clock, a = combined("a")
        a.advance(5)
        clock.update()
        del clock.parts["a"]
        assert not clock.update()
        assert (clock.watermark, clock.all_idle) == (5, False)


def edge(number, source, input_index=0, senders=1):
    return JobEdge(number, source, 0, None, 9, input_index, RebalancePartitioner(), senders, 1, 128, "target")


def header(**splits):
    """A batch of the source 1 with these splits: the reading subtask, or a whole status."""
    statuses = {name: SplitStatus(status) if type(status) is int else status for name, status in splits.items()}
    return BatchHeader(checkpoint_id=1, now=0, splits={1: statuses})


@pytest.fixture
def source():
    """Splits a and b of one subtask, c of another."""
    clocks = InputClocks({4: edge(4, 1, senders=2)}, 0)
    clocks.begin_batch(header(a=0, b=0, c=1))
    for split, watermark in (("a", 5), ("b", 3), ("c", 4)):
        clocks.watermark(4, split, watermark)
    assert clocks.event_time == 3
    return clocks


class TestSplits:
    def test_a_split_that_returns_behind_those_of_its_subtask_holds_event_time_back(self, source):
        assert source.status(4, "b", idle=True) == [4]
        source.record(4, "b")
        assert source.watermark(4, "c", 10) == [5]
        assert source.watermark(4, "a", 20) == []
        assert source.watermark(4, "b", 7) == [7]

    def test_a_split_that_returns_behind_those_of_other_subtasks_does_not(self, source):
        assert source.status(4, "c", idle=True) == []
        source.watermark(4, "a", 20)
        assert source.watermark(4, "b", 20) == [20]
        source.record(4, "c")
        assert source.watermark(4, "c", 6) == []
        source.watermark(4, "a", 30)
        assert source.watermark(4, "b", 30) == [30]

    def test_a_subtask_whose_splits_are_all_idle_has_the_largest_of_their_clocks(self, source):
        assert source.status(4, "a", idle=True) == []
        assert source.watermark(4, "c", 20) == []
        assert source.status(4, "b", idle=True) == [5, 20]
        assert source.status(4, "c", idle=True) == [True]

    def test_an_idle_subtask_is_active_again_when_its_event_time_advances(self, source):
        for split in "abc":
            source.status(4, split, idle=True)
        assert source.event_time == 5
        source.record(4, "b")
        assert source.watermark(4, "b", 4) == []
        assert source.watermark(4, "b", 6) == [False, 6]

    def test_a_split_that_the_driver_has_read_is_active_from_the_beginning_of_the_batch(self, source):
        source.end_batch(header(a=0, b=SplitStatus(0, idle=True), c=1))
        assert source.event_time == 4
        source.begin_batch(header(a=0, b=SplitStatus(0, idle=False), c=1))
        source.watermark(4, "c", 30)
        assert source.watermark(4, "a", 20) == []  # b comes later in this batch
        assert source.watermark(4, "b", 12) == [12]

    def test_a_finished_split_is_forgotten(self, source):
        assert source.end_batch(header(a=0, b=SplitStatus(0, finished=True), c=1)) == [4]
        assert set(source.origins(4)) == {"a", "c"}

    def test_a_snapshot_changes_nothing(self, source):
        source.status(4, "b", idle=True)
        again = InputClocks({4: edge(4, 1, senders=2)}, 0)
        again.restore(source.snapshot())
        again.begin_batch(header(a=0, b=0, c=1))
        source.begin_batch(header(a=0, b=0, c=1))
        for clocks in (source, again):
            clocks.record(4, "b")
            assert clocks.watermark(4, "c", 10) == [5]
            assert clocks.watermark(4, "a", 20) == []
            assert clocks.watermark(4, "b", 7) == [7]

    def test_the_clocks_of_a_savepoint_are_given_to_the_subtasks_that_read_the_splits_now(self):
        clocks = InputClocks({4: edge(4, 1, senders=2)}, 0)
        saved = {(4, "a"): (5, True, True), (4, "b"): (3, False, True), (4, "c"): (9, False, True)}
        clocks.restore((4, False, saved))
        assert clocks.begin_batch(header(a=1, b=0, c=1)) == []
        assert clocks.event_time == 4
        assert clocks.watermark(4, "b", 20) == [9]


class TestTwoInputs:
    @pytest.fixture
    def clocks(self):
        clocks = InputClocks({4: edge(4, 2, 0), 5: edge(5, 3, 1)}, 0)
        clocks.begin_batch(BatchHeader(checkpoint_id=1, now=0))
        return clocks

    def test_an_input_that_returns_behind_the_other_holds_event_time_back(self, clocks):
        clocks.watermark(4, "0", 10)
        assert clocks.watermark(5, "0", 5) == [5]
        assert clocks.status(5, "0", idle=True) == [10]
        assert clocks.status(5, "0", idle=False) == []
        assert clocks.watermark(4, "0", 20) == []
        assert clocks.watermark(5, "0", 15) == [15]

    def test_the_operator_is_idle_when_both_inputs_are(self, clocks):
        clocks.watermark(4, "0", 10)
        clocks.watermark(5, "0", 5)
        assert clocks.status(4, "0", idle=True) == []
        assert clocks.status(5, "0", idle=True) == [10, True]
        assert clocks.status(4, "0", idle=False) == [False]

    def test_united_inputs_have_one_valve(self):
        clocks = InputClocks({4: edge(4, 2, 0), 5: edge(5, 3, 1)}, 0, united=True)
        clocks.begin_batch(BatchHeader(checkpoint_id=1, now=0))
        clocks.watermark(4, "0", 10)
        clocks.watermark(5, "0", 5)
        clocks.status(5, "0", idle=True)
        clocks.status(5, "0", idle=False)
        assert clocks.watermark(4, "0", 20) == [20]  # left out until it has caught up
