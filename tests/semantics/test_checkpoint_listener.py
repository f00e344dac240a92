"""CheckpointListener: what is written at a checkpoint may leave when it is complete (rules CL01, CL02)."""

import pytest
from crashing import Crashing

from penstock.connectors import DiscardingSink
from penstock.datastream import CheckpointedFunction, MapFunction
from penstock.datastream.functions import CheckpointListener
from penstock.datastream.state import ListStateDescriptor

RECORDS = 60


class Outside:
    """What the world has seen, and what goes wrong on the way."""

    def __init__(self, *, lost=(), failing=()):
        self.written = {}  # (subtask, checkpoint) -> records
        self.notified = {}  # subtask -> checkpoint ids, in the order they came
        self.snapshots = set()
        self.lost, self.failing = set(lost), set(failing)


OUTSIDE = {}


class WriteWhenComplete(MapFunction, CheckpointedFunction, CheckpointListener):
    """Keeps records until the checkpoint that has them is complete, and writes them then."""

    def __init__(self, outside):
        self.outside = outside

    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("pending"))
        self.pending, self.current = dict(self.state.get()), []

    def map(self, value):
        outside = OUTSIDE[self.outside]
        if value in outside.failing:
            outside.failing.discard(value)
            raise RuntimeError("a failure")
        self.current.append(value)
        return value

    def snapshot_state(self, context):
        number = context.get_checkpoint_id()
        OUTSIDE[self.outside].snapshots.add((self.subtask, number))
        self.pending[number], self.current = self.current, []
        self.state.update(list(self.pending.items()))

    def notify_checkpoint_complete(self, checkpoint_id):
        outside = OUTSIDE[self.outside]
        if checkpoint_id in outside.lost:
            return
        outside.notified.setdefault(self.subtask, []).append(checkpoint_id)
        assert (self.subtask, checkpoint_id) in outside.snapshots
        for number in [number for number in self.pending if number <= checkpoint_id]:
            records = self.pending.pop(number)
            assert outside.written.setdefault((self.subtask, number), records) == records  # again, but the same


def run(tmp_path, name, *, cold=False, **what):
    outside = OUTSIDE[name] = Outside(**what)

    def build(env):
        numbers = env.from_sequence(1, RECORDS).set_parallelism(1).rebalance()
        numbers.map(WriteWhenComplete(name)).uid("writes").sink_to(DiscardingSink())

    crashes = Crashing(tmp_path, build, cold=cold).run()
    return outside, crashes


def check(outside):
    written = sorted(value for records in outside.written.values() for value in records)
    assert written == list(range(1, len(written) + 1))  # nothing is left out and nothing comes twice ...
    assert len(written) >= RECORDS - 4  # ... except for the last batch: its completion is not notified


@pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])
def test_what_was_written_at_a_checkpoint_leaves_when_it_is_complete(tmp_path, cold):
    outside, crashes = run(tmp_path, f"plain {cold}", cold=cold)
    assert crashes == 0
    check(outside)
    assert all(ids == sorted(set(ids)) for ids in outside.notified.values())


def test_a_lost_notification_is_covered_by_the_next(tmp_path):
    outside, _ = run(tmp_path, "lost", lost=[1, 2, 5, 9, 10])
    check(outside)
    assert not {1, 2, 5, 9, 10} & set(outside.notified[0])


def test_notifications_after_a_crash_are_of_checkpoints_that_are_complete(tmp_path):
    outside, crashes = run(tmp_path, "crashes", failing=[7, 8, 23, 41], lost=[3])
    assert crashes == 4
    check(outside)
