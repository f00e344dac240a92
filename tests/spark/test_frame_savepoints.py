"""Savepoints of jobs that read Spark's DataFrames: positions of Spark's own sources are part of them."""

import json
import os
import signal

import pytest
from pyspark.sql.functions import expr
from test_jobs import Count, Kept, all_counts
from test_savepoints import KEYS, Commits

from penstock.common import Configuration
from penstock.common.errors import PenstockError, SavepointError, UnsupportedFeatureError
from penstock.common.restart_strategy import RestartStrategies
from penstock.datastream import CheckpointedFunction, MapFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.state import ListStateDescriptor
from penstock.runtime.savepoint.manifest import verify
from penstock.spark.checkpoint_metadata import CheckpointDirectory
from penstock.spark.frame_positions import FramePositions, stateful_part
from penstock.state_processor import SavepointReader

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
SEQUENCE = 200
DEADLY = 5_006


def add_files(directory, numbers):
    directory.mkdir(exist_ok=True)
    for number in numbers:
        hidden = directory / f".{number}"
        hidden.write_text(json.dumps({"n": number}))
        hidden.rename(directory / f"{number:04d}.json")


class Number(MapFunction):
    """The number in a row; at a certain one its process is killed, if there is a file that says so."""

    def __init__(self, deaths, deadly):
        self.deaths, self.deadly = deaths, deadly

    def map(self, row):
        if row.n == self.deadly and self.deaths.exists():
            self.deaths.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return row.n


class Shared(MapFunction, CheckpointedFunction):
    """Remembers every record in union list state: each subtask gets all elements at the start and keeps its own."""

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_union_list_state(ListStateDescriptor("shared"))
        self.mine = list(self.state.get())

    def open(self, runtime_context: RuntimeContext):
        subtask, subtasks = (
            runtime_context.get_index_of_this_subtask(),
            runtime_context.get_number_of_parallel_subtasks(),
        )
        self.mine = [pair for pair in self.mine if sum(pair) % subtasks == subtask]

    def snapshot_state(self, context):
        self.state.update(self.mine)

    def map(self, value):
        self.mine.append(value)
        return value


def counting(
    spark, commits, directory, parallelism=2, savepoint=None, *, streaming=True, extra=None, checkpoint=None, restarts=0
):
    """Counts by key what is in the files, one a batch, in a batch DataFrame, and in a source of the job's own."""
    settings = {"penstock.batch.max-records": "20"}
    if savepoint is not None:
        settings["execution.savepoint.path"] = savepoint
    env = StreamExecutionEnvironment(Configuration.from_dict(settings), spark=spark).set_parallelism(parallelism)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(restarts, 20))
    if checkpoint is not None:
        env.get_checkpoint_config().set_checkpoint_storage(checkpoint.as_uri())
    reader = spark.readStream if streaming else spark.read
    files = reader.schema("n long").option("maxFilesPerTrigger", 1).json(str(directory))
    streams = [
        env.from_dataframe(files if extra is None else files.union(extra)).uid("files"),
        env.from_dataframe(spark.range(1_000, 1_010).withColumnRenamed("id", "n")).uid("batch"),
    ]
    numbers = env.from_sequence(1, SEQUENCE).uid("numbers").map(lambda n: n)
    both = streams[0].map(Number(directory.parent / "deadly", DEADLY)).union(streams[1].map(lambda row: row.n), numbers)
    counted = both.key_by(lambda n: n % KEYS).process(Count()).uid("count").map(Shared()).uid("shared")
    counted.sink_to(Kept(commits, commits.on_commit)).uid("kept")
    return commits.of(env.execute_async("frames"))


def expected(files):
    seen = {}
    counts = []
    for number in [*files, *range(1_000, 1_010), *range(1, SEQUENCE + 1)]:
        key = number % KEYS
        seen[key] = seen.get(key, 0) + 1
        counts.append((key, seen[key]))
    return sorted(counts)


def wait_for_records(commits, number):
    with commits.changed:
        commits.changed.wait_for(lambda: len(all_counts(commits)) >= number or commits.result.done(), 200)
    if commits.result.done():
        commits.result.result()


def shared_in(savepoint):
    return sorted(SavepointReader.read(savepoint).verify().read_union_state("shared", "shared"))


def test_a_running_job_is_saved_and_restored_at_the_same_parallelism_though_a_worker_is_killed(spark, tmp_path):
    commits, data = Commits(), tmp_path / "data"
    add_files(data, range(5_000, 5_006))
    client = counting(spark, commits, data)
    wait_for_records(commits, 12)  # the batch DataFrame, and some of the files
    path = client.trigger_savepoint(str(tmp_path / "savepoints")).result(200)
    before = verify(path).checkpoint_id
    everything = expected(range(5_000, 5_006))
    wait_for_records(commits, len(everything))  # the savepoint does not change what the job does
    client.cancel().result(200)
    assert all_counts(commits) == everything
    for later in [number for number in commits if number > before]:  # of a job that never was
        del commits[later]
    assert shared_in(path) == all_counts(commits)

    add_files(data, [DEADLY])
    (tmp_path / "deadly").touch()
    everything = expected(range(5_000, DEADLY + 1))
    client = counting(spark, commits, data, savepoint=path, restarts=10)
    wait_for_records(commits, len(everything))
    assert client.progress.restarts == 1
    path = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(200)
    assert all_counts(commits) == everything
    assert shared_in(path) == everything


def test_a_job_continues_in_its_dataframes_at_another_parallelism(spark, tmp_path):
    commits, data = Commits(), tmp_path / "data"
    add_files(data, range(5_000, 5_006))
    client = counting(spark, commits, data)
    wait_for_records(commits, 12)
    path = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(200)
    taken = verify(path)
    assert taken.checkpoint_id == max(commits)
    position = taken.sources[next(key for key, source in taken.sources.items() if source["uid"] == "files")]["spark"]
    assert [json.loads(offset) for offset in position["offsets"]] == [{"logOffset": len(position["logs"]) - 1}]

    add_files(data, range(5_006, 5_009))
    everything = expected(range(5_000, 5_009))
    client = counting(spark, commits, data, parallelism=3, savepoint=path, checkpoint=tmp_path / "checkpoint")
    wait_for_records(commits, len(everything))
    client.rescale(1).result(200)  # a savepoint, too, which goes when the job has committed a batch
    add_files(data, [5_009])
    everything = expected(range(5_000, 5_010))
    wait_for_records(commits, len(everything))
    assert not list((tmp_path / "checkpoint" / "rescaled").iterdir())
    last = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(200)
    assert all_counts(commits) == everything
    assert shared_in(last) == everything

    with pytest.raises(SavepointError, match=r"source .*uid 'files'.* was a streaming DataFrame .* and is a batch"):
        counting(spark, Commits(), data, savepoint=path, streaming=False).get_job_execution_result().result(200)
    more = spark.readStream.schema("n long").json(str(data))
    with pytest.raises(SavepointError, match=r"uid 'files'.* read from 1 of Spark's sources .* now from 2"):
        counting(spark, Commits(), data, savepoint=path, extra=more).get_job_execution_result().result(200)


def test_a_crash_while_positions_are_restored_loses_nothing(spark, tmp_path, monkeypatch):
    commits, data = Commits(), tmp_path / "data"
    add_files(data, range(5_000, 5_004))
    client = counting(spark, commits, data)
    wait_for_records(commits, 12)
    path = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(200)
    moments = [(FramePositions, "place"), (CheckpointDirectory, "frames_placed")]  # before and after it is done

    def crashing(*_):
        raise PenstockError("a crash")

    for owner, method in moments:
        with monkeypatch.context() as patched:
            patched.setattr(owner, method, crashing)
            client = counting(spark, commits, data, savepoint=path, checkpoint=tmp_path / "checkpoint")
            with pytest.raises(PenstockError, match="a crash"):
                client.get_job_execution_result().result(200)
    add_files(data, [5_004])
    everything = expected(range(5_000, 5_005))
    client = counting(spark, commits, data, savepoint=path, checkpoint=tmp_path / "checkpoint")
    wait_for_records(commits, len(everything))
    client.cancel().result(200)
    assert all_counts(commits) == everything


def test_a_dataframe_with_state_inside_of_spark_is_refused(spark, tmp_path):
    data = tmp_path / "data"
    add_files(data, [1])
    frame = spark.readStream.schema("n long").json(str(data))
    assert stateful_part(frame.filter("n > 0").union(frame)) is None
    assert stateful_part(frame.join(spark.range(3), frame.n == 1)) is None  # one side is at rest
    assert stateful_part(frame.groupBy("n").count()) == "Aggregate"
    assert stateful_part(frame.join(frame.withColumnRenamed("n", "m"), expr("n = m"))) == "Join"
    env = StreamExecutionEnvironment(spark=spark).set_parallelism(1)
    commits = Commits()
    rows = env.from_dataframe(frame.dropDuplicates(["n"]), source_name="distinct").map(lambda row: row.n)
    rows.key_by(lambda n: n).process(Count()).sink_to(Kept(commits, commits.on_commit))
    client = commits.of(env.execute_async("stateful"))
    wait_for_records(commits, 1)
    with pytest.raises(UnsupportedFeatureError, match=r"source '.*distinct' keeps state inside of Spark .Deduplicate"):
        client.trigger_savepoint(str(tmp_path / "savepoints"))
    client.cancel().result(200)
