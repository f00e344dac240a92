"""FileSink: what is visible when, names, rolling and compaction. Crashes are in test_file_sink_crashes.py."""

import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from crashing import TROUBLE, Crashing, troublesome
from tests.connectors.file_sinks import FLAT, LINES, hidden, numbers, row_sink, sequence_to, visible

from penstock.common import Types
from penstock.common.errors import InvalidProgramError, JobExecutionError, PenstockError
from penstock.connectors import file_system
from penstock.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
    StreamingFileSink,
)
from penstock.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from penstock.testing.mini_cluster import ManualClock

ROW = Types.ROW_NAMED(["n", "text"], [Types.LONG(), Types.STRING()])
HOUR = 1532278800000  # 2018-07-22 17:00 UTC


class Modulo(BucketAssigner):
    def get_bucket_id(self, element, context):
        assert context.current_processing_time > 0
        return f"by={element % 3}"


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


@pytest.mark.parametrize(("part_size", "lines"), [(5, [3, 3]), (6, [4, 2]), (7, [4, 2])])
def test_a_file_rolls_when_it_is_larger_than_the_part_size(tmp_path, part_size, lines):
    """Lines of two bytes: a file of exactly the part size takes one more."""
    out = tmp_path / "out"
    sink = row_sink(out, RollingPolicy.default_rolling_policy(part_size))
    Crashing(tmp_path, sequence_to(sink, 6, 1), max_records=1, parallelism=1).start().run()
    assert [len(content) for _, content in sorted(visible(out).items())] == lines


@pytest.mark.parametrize(("interval", "late"), [(None, 0), (2_000, 1_000), (5_000, 0), (7_000, 2_000)])
def test_a_file_is_completed_in_time_though_no_record_comes(tmp_path, interval, late):
    """When its time is over or, if there is a check interval, with the next check: at whole multiples of it."""
    out, clock = tmp_path / "out", ManualClock(HOUR - HOUR % 70_000)
    policy = RollingPolicy.default_rolling_policy(1 << 20, 60_000, 5_000)
    options = {} if interval is None else {"check_interval": interval}
    sink = row_sink(out, policy, **options)

    def build(env):
        from penstock.common import WatermarkStrategy
        from penstock.connectors import DataGeneratorSource

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


def test_two_sinks_and_two_jobs_can_share_a_directory(tmp_path):
    out = tmp_path / "out"

    def build(env):
        for _ in range(2):
            env.from_sequence(1, 10).sink_to(row_sink(out))

    for run in range(2):
        Crashing(tmp_path / str(run), build).run()
    assert numbers(out) == sorted(list(range(1, 11)) * 4)


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
        assert 1 < len(visible(out)) < job.offset.checkpoint_id
        assert most_hidden <= 3


class MeetsAnother(FileCompactor):
    """Compacts only while another one does."""

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
            assert lines.count("--") == job.offset.checkpoint_id - 1
        else:
            assert len(files) == job.offset.checkpoint_id


# -- bulk formats -----------------------------------------------------------------------------------------------------


def parquet_rows(directory):
    files = [path for path in directory.rglob("*.parquet") if not path.name.startswith(".")]
    return sorted((row["n"], row["text"]) for path in files for row in pq.read_table(path).to_pylist())


def bulk_build(sink):
    def build(env):
        rows = env.from_sequence(1, 40).rebalance().map(troublesome).map(lambda n: (n, f"row {n}"))
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
