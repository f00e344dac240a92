"""FileSink: what is visible when, names, rolling, compaction, and exactly once whatever crashes when."""

import random
import threading
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from crashing import Crashing

from penstock.common import Types
from penstock.common.errors import InvalidProgramError, JobExecutionError, PenstockError
from penstock.common.serialization import Encoder
from penstock.datastream.connectors import file_system
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
    StreamingFileSink,
)
from penstock.datastream.connectors.file_system import sink_committer as committing
from penstock.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from penstock.testing.mini_cluster import ManualClock

LINES = Encoder.simple_string_encoder()
ROW = Types.ROW_NAMED(["n", "text"], [Types.LONG(), Types.STRING()])
FLAT = BucketAssigner.base_path_bucket_assigner()
HOUR = 1532278800000  # 2018-07-22 17:00 UTC


class Modulo(BucketAssigner):
    def get_bucket_id(self, element, context):
        assert context.current_processing_time > 0
        return f"by={element % 3}"


def visible(directory):
    """What a reader sees: the lines of files whose names do not begin with a dot."""
    files = sorted(path for path in directory.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(directory)): path.read_text().splitlines() for path in files}


def hidden(directory):
    return sorted(path.name for path in directory.rglob(".*") if path.is_file())


def numbers(directory):
    return sorted(int(line) for lines in visible(directory).values() for line in lines)


def row_sink(directory, policy=None, assigner=FLAT, **options):
    builder = FileSink.for_row_format(directory, LINES).with_bucket_assigner(assigner)
    if policy is not None:
        builder.with_rolling_policy(policy)
    if "check_interval" in options:
        builder.with_bucket_check_interval(options["check_interval"])
    if "strategy" in options:
        builder.enable_compact(options["strategy"], options["compactor"])
    return builder.build()


def sequence_to(sink, records=40, parallelism=None):
    def build(env):
        stream = env.from_sequence(1, records).rebalance().map(_troublesome)
        end = stream.sink_to(sink)
        if parallelism is not None:
            end.set_parallelism(parallelism)

    return build


TROUBLE = {}


@pytest.fixture(autouse=True)
def _clean():
    TROUBLE.clear()


def _troublesome(value):
    if TROUBLE.pop(value, False):
        raise RuntimeError(f"no {value} today")
    return value


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("assigner", [FLAT, Modulo()], ids=["flat", "buckets"])
def test_every_record_is_in_one_finished_file_at_the_end_and_nothing_else_is_left(tmp_path, cold, assigner):
    out = tmp_path / "out"
    Crashing(tmp_path, sequence_to(row_sink(out, assigner=assigner)), cold=cold).run()
    assert numbers(out) == list(range(1, 41))
    assert hidden(out) == []
    assert len(visible(out)) == (2 if assigner is FLAT else 6)  # one for each subtask and bucket


def test_a_file_is_in_progress_then_pending_then_finished(tmp_path):
    out, clock = tmp_path / "out", ManualClock(HOUR)
    policy = RollingPolicy.default_rolling_policy(1 << 20, 60_000, 60_000)
    job = Crashing(tmp_path, sequence_to(row_sink(out, policy), 100, 1), clock=clock, max_records=2).start()
    assert job.run_batch()
    (name,) = hidden(out)
    assert ".inprogress." in name
    assert visible(out) == {}
    clock.advance(60_000)
    assert job.run_batch()
    assert [len(lines) for lines in visible(out).values()] == [4]
    assert hidden(out) == []


def test_complete_files_are_pending_until_the_checkpoint_is_complete(tmp_path):
    out = tmp_path / "out"
    sink = row_sink(out, RollingPolicy.on_checkpoint_rolling_policy())
    job = Crashing(tmp_path, sequence_to(sink, 100, 1)).start()

    def no_commit(*_, **__):
        raise JobExecutionError("crash before the commit")

    job.committers.checkpoint_complete = no_commit
    with pytest.raises(JobExecutionError):
        job.run_batch()
    assert visible(out) == {}
    job2 = Crashing(tmp_path, sequence_to(sink, 100, 1)).start()
    job2.committers.commit = no_commit
    with pytest.raises(JobExecutionError):
        job2.run_batch()
    assert any(".pending." in name for name in hidden(out))


@pytest.mark.parametrize("kind", ["size", "age", "inactivity"])
def test_files_roll_by_size_age_and_inactivity(tmp_path, kind):
    out, clock = tmp_path / "out", ManualClock(HOUR)
    limits = {"size": (10, 10**9, 10**9), "age": (10**9, 1_000, 10**9), "inactivity": (10**9, 10**9, 1_000)}[kind]
    sink = row_sink(out, RollingPolicy.default_rolling_policy(*limits))
    job = Crashing(tmp_path, sequence_to(sink, 8, 1), clock=clock, max_records=2, parallelism=1).start()
    while not job.finished and job.run_batch():
        clock.advance(600)
    files = visible(out)
    assert sorted(int(line) for lines in files.values() for line in lines) == list(range(1, 9))
    if kind == "size":
        assert all(len("\n".join(lines)) + 1 <= 12 for lines in files.values())
        assert len(files) == 2
    else:
        assert len(files) == {"age": 2, "inactivity": 1}[kind]


@pytest.mark.parametrize(("interval", "late"), [(None, 0), (2_000, 1_000), (5_000, 0), (7_000, 2_000)])
def test_a_file_is_completed_in_time_though_no_record_comes(tmp_path, interval, late):
    """When its time is over or, if there is a check interval, with the next check: at whole multiples of it."""
    out, clock = tmp_path / "out", ManualClock(HOUR - HOUR % 70_000)
    policy = RollingPolicy.default_rolling_policy(1 << 20, 60_000, 5_000)
    options = {} if interval is None else {"check_interval": interval}
    sink = row_sink(out, policy, **options)

    def build(env):
        from penstock.common import WatermarkStrategy
        from penstock.datastream.connectors import DataGeneratorSource

        class Three(DataGeneratorSource):
            """Unbounded, but there are never more than three."""

            def create_enumerator(self, parallelism):
                enumerator = super().create_enumerator(parallelism)
                first = enumerator.discover_splits()[0]
                enumerator.latest_offset = lambda split, start, _: first.start + 3 if split is first else start
                return enumerator

        source = Three(lambda index: index)
        env.from_source(source, WatermarkStrategy.no_watermarks(), "three").rebalance().sink_to(sink).set_parallelism(1)

    job = Crashing(tmp_path, build, clock=clock).start()
    job.run()
    assert visible(out) == {}
    clock.advance(4_999)
    job.run()
    assert visible(out) == {}
    clock.advance(late)
    job.run()
    assert visible(out) == {}
    clock.advance(1)
    job.run()
    assert numbers(out) == [0, 1, 2]


def test_buckets_are_hours_of_processing_time_unless_told_otherwise(tmp_path):
    out = tmp_path / "out"
    default = FileSink.for_row_format(out, LINES).with_bucket_assigner(
        BucketAssigner.date_time_bucket_assigner(timezone_id="UTC")
    )
    Crashing(tmp_path, sequence_to(default.build()), clock=ManualClock(HOUR)).run()
    assert {name.split("/")[0] for name in visible(out)} == {"2018-07-22--17"}
    minutes = BucketAssigner.date_time_bucket_assigner("yyyy/MM/dd/HH'h'mm.ss.SSS", "Europe/Paris")
    assert minutes.bucket_of_batch(HOUR + 61_007) == "2018/07/22/19h01.01.007"
    assert FLAT.get_bucket_id(1, None) == ""


def test_names_have_prefix_sink_subtask_number_and_suffix(tmp_path):
    out = tmp_path / "out"
    config = OutputFileConfig.builder().with_part_prefix("rows").with_part_suffix(".txt").build()
    assert (config.get_part_prefix(), config.get_part_suffix()) == ("rows", ".txt")
    builder = FileSink.for_row_format(out, LINES).with_output_file_config(config).with_bucket_assigner(FLAT)
    builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    Crashing(tmp_path, sequence_to(builder.build(), 40)).run()
    parts = [name.removesuffix(".txt").split("-") for name in visible(out)]
    assert {part[0] for part in parts} == {"rows"}
    assert len({part[1] for part in parts}) == 1
    for subtask in ("0", "1"):
        counts = sorted(int(part[3]) for part in parts if part[2] == subtask)
        assert counts == list(range(len(counts)))  # they only go up, and a replay would take the same ones


class Watched(Crashing):
    """Looks at the directory after every batch, and after every batch that failed."""

    def __init__(self, tmp_path, out, build):
        super().__init__(tmp_path, build)
        self.out = out
        self.seen = [{}]
        self.discarded = set()

    def step(self, job):
        try:
            super().step(job)
        except PenstockError:
            self.discarded.update(name for name in hidden(self.out) if ".pending." in name)
            raise
        finally:
            self.seen.append(visible(self.out))


def test_numbers_of_files_only_go_up_and_a_discarded_file_is_never_seen_under_one(tmp_path):
    """Spec ch. 8, P06. A number whose file was discarded is taken again by the replay: no reader knows it yet."""
    out = tmp_path / "out"
    TROUBLE.update(dict.fromkeys((7, 8, 17, 18, 31, 32), True))
    small_files = RollingPolicy.default_rolling_policy(3, 10**9, 10**9)
    job = Watched(tmp_path, out, sequence_to(row_sink(out, small_files)))
    assert job.run() >= 3
    assert job.discarded  # complete files of a batch that failed
    last = {}
    for before, after in pairwise(job.seen):
        assert after.items() >= before.items()  # a file that was seen stays as it is
        for name in sorted(after.keys() - before.keys(), key=lambda name: int(name.rpartition("-")[2])):
            subtask, number = name.split("-")[2:]
            assert int(number) == last.get(subtask, -1) + 1
            last[subtask] = int(number)
    assert numbers(out) == list(range(1, 41))


def test_two_sinks_and_two_jobs_can_share_a_directory(tmp_path):
    out = tmp_path / "out"

    def build(env):
        for _ in range(2):
            env.from_sequence(1, 10).sink_to(row_sink(out))

    for run in range(2):
        Crashing(tmp_path / str(run), build).run()
    assert numbers(out) == sorted(list(range(1, 11)) * 4)


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("policy", ["rolling", "checkpoint", "small"])
def test_crashes_of_tasks_lose_nothing_double_nothing_and_leave_nothing(tmp_path, policy, cold):
    out = tmp_path / "out"
    policies = {
        "rolling": RollingPolicy.default_rolling_policy(),
        "checkpoint": RollingPolicy.on_checkpoint_rolling_policy(),
        "small": RollingPolicy.default_rolling_policy(7, 10**9, 10**9),
    }
    TROUBLE.update(dict.fromkeys((3, 17, 18, 40), True))
    crashes = Crashing(tmp_path, sequence_to(row_sink(out, policies[policy])), cold=cold).run()
    assert crashes >= 3
    assert numbers(out) == list(range(1, 41))
    assert hidden(out) == []


def test_a_file_in_progress_is_cut_back_to_what_the_checkpoint_has_of_it(tmp_path):
    out = tmp_path / "out"

    def build(env):
        stream = env.from_sequence(1, 12).set_parallelism(1)
        stream.sink_to(row_sink(out, RollingPolicy.default_rolling_policy())).set_parallelism(1)

    def lost(*_):
        raise JobExecutionError("lost before the checkpoint")

    crashing = Crashing(tmp_path, build, parallelism=1)
    job = crashing.start()
    assert job.run_batch()
    crashing.snapshot = job.snapshot()
    (before,) = hidden(out)
    job.committers.commit = lost
    with pytest.raises(JobExecutionError, match="lost"):
        job.run_batch()
    lines = (out / before).read_text().splitlines()
    assert lines == [str(number) for number in range(1, 9)]  # four of them belong to no checkpoint
    job = crashing.start()
    job.run()
    job.close()
    assert numbers(out) == list(range(1, 13))
    assert hidden(out) == []


@pytest.mark.parametrize("early", [False, True], ids=["log", "early"])
@pytest.mark.parametrize("compacted", [False, True], ids=["plain", "compacted"])
@pytest.mark.parametrize("seed", range(6))
def test_crashes_at_any_step_of_a_commit_are_made_up_for(tmp_path, monkeypatch, seed, compacted, early):
    out, chance = tmp_path / "out", random.Random(seed)
    options = {}
    if compacted:
        strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(3).build()
        options = {"strategy": strategy, "compactor": FileCompactor.concat_file_compactor()}
    policy = RollingPolicy.default_rolling_policy(chance.choice([1, 9, 30]), 10**9, 10**9)
    replace, unlink = Path.replace, Path.unlink

    def unreliable(call):
        def step(path, *args, **kwargs):
            if str(path).startswith(str(out)) and chance.random() < 0.15:
                if chance.random() < 0.5:
                    call(path, *args, **kwargs)
                raise OSError("pulled the plug")
            return call(path, *args, **kwargs)

        return step

    monkeypatch.setattr(Path, "replace", unreliable(replace))
    monkeypatch.setattr(Path, "unlink", unreliable(unlink))
    monkeypatch.setattr(committing.FileSinkCommitter, "after_checkpoint", not early)
    crashing = Crashing(tmp_path, sequence_to(row_sink(out, policy, **options)), max_records=3)
    crashes = 0
    for _ in range(200):
        try:
            crashes += crashing.run(attempts=1)
            break
        except AssertionError:
            crashes += 1
    # A crash in the very last clean-up may leave hidden files, never visible ones.
    monkeypatch.undo()
    finish(crashing)
    assert crashes >= 1 or seed in (0, 5)
    assert numbers(out) == list(range(1, 41))


def finish(crashing):
    """What a restart of a finished job does."""
    job = crashing.start()
    job.committers.checkpoint_complete(job.offset["n"], final=True)


def test_leftovers_of_an_attempt_before_the_first_checkpoint_are_removed(tmp_path):
    out = tmp_path / "out"
    TROUBLE[1] = True
    crashing = Crashing(tmp_path, sequence_to(row_sink(out), 40, 1), max_records=100)
    job = crashing.start()
    with pytest.raises(PenstockError):
        job.run_batch()
    crashing.run()
    assert hidden(out) == []
    assert numbers(out) == list(range(1, 41))


def test_a_file_of_the_checkpoint_that_somebody_removed_is_a_clear_error(tmp_path):
    out = tmp_path / "out"
    crashing = Crashing(tmp_path, sequence_to(row_sink(out), 40, 1))
    job = crashing.start()
    assert job.run_batch()
    crashing.snapshot = job.snapshot()
    for path in out.glob(".*"):
        path.unlink()
    with pytest.raises(PenstockError, match="part of the checkpoint but is gone"):
        crashing.start().run_batch()


def test_small_files_are_compacted_by_checkpoints_and_by_size(tmp_path):
    rolling = RollingPolicy.on_checkpoint_rolling_policy()
    for name, builder in {
        "checkpoints": FileCompactStrategy.builder().enable_compaction_on_checkpoint(2).set_num_compact_threads(3),
        "size": FileCompactStrategy.builder().set_size_threshold(30),
    }.items():
        out = tmp_path / name / "out"
        sink = row_sink(out, rolling, strategy=builder.build(), compactor=FileCompactor.concat_file_compactor())
        crashing = Crashing(tmp_path / name, sequence_to(sink, 40, 1))
        job = crashing.start()
        most_hidden = 0
        while not job.finished:
            assert job.run_batch()
            most_hidden = max(most_hidden, len(hidden(out)))
        assert numbers(out) == list(range(1, 41))
        assert all(path.startswith("compacted-part-") for path in visible(out))
        assert hidden(out) == []
        assert 1 < len(visible(out)) < job.offset["n"]
        assert most_hidden <= 3


class MeetsAnother(FileCompactor):
    """Compacts only while somebody else does."""

    def compact(self, inputs, output):
        BOTH.wait(60)
        FileCompactor.concat_file_compactor().compact(inputs, output)


class TwoBuckets(BucketAssigner):
    def get_bucket_id(self, element, context):
        return f"by={element % 2}"


BOTH = threading.Barrier(2)


def test_as_many_buckets_are_compacted_at_once_as_there_are_threads(tmp_path):
    out = tmp_path / "out"
    strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(100).set_num_compact_threads(2).build()
    rolling = RollingPolicy.on_checkpoint_rolling_policy()
    sink = row_sink(out, rolling, TwoBuckets(), strategy=strategy, compactor=MeetsAnother())
    Crashing(tmp_path, sequence_to(sink, 40, 1)).start().run()
    assert numbers(out) == list(range(1, 41))
    assert {Path(path).parent.name for path in visible(out)} == {"by=0", "by=1"}


def test_concatenated_files_can_have_a_delimiter_and_identical_ones_stay_apart(tmp_path):
    rolling = RollingPolicy.on_checkpoint_rolling_policy()
    strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(100).build()
    for name, compactor in {
        "concat": FileCompactor.concat_file_compactor(b"--\n"),
        "identical": FileCompactor.identical_file_compactor(),
    }.items():
        out = tmp_path / name / "out"
        sink = row_sink(out, rolling, strategy=strategy, compactor=compactor)
        job = Crashing(tmp_path / name, sequence_to(sink, 40, 1)).start()
        job.run()
        files = visible(out)
        if name == "concat":
            (lines,) = files.values()
            assert lines.count("--") == job.offset["n"] - 1
        else:
            assert len(files) == job.offset["n"]


# -- bulk formats -----------------------------------------------------------------------------------------------------


def parquet_rows(directory):
    files = [path for path in directory.rglob("*.parquet") if not path.name.startswith(".")]
    return sorted((row["n"], row["text"]) for path in files for row in pq.read_table(path).to_pylist())


def bulk_build(sink):
    def build(env):
        rows = env.from_sequence(1, 40).rebalance().map(_troublesome).map(lambda n: (n, f"row {n}"))
        rows.sink_to(sink)

    return build


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("cold", [False, True])
def test_bulk_formats_complete_a_file_with_every_checkpoint_and_survive_crashes(tmp_path, cold, compacted):
    out = tmp_path / "out"
    config = OutputFileConfig.builder().with_part_suffix(".parquet").build()
    writers = ParquetBulkWriters.for_row_type(ROW)
    builder = FileSink.for_bulk_format(out, writers).with_output_file_config(config).with_bucket_assigner(FLAT)
    if compacted:
        compactor = FileCompactor.record_wise_file_compactor(ParquetColumnarRowInputFormat(ROW), writers)
        builder.enable_compact(FileCompactStrategy.builder().enable_compaction_on_checkpoint(3).build(), compactor)
    TROUBLE.update(dict.fromkeys((5, 22), True))
    crashing = Crashing(tmp_path, bulk_build(builder.build()), cold=cold)
    assert crashing.run() >= 1
    assert parquet_rows(out) == [(n, f"row {n}") for n in range(1, 41)]
    assert hidden(out) == []


def test_a_row_that_does_not_fit_its_columns_is_named(tmp_path):
    sink = FileSink.for_bulk_format(tmp_path / "out", ParquetBulkWriters.for_row_type(ROW)).build()

    def build(env):
        env.from_collection([(1, "fine"), ("one", "no number")]).sink_to(sink)

    with pytest.raises(PenstockError, match="field 'n': expected"):
        Crashing(tmp_path, build, max_records=10).start().run()


# -- settings ---------------------------------------------------------------------------------------------------------


def test_bulk_formats_take_no_other_rolling_policy(tmp_path):
    builder = FileSink.for_bulk_format(tmp_path, ParquetBulkWriters.for_row_type(ROW))
    builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    with pytest.raises(InvalidProgramError, match="on_checkpoint_rolling_policy"):
        builder.with_rolling_policy(RollingPolicy.default_rolling_policy())


@pytest.mark.parametrize(
    "make",
    [
        lambda: FileSink.for_row_format("/tmp/x", "no encoder"),
        lambda: FileSink.for_bulk_format("/tmp/x", LINES),
        lambda: FileSink.for_row_format("s3://bucket/x", LINES),
        lambda: FileSink.for_row_format("/tmp/x", LINES).with_bucket_assigner("no assigner"),
        lambda: FileSink.for_row_format("/tmp/x", LINES).with_rolling_policy("no policy"),
        lambda: FileSink.for_row_format("/tmp/x", LINES).with_bucket_check_interval(0),
        lambda: RollingPolicy.default_rolling_policy(part_size=0),
        lambda: BucketAssigner.date_time_bucket_assigner("QQ"),
        lambda: BucketAssigner.date_time_bucket_assigner(timezone_id="Mars/Olympus"),
        lambda: OutputFileConfig.builder().with_part_prefix("a/b"),
        lambda: FileCompactStrategy.builder().build(),
        lambda: FileCompactStrategy.builder().set_size_threshold(0),
        lambda: FileCompactStrategy.builder().enable_compaction_on_checkpoint(0),
        lambda: FileCompactStrategy.builder().set_num_compact_threads(0),
    ],
)
def test_wrong_settings_are_refused(make):
    with pytest.raises(InvalidProgramError):
        make()


@pytest.mark.parametrize("bucket", ["/etc", "../up", 7])
def test_a_bucket_outside_the_directory_is_refused(tmp_path, bucket):
    class Bad(BucketAssigner):
        def get_bucket_id(self, element, context):
            return bucket

    with pytest.raises(PenstockError, match="below the sink's directory"):
        Crashing(tmp_path, sequence_to(row_sink(tmp_path / "out", assigner=Bad()))).start().run()


def test_the_older_sink_is_added_with_add_sink(tmp_path):
    out = tmp_path / "out"
    sink = StreamingFileSink.for_row_format(out, LINES).with_bucket_assigner(FLAT).build()
    Crashing(tmp_path, lambda env: env.from_sequence(1, 10).add_sink(sink)).run()
    assert numbers(out) == list(range(1, 11))
    assert set(file_system.__all__) <= set(dir(file_system))
    assert StreamFormat.text_line_format()
