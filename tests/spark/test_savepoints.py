"""Savepoints, restoring and rescaling on Spark: nothing lost, nothing twice, whatever happens in between."""

import threading

import pytest
from test_jobs import Count, Kept, all_counts, expected_counts

from penstock.common import Configuration, JobStatus, RestartStrategies, Row, Time
from penstock.common.errors import InvalidProgramError, JobCancelledError, JobExecutionError, SavepointError
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import (
    ExternalizedCheckpointRetention,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from penstock.datastream.queryable_state import QueryableStateClient
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.runtime.savepoint.manifest import verify
from penstock.state_processor import (
    KeyedStateBootstrapFunction,
    OperatorTransformation,
    SavepointReader,
    SavepointWriter,
)
from penstock.testing import MiniCluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

RECORDS, KEYS = 560, 7
COUNT = ValueStateDescriptor("count")


class Commits(dict):
    """What the sink has committed; a test can wait for it."""

    def __init__(self):
        super().__init__()
        self.changed = threading.Condition()

    def on_commit(self, checkpoint_id):
        with self.changed:
            self.changed.notify_all()

    def of(self, client):
        """The job of these commits: when it ends, waiting ends."""
        self.result = client.get_job_execution_result()
        self.result.add_done_callback(self.on_commit)
        return client

    def wait_for(self, number):
        with self.changed:
            self.changed.wait_for(lambda: len(self) >= number or self.result.done(), 200)
            if self.result.done():
                self.result.result()  # raises what went wrong
            assert len(self) >= number


def environment(spark, parallelism=2, **configuration):
    settings = {"penstock.batch.max-records": "40", **{k.replace("_", "."): v for k, v in configuration.items()}}
    return StreamExecutionEnvironment(Configuration.from_dict(settings), spark=spark).set_parallelism(parallelism)


def counting(env, commits, name="count", records=RECORDS):
    numbers = env.from_sequence(1, records).uid("numbers")
    counted = numbers.key_by(lambda n: n % KEYS).process(Count()).uid("count")
    counted.sink_to(Kept(commits, commits.on_commit)).uid("kept")
    return commits.of(env.execute_async(name))


def test_a_job_goes_on_from_a_savepoint_at_another_parallelism(spark, tmp_path):
    commits = Commits()
    queryable = {"queryable-state.enable": "true", "queryable-state.proxy.ports": "0"}
    client = counting(environment(spark, **queryable), commits)
    commits.wait_for(2)
    with QueryableStateClient("127.0.0.1", client.job.query_port) as queries:
        asked = queries.get_kv_state(client.get_job_id(), "count", 3, None, COUNT, uid="count")
        assert asked.result(100).value() >= 1
    running = client.trigger_savepoint(str(tmp_path)).result(200)
    with pytest.raises(SavepointError, match="no directory"):
        client.stop_with_savepoint(False)
    path = client.stop_with_savepoint(False, str(tmp_path)).result(200)
    assert client.get_job_status().result() is JobStatus.FINISHED
    before, taken = len(commits), verify(path)
    assert taken.checkpoint_id == before == max(commits)
    assert verify(running).checkpoint_id < taken.checkpoint_id
    with pytest.raises(SavepointError, match="has ended"):
        client.trigger_savepoint(str(tmp_path)).result(200)

    counts = {
        row.key: row.value for row in SavepointReader.read(path).keyed_state_frame(spark, "count", "count").collect()
    }
    assert counts == {key: max(n for k, n in all_counts(commits) if k == key) for key in range(KEYS)}

    client = counting(environment(spark, 3, **{"execution.savepoint.path": path}), commits)
    client.get_job_execution_result().result(200)
    assert min(number for number in commits if number > before) == before + 1  # ids go on
    assert all_counts(commits) == expected_counts(RECORDS, KEYS)


class Given(KeyedStateBootstrapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(COUNT)

    def process_element(self, value, ctx):
        self.count.update(value.given)


def test_a_job_starts_with_state_made_from_a_dataframe(spark, tmp_path):
    frame = spark.createDataFrame([(key, 100 * key) for key in range(KEYS)], "id bigint, given bigint").repartition(3)
    state = OperatorTransformation.bootstrap_with(frame).key_by(lambda row: row.id).transform(Given())
    path = SavepointWriter.new_savepoint().with_operator("count", state).write(str(tmp_path / "made"))
    frame = SavepointReader.read(path).verify().keyed_state_frame(spark, "count", "count")
    assert {row.key: row.value for row in frame.collect()} == {key: 100 * key for key in range(KEYS)}
    commits = Commits()
    client = counting(environment(spark, **{"execution.savepoint.path": path}), commits, records=2 * KEYS)
    client.get_job_execution_result().result(200)
    assert all_counts(commits) == sorted((key, 100 * key + n) for key in range(KEYS) for n in (1, 2))


class Remind(Given):
    def process_element(self, value, ctx):
        super().process_element(value, ctx)
        ctx.timer_service().register_event_time_timer(value.given)


def test_windows_and_timers_of_a_savepoint_are_read_as_dataframes(spark, tmp_path):
    rows = [Row(id=key, given=100 * key) for key in range(KEYS)]
    keyed = (
        OperatorTransformation.bootstrap_with(rows).assign_timestamps(lambda row: row.given).key_by(lambda row: row.id)
    )
    windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).reduce(lambda a, b: a)
    reminded = OperatorTransformation.bootstrap_with(rows).key_by(lambda row: row.id).transform(Remind())
    writer = SavepointWriter.new_savepoint().with_operator("windows", windows).with_operator("reminded", reminded)
    reader = SavepointReader.read(writer.write(str(tmp_path / "made")))
    frame = reader.window_state_frame(spark, "windows")
    assert sorted((row.key, row.window.start, row.window.end, row.value.given) for row in frame.collect()) == [
        (key, 100 * key, 100 * key + 100, 100 * key) for key in range(KEYS)
    ]
    timers = reader.timers_frame(spark, "reminded").collect()
    assert sorted(map(tuple, timers)) == [(key, "EVENT_TIME", 100 * key) for key in range(KEYS)]


class Rich(KeyedProcessFunction):
    """Lists and timers, so that more than numbers moves."""

    def open(self, runtime_context: RuntimeContext):
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen"))
        self.total = runtime_context.get_state(ValueStateDescriptor("total", default_value=0))

    def process_element(self, value, ctx):
        self.seen.add(value)
        self.total.update(self.total.value() + value)
        ctx.timer_service().register_event_time_timer(value + 50)

    def on_timer(self, timestamp, ctx):
        # Not what happens to be in state by now, which depends on how the stream is cut into batches.
        yield ctx.get_current_key(), timestamp, list(self.seen.get()).count(timestamp - 50), self.total.value() > 0


def rich(env, commits, records=RECORDS):
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda n, _: n)
    numbers = env.from_sequence(1, records).uid("numbers").assign_timestamps_and_watermarks(times)
    keyed = numbers.key_by(lambda n: n % KEYS)
    timers = keyed.process(Rich()).uid("rich")
    windows = (
        keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(100))).reduce(lambda a, b: a + b).uid("windows")
    )
    timers.map(str).union(windows.map(str)).sink_to(Kept(commits, commits.on_commit)).uid("kept")
    return commits.of(env.execute_async("rich"))


def test_rescaling_a_running_job_is_not_seen_in_its_results(spark, tmp_path):
    undisturbed, commits = Commits(), Commits()
    rich(StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(1), undisturbed)
    env = environment(spark)
    env.get_checkpoint_config().set_checkpoint_storage(tmp_path.as_uri())
    client = rich(env, commits)
    commits.wait_for(2)
    client.rescale(3).result(200)
    assert client.job.graph.channels == 3
    commits.wait_for(len(commits) + 2)
    client.rescale(1).result(200)
    commits.wait_for(len(commits) + 1)
    client.cancel().result(200)
    # A restarted program finds the job where it was, at its last parallelism.
    again = environment(spark)
    again.get_checkpoint_config().set_checkpoint_storage(tmp_path.as_uri())
    client = rich(again, commits)
    client.get_job_execution_result().result(200)
    assert client.job.graph.channels == 1
    assert len(all_counts(undisturbed)) > RECORDS
    assert all_counts(commits) == all_counts(undisturbed)
    # Nothing is left of where it came from: a pointer, and where it is.
    left = sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("."))
    assert left[:3] == ["lease", "penstock.json", "rescaled"]
    assert not list((tmp_path / "rescaled").iterdir())
    assert len(left) == 4


def test_a_job_may_be_rescaled_again_with_the_first_batch_after_a_rescaling(spark, tmp_path):
    """The savepoint of the second rescaling is not taken for what the first one has left behind."""
    commits = Commits()
    env = environment(spark)
    env.get_checkpoint_config().set_checkpoint_storage(tmp_path.as_uri())
    client = counting(env, commits)
    commits.wait_for(2)
    with pytest.raises(SavepointError, match=r"max parallelism 128 .* a parallelism of at most 128"):
        client.rescale(200)  # for which a new job would have 512 key groups
    for parallelism in (3, 1, 2):
        client.rescale(parallelism).result(200)
    client.get_job_execution_result().result(200)
    assert client.job.graph.channels == 2
    assert all_counts(commits) == expected_counts(RECORDS, KEYS)


@pytest.mark.parametrize("when", ["before the new master is made", "when it is made"])
def test_a_job_that_is_cancelled_while_it_is_rescaled_ends(when, spark, tmp_path):
    commits = Commits()
    env = environment(spark)
    env.get_checkpoint_config().set_checkpoint_storage(tmp_path.as_uri())
    client = counting(env, commits)
    commits.wait_for(2)
    job = client.job
    if when == "before the new master is made":
        checkpoints = job._master.checkpoints
        outcome = checkpoints.outcome
        checkpoints.outcome = lambda: client.cancel() and outcome()
    else:
        successor = job._successor
        job._successor = lambda *arguments: client.cancel() and successor(*arguments)
    rescaled = client.rescale(3)
    with pytest.raises(JobCancelledError):
        client.get_job_execution_result().result(200)
    with pytest.raises(JobExecutionError, match="cancelled"):
        rescaled.result(200)
    assert client.get_job_status().result() is JobStatus.CANCELED


class Another(KeyedStateBootstrapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_state(ValueStateDescriptor("another"))

    def process_element(self, value, ctx):
        self.state.update(value)


def test_a_savepoint_that_does_not_fit_ends_the_job_whatever_the_restart_strategy(spark, tmp_path):
    state = OperatorTransformation.bootstrap_with([1, 2]).key_by(lambda n: n).transform(Another())
    path = SavepointWriter.new_savepoint().with_operator("count", state).write(str(tmp_path / "made"))
    env = environment(spark, **{"execution.savepoint.path": path})
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1_000, 0))
    client = counting(env, Commits())
    with pytest.raises(SavepointError, match="the savepoint has state 'another' of operator 'KeyedProcess', which"):
        client.get_job_execution_result().result(200)
    assert client.job.progress.restarts <= 1  # it may have been a file that could not be read


def test_a_used_checkpoint_directory_is_not_overwritten_by_a_savepoint(spark, tmp_path):
    def env(**configuration):
        made = environment(spark, **configuration)
        made.get_checkpoint_config().set_checkpoint_storage((tmp_path / "checkpoint").as_uri())
        return made

    commits = Commits()
    first = env()
    retention = first.get_checkpoint_config().set_externalized_checkpoint_retention
    retention(ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION)
    client = counting(first, commits)
    commits.wait_for(1)
    client.stop_with_savepoint(False, str(tmp_path)).result(200)
    assert (tmp_path / "checkpoint").exists()  # stopped, not cancelled
    commits.clear()
    client = counting(env(), commits)
    commits.wait_for(1)
    path = client.cancel_with_savepoint(str(tmp_path)).result(200)
    assert client.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(InvalidProgramError, match="already belongs to a job"):
        counting(env(**{"execution.savepoint.path": path}), commits).get_job_execution_result().result(200)


def test_the_checkpoints_of_a_job_that_is_cancelled_are_removed_if_it_was_told_so(spark, tmp_path):
    retentions = [None, *ExternalizedCheckpointRetention]
    kept = {None, ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION}
    for retention in retentions:
        directory, commits = tmp_path / str(retention), Commits()
        env = environment(spark)
        env.get_checkpoint_config().set_checkpoint_storage(directory.as_uri())
        if retention is not None:
            env.get_checkpoint_config().set_externalized_checkpoint_retention(retention)
        client = counting(env, commits, records=100_000)
        commits.wait_for(1)
        client.cancel().result(200)
        assert client.get_job_status().result() is JobStatus.CANCELED
        assert directory.exists() == (retention in kept), retention
