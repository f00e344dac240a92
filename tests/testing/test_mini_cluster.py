"""The mini cluster: whole jobs in this process, batch by batch."""

import pytest
from support import script

from penstock.common import JobStatus, WatermarkStrategy
from penstock.common.errors import JobCancelledError, UnsupportedFeatureError, UserFunctionError
from penstock.connectors.datagen import DataGeneratorSource
from penstock.connectors.sinks import DiscardingSink
from penstock.core.sink import Committer, HandOverWriter, Sink
from penstock.datastream import (
    KeyedProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    SourceFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import ValueStateDescriptor
from penstock.testing import ManualClock, MiniCluster


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield value, self.count.value()


class Batches(Sink):
    """Remembers how records were batched, in the test's own list."""

    def __init__(self, batches):
        self.batches = batches

    def create_writer(self, context):
        return HandOverWriter()

    def create_committer(self):
        batches = self.batches

        class Remember(Committer):
            def commit(self, committables, checkpoint_id):
                batches.append((checkpoint_id, committables))

        return Remember()


def environment(**options):
    return StreamExecutionEnvironment(executor=MiniCluster(**options)).set_parallelism(1)


def started(env, **options):
    return env._executor.start(list(env.sinks), env.job_settings("job"), **options)


def batches_of(max_records, *sizes):
    env, batches = environment(max_records=max_records), []
    streams = [env.from_collection([(source, n) for n in range(size)]) for source, size in enumerate(sizes)]
    streams[0].union(*streams[1:]).sink_to(Batches(batches))
    env.execute()
    return [records for _, records in batches]


def test_all_records_come_in_one_batch_unless_told_otherwise():
    assert [len(records) for records in batches_of(None, 10)] == [10]


def test_the_number_of_records_in_a_batch_is_for_each_source():
    assert [len(records) for records in batches_of(4, 10)] == [4, 4, 2]
    assert batches_of(1, 2, 3) == [[(0, 0), (1, 0)], [(0, 1), (1, 1)], [(1, 2)]]


def test_a_job_can_be_run_batch_by_batch_and_continued_from_bytes():
    env, batches = environment(max_records=1), []
    env.from_collection(list("aab")).key_by(lambda v: v).process(Count()).sink_to(Batches(batches))
    job = started(env)
    assert job.run_batch()
    snapshot = job.snapshot()
    assert isinstance(snapshot, bytes)
    job.run()
    assert job.finished
    assert not job.run_batch()
    again = started(env, snapshot=snapshot)
    again.run()
    assert batches == [(1, [("a", 1)]), (2, [("a", 2)]), (3, [("b", 1)]), (2, [("a", 2)]), (3, [("b", 1)])]


def test_the_result_has_the_metrics_and_the_status():
    env = environment()
    env.from_collection([1]).print()
    client = env.execute_async("named")
    assert client.get_job_execution_result().result().get_job_id() == client.get_job_id()
    assert client.get_job_status().result() is JobStatus.FINISHED
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.FINISHED  # too late
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.from_collection([1]).print()
    with pytest.raises(UnsupportedFeatureError, match="a batch job has no state to save"):
        env.execute_async().trigger_savepoint()


def test_a_failure_is_in_the_result():
    env = environment()
    env.from_collection([0]).map(lambda v: 1 / v).print()
    client = env.execute_async()
    with pytest.raises(UserFunctionError):
        client.get_job_execution_result().result()
    assert client.get_job_status().result() is JobStatus.FAILED


def test_a_job_without_end_runs_beside_the_program_until_it_is_cancelled():
    env = environment()
    source = DataGeneratorSource(lambda index: index)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    numbers.key_by(lambda n: n % 3).map(lambda n: n).sink_to(DiscardingSink())
    client = env.execute_async("endless")
    assert client.get_job_status().result() is JobStatus.RUNNING
    client.cancel().result()
    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobCancelledError, match="job 'endless' was cancelled"):
        client.get_job_execution_result().result()


def test_some_records_of_a_stream_without_end():
    source = DataGeneratorSource(lambda index: index)
    numbers = environment().from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    assert numbers.execute_and_collect(limit=3) == [0, 1, 2]


def test_progress_counts_records_and_batches():
    env = environment(max_records=2)
    env.from_collection(range(5)).rebalance().map(str).print()
    client = env.execute_async()
    client.get_job_execution_result().result()
    progress = client.progress
    assert progress.source_records == 5
    assert progress.checkpoint_id == 3
    assert [(vertex.records_in, vertex.records_out) for vertex in progress.vertices.values()] == [(5, 5), (5, 0)]


class Ticks(SourceFunction):
    def run(self, ctx):
        for number in range(3):
            ctx.collect(number)

    def cancel(self):
        pass


def test_a_job_with_a_source_function_runs_until_the_function_returns():
    env = environment()
    assert sorted(env.add_source(Ticks()).map(lambda n: n * 2).execute_and_collect()) == [0, 2, 4]


def test_the_manual_clock_moves_only_when_told():
    clock = ManualClock(5)
    clock.advance(10)
    assert clock() == 15


def test_an_unbounded_job_stops_when_there_is_nothing_to_do_and_ends_by_drain():
    env, batches = environment(clock=ManualClock()), []
    source = script(env, ["a"], bounded=False)
    source.sink_to(Batches(batches))
    job = started(env)
    job.run()
    assert not job.finished
    source._source.source.add("b")
    job.run()
    job.drain()
    assert job.finished
    assert [records for _, records in batches] == [["a"], ["b"]]
