"""Watermark alignment, as the driver plans it: who is read, who waits, and for whom (FLIP-182, FLIP-217)."""

import json
from itertools import pairwise

import pytest
from support import Script

from penstock.common.watermark_strategy import WatermarkAlignment
from penstock.runtime.exchange.frames import SplitProgress, TaskReport
from penstock.runtime.plan.job_vertex import ChainedOperator, JobVertex
from penstock.runtime.plan.offset import Offset
from penstock.runtime.source.alignment import WatermarkAligner
from penstock.runtime.source.batch_sizer import FIRST_BATCH_RECORDS, MIN_BATCH_RECORDS, BatchSizer
from penstock.runtime.source.source_coordinator import ACTIVE, IDLE, SourceCoordinator

DRIFT, INTERVAL = 100, 1_000
A, B = (0, "0"), (0, "1")  # splits of the first source
OTHER = (1, "0")


class Stamping:
    """Stands for the operator that makes watermarks."""

    def __init__(self, idle_timeout):
        self.idle_timeout = idle_timeout


def vertex(number, source, drift=DRIFT, idle_timeout=None, group="group"):
    operators = [
        ChainedOperator(f"source {number}", "source", None, source, None, 128),
        ChainedOperator("watermarks", "watermarks", Stamping(idle_timeout), None, None, 128),
    ]
    made = JobVertex(number, "source", 1, 128, operators, source_bounded=source.is_bounded)
    made.alignment = None if group is None else WatermarkAlignment(group, drift, INTERVAL)
    made.declares_idleness = idle_timeout is not None
    return made


class Plans:
    """Batches of sources whose records are their timestamps: what is planned is read at once and reported."""

    def __init__(self, *vertices, limit=None):
        self.now = 0
        self.watermarks = {}
        self._vertices, self._limit = vertices, limit
        self._start(None)

    def _start(self, offset):
        self.coordinator = SourceCoordinator(
            list(self._vertices),
            clock=lambda: self.now,
            sizer=BatchSizer(self._limit),
            aligner=WatermarkAligner(self._vertices),
        )
        self.coordinator.start()
        self.offset = offset or self.coordinator.initial_offset

    def restart(self):
        """Of the driver: nothing is left but the offset, as it was logged."""
        self._start(Offset.from_json(json.loads(json.dumps(self.offset.to_json()))))

    def step(self):
        """Plan and run one batch; how many records of each split it read, or None if there is nothing to do."""
        start, end = self.offset, self.coordinator.plan(self.offset)
        if end is None:
            return None
        self.offset = end
        return self.run(start, end)

    def run(self, start, end):
        splits, read = {}, {}
        for work in self.coordinator.assignments(start, end):
            for portion in work.ranges:
                name, timestamps = (work.vertex, portion.split.split_id), portion.split.elements
                read[name] = len(timestamps)
                self.watermarks[name] = max([self.watermarks.get(name, 0), *timestamps])
                splits[name] = SplitProgress(max(timestamps))
        self.report(splits)
        return read

    def report(self, splits):
        self.coordinator.observe([TaskReport(0, 0, "source", -(2**63), None, [], {}, splits=splits)])

    def run_to_end(self):
        """All batches."""
        batches = []
        while not self.offset.is_last:
            batches.append(self.step())
        return batches

    @property
    def paused(self):
        """The splits that were held back when the last batch was planned."""
        sources = [self.offset.alignment[vertex.operators[0].operator_id] for vertex in self._vertices]
        return {(number, split) for number, source in enumerate(sources) for split, (_, held) in source.items() if held}


FAST = list(range(0, 10_000, 50))
SLOW = list(range(0, 10_000, 5))


def largest_distance(run):
    """Between the two splits, at the ends of batches in which both are read."""
    largest = 0
    while not run.offset.is_last:
        run.step()
        if not any(at.state.is_finished for source in run.offset.splits.values() for at in source.values()):
            largest = max(largest, max(run.watermarks.values()) - min(run.watermarks.values()))
    return largest


class TestWhoWaits:
    @pytest.mark.parametrize("drift", [0, 1, 100])
    def test_who_is_ahead_by_more_than_the_drift_waits_not_who_is_ahead_by_as_much(self, drift):
        at_the_limit = Plans(vertex(0, Script([drift, 5_000], [0, 5_000], bounded=False), drift), limit=2)
        at_the_limit.step()
        assert at_the_limit.step() == {A: 1, B: 1}
        beyond = Plans(vertex(0, Script([drift + 1, 5_000], [0, 5_000], bounded=False), drift), limit=2)
        beyond.step()
        assert beyond.step() == {B: 1}
        assert beyond.paused == {A}

    def test_who_waits_is_read_again_when_the_others_have_caught_up(self):
        run = Plans(vertex(0, Script(FAST, SLOW)), limit=20)
        batches = run.run_to_end()
        read_fast = [A in batch for batch in batches]
        assert read_fast.index(False) < len(read_fast) - 1
        assert any(read_fast[read_fast.index(False) :])
        assert sum(batch.get(A, 0) for batch in batches) == len(FAST)
        assert sum(batch.get(B, 0) for batch in batches) == len(SLOW)

    def test_splits_of_one_source_stay_together(self):
        assert largest_distance(Plans(vertex(0, Script(FAST, SLOW)), limit=20)) <= DRIFT + 15 * 50
        assert largest_distance(Plans(vertex(0, Script(FAST, SLOW), group=None), limit=20)) > 8_000

    def test_sources_of_one_group_stay_together_and_of_two_groups_do_not(self):
        together = Plans(vertex(0, Script(FAST)), vertex(1, Script(SLOW)), limit=20)
        assert largest_distance(together) <= DRIFT + 10 * 50
        strangers = Plans(vertex(0, Script(FAST), group="one"), vertex(1, Script(SLOW), group="other"), limit=20)
        assert largest_distance(strangers) > 8_000

    def test_every_source_has_its_own_drift(self):
        patient, strict = Script([0, 500, 9_000], bounded=False), Script([0, 500, 9_000], bounded=False)
        slow = Script([0, 1, 2, 3], bounded=False)
        run = Plans(vertex(0, patient, 1_000), vertex(1, strict, 100), vertex(2, slow, 100), limit=3)
        run.step()
        run.step()
        assert run.step() == {A: 1, (2, "0"): 1}
        assert run.paused == {OTHER}

    def test_a_source_outside_of_the_group_neither_waits_nor_is_waited_for(self):
        run = Plans(vertex(0, Script([0, 10, 20])), vertex(1, Script([9_000, 9_001, 9_002]), group=None), limit=2)
        assert run.run_to_end() == [{A: 1, OTHER: 1}] * 3


class TestWhoIsWaitedFor:
    def test_a_split_that_was_read_to_its_end_holds_nobody_back(self):
        run = Plans(vertex(0, Script([5_000, 6_000], [0])), limit=2)
        assert run.run_to_end() == [{A: 1, B: 1}, {A: 1}]

    def test_an_idle_split_does_not_hold_others_back(self):
        run = Plans(vertex(0, Script([5_000, 6_000], [0], bounded=False), idle_timeout=100), limit=2)
        run.step()
        assert run.step() is None
        run.now = 100
        assert run.step() is None
        run.now = 101
        assert run.step() == {}  # in which the split is declared idle
        assert run.step() == {A: 1}

    def test_a_split_that_its_own_generator_calls_idle_holds_nobody_back(self):
        source = Script([5_000, 6_000], [0], bounded=False)
        run = Plans(vertex(0, source), limit=2)
        run.step()
        run.report({B: SplitProgress(0, idle=True)})
        assert run.step() == {A: 1}
        source.add(10_000, split=0)
        source.add(1, split=1)
        run.report({B: SplitProgress(0, idle=False)})
        assert run.step() == {B: 1}

    def test_a_split_that_never_had_a_watermark_holds_nobody_back(self):
        run = Plans(vertex(0, Script([5_000, 6_000], [], bounded=False)), limit=2)
        assert [run.step(), run.step()] == [{A: 1}, {A: 1}]

    def test_a_new_split_is_waited_for_as_soon_as_it_has_a_watermark(self):
        source = Script([5_000, 6_000, 7_000], bounded=False)
        run = Plans(vertex(0, source), limit=2)
        run.step()
        source.splits.append([0, 1])
        run.step()
        assert run.step() == {B: 1}

    def test_a_split_that_waits_does_not_become_idle(self):
        """Nor at once when it need not wait any more: only then the time without records begins."""
        source = Script([2_000], list(range(0, 2_200, 50)), bounded=False)
        run = Plans(vertex(0, source, idle_timeout=100), limit=2)

        def states():
            return [run.offset.of_source("source 0")[split].state for split in "01"]

        for _ in range(30):
            run.now += 50
            run.step()
        assert (run.paused, states()) == ({A}, [ACTIVE, ACTIVE])
        while run.paused:
            run.now += 50
            run.step()
        assert states() == [ACTIVE, ACTIVE]
        run.now += 100
        run.step()
        assert states()[0] == IDLE


class TestNoWaitingWithoutEnd:
    def test_others_go_on_a_step_each_interval_while_the_slowest_has_nothing(self):
        source = Script([5_000, 6_000, 7_000], [0], bounded=False)
        run = Plans(vertex(0, source), limit=2)
        run.step()
        assert run.step() is None
        run.now = INTERVAL - 1
        assert run.step() is None
        run.now = INTERVAL
        assert run.step() == {A: 1}
        assert run.step() is None  # one step only: it may have records again
        run.now = 2 * INTERVAL
        assert run.step() == {A: 1}

    def test_the_slowest_is_waited_for_again_when_it_has_records(self):
        source = Script([5_000, 6_000, 7_000], [0], bounded=False)
        run = Plans(vertex(0, source), limit=2)
        run.step()
        run.step()
        source.add(1, split=1)
        run.now = INTERVAL - 1
        assert run.step() == {B: 1}
        assert run.step() is None
        run.now += INTERVAL - 1  # the interval begins anew
        assert run.step() is None

    def test_who_will_be_declared_idle_is_waited_for_until_then(self):
        run = Plans(vertex(0, Script([5_000, 6_000], [0], bounded=False), idle_timeout=5 * INTERVAL), limit=2)
        run.step()
        assert run.step() is None
        run.now = 4 * INTERVAL
        assert run.step() is None
        run.now = 5 * INTERVAL + 1
        run.step()
        assert run.step() == {A: 1}

    def test_a_split_that_is_gone_from_its_source_holds_nobody_back_for_ever(self):
        source = Script([5_000, 6_000], [0, 1], bounded=False)
        run = Plans(vertex(0, source), limit=2)
        run.step()
        del source.splits[1]
        assert run.step() is None
        run.now = INTERVAL
        assert run.step() == {A: 1}

    def test_a_slowest_split_whose_watermark_stands_still_is_read_to_its_end(self):
        run = Plans(vertex(0, Script([5_000, 6_000], [0] * 10)), limit=2)
        assert run.run_to_end()[-1] == {A: 1}


class TestHowMuchIsRead:
    def test_the_first_ranges_are_small(self):
        many = list(range(100_000))
        run = Plans(vertex(0, Script(many, many)))
        assert run.step() == {A: MIN_BATCH_RECORDS, B: MIN_BATCH_RECORDS}
        assert run.step() == {A: MIN_BATCH_RECORDS // 2, B: MIN_BATCH_RECORDS // 2}

    def test_ranges_grow_to_what_the_drift_has_room_for(self):
        dense = [number // 20 for number in range(150_000)]
        run = Plans(vertex(0, Script(dense, dense), drift=200))
        for _ in range(20):
            read = run.step()
        assert 0.9 * 200 * 20 <= min(read.values()) <= max(read.values()) <= 1.1 * 200 * 20

    def test_who_is_alone_is_read_as_if_there_were_no_alignment(self):
        run = Plans(vertex(0, Script(list(range(400_000)))))
        for _ in range(10):
            read = run.step()
        assert read == {A: FIRST_BATCH_RECORDS}

    def test_no_range_is_more_than_twice_the_one_before(self):
        """However much room there seems to be: a later record may be far ahead."""
        run = Plans(vertex(0, Script(list(range(200_000)), [0] * 200_000), drift=10**9))
        sizes = [run.step()[A] for _ in range(8)]
        assert all(after <= max(MIN_BATCH_RECORDS, 2 * before) for before, after in pairwise(sizes))
        assert sizes[-1] > 10 * MIN_BATCH_RECORDS


class TestRestarts:
    def test_a_split_that_waited_waits_after_a_restart(self):
        run = Plans(vertex(0, Script([5_000, 6_000], [0, 1, 2, 3], bounded=False)), limit=2)
        run.step()
        run.step()
        run.restart()
        assert run.step() == {B: 1}

    def test_a_batch_that_is_run_again_reads_the_same_and_teaches_the_same(self):
        run = Plans(vertex(0, Script([5_000, 6_000], [0, 1, 2, 3], bounded=False)), limit=2)
        start = run.offset
        first = run.step()
        run.restart()
        assert run.run(start, run.offset) == first
        assert run.step() == {B: 1}

    def test_offsets_of_other_jobs_have_nothing_of_it(self):
        run = Plans(vertex(0, Script([0, 1], [0]), group=None))
        run.run_to_end()
        assert not run.offset.alignment
        assert not run.coordinator.header(run.offset).splits[0]["0"].paused
