"""Union list state after a failure: every subtask gets all elements, as it would from a savepoint."""

import pytest
from support import collected

from penstock.common import Types
from penstock.common.errors import CheckpointError
from penstock.connectors.sinks import CollectSink
from penstock.datastream import CheckpointedFunction, MapFunction, StreamExecutionEnvironment
from penstock.datastream.state import ListStateDescriptor
from penstock.runtime.exchange.frames import TaskReport
from penstock.runtime.task.union_states import UnionStates
from penstock.testing import MiniCluster


class Members(MapFunction, CheckpointedFunction):
    """Each subtask writes what it has seen; when it starts it sees what all have written."""

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_union_list_state(ListStateDescriptor("seen", Types.INT()))
        self.found = sorted(self.state.get()) if context.is_restored() else None
        self.mine = []

    def snapshot_state(self, context):
        self.state.update(self.mine)

    def map(self, value):
        self.mine.append(value)
        return self.found


def start(cluster, found, snapshot=None):
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(2)
    numbers = env.from_sequence(1, 12).partition_custom(lambda n, subtasks: n % subtasks, lambda n: n)
    numbers.map(Members()).uid("members").sink_to(found)
    return cluster.start(list(env.sinks), env.job_settings(None), snapshot=snapshot)


def test_every_subtask_gets_the_elements_of_all_after_a_failure():
    sink = CollectSink()

    cluster = MiniCluster(max_records=2)
    job = start(cluster, sink)
    job.run_batch()
    job.run_batch()
    assert collected(sink) == [None] * 4
    snapshot = job.snapshot()
    job = start(cluster, sink, snapshot)  # nothing but the snapshot is left of the job before
    job.run_batch()
    assert collected(sink) == [[1, 2, 7, 8]] * 2
    job.close()
    sink.release()


class Additions(MapFunction, CheckpointedFunction):
    """Adds to what it was given; a subtask that sees no record leaves it as it is."""

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_union_list_state(ListStateDescriptor("all", Types.INT()))
        self.found = sorted(self.state.get())

    def snapshot_state(self, context):
        """Everything was written before."""

    def map(self, value):
        self.state.add(value)
        return self.found


def test_what_a_savepoint_gave_to_a_subtask_that_left_it_as_it_is_survives_a_failure(tmp_path):
    sink = CollectSink()

    def start_additions(divisor, **origin):
        cluster = MiniCluster(max_records=1)
        env = StreamExecutionEnvironment(executor=cluster).set_parallelism(2)
        numbers = env.from_collection([0, 1, 2, 4, 6, 8]).uid("numbers")
        parted = numbers.partition_custom(lambda n, subtasks: n % divisor % subtasks, lambda n: n)
        parted.map(Additions()).uid("additions").sink_to(sink)
        return cluster.start(list(env.sinks), env.job_settings(None), **origin)

    job = start_additions(2)
    job.run_batch()
    job.run_batch()
    path = job.stop_with_savepoint(str(tmp_path))
    seen = collected(sink)
    assert seen == [[]] * len(seen)
    job = start_additions(1, savepoint=path)  # from here on subtask 0 has all records
    job.run_batch()
    assert collected(sink) == [[0, 1, 2]]
    job = start_additions(1, snapshot=job.snapshot())
    job.run_batch()
    job.close()
    # Both subtasks held 0, 1, 2; the first one has added 4.
    assert collected(sink) == [[0, 0, 1, 1, 2, 2, 4]]
    sink.release()


class Files(dict):
    """In memory."""

    def checkpoints(self):
        return list(self)

    def read(self, checkpoint_id):
        return self[checkpoint_id]

    def write(self, checkpoint_id, content):
        self[checkpoint_id] = content

    def remove(self, checkpoint_id):
        self.pop(checkpoint_id, None)


class Chained:
    operator_id = "op"


class Vertex:
    parallelism = 2
    operators = (Chained(),)


def report(subtask, elements):
    return TaskReport(0, subtask, "", 0, None, [], {}, unions={("op", "u"): elements})


def test_what_was_written_for_a_batch_that_was_never_committed_does_not_count():
    files = Files()
    states = UnionStates([Vertex()], files)
    assert states.begin(0).states == {}
    states.batch([report(0, [1]), report(1, [2])], 1)
    states.batch([report(0, [1, 3])], 2)
    again = UnionStates([Vertex()], files)
    assert again.begin(1).states == {"op": {"u": [1, 2]}}
    assert set(files) == {1}


def test_what_every_subtask_took_over_is_its_own_from_then_on():
    files = Files()
    states = UnionStates([Vertex()], files)
    states.batch([report(0, [1]), report(1, [2])], 1)
    assert states.begin(1).states == {"op": {"u": [1, 2]}}
    states.batch([report(0, [7])], 2)  # subtask 1 has left it as it is
    assert UnionStates([Vertex()], files).begin(2).states == {"op": {"u": [7, 1, 2]}}


def test_only_the_files_are_kept_that_may_be_needed():
    files = Files()
    states = UnionStates([Vertex()], files)
    for checkpoint_id in range(1, 20):
        states.batch([report(0, [checkpoint_id])], checkpoint_id)
        states.batch([], checkpoint_id)
    assert set(files) == {18, 19}


def test_a_damaged_file_is_an_error():
    files = Files()
    UnionStates([Vertex()], files).batch([report(0, [1])], 1)
    whole = files[1]
    for position in range(len(whole)):
        files[1] = whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :]
        with pytest.raises(CheckpointError, match="damaged"):
            UnionStates([Vertex()], files).begin(1)
        files[1] = whole[:position]
        with pytest.raises(CheckpointError, match="damaged"):
            UnionStates([Vertex()], files).begin(1)
