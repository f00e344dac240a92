"""The order in which files are read: a task reads one file to its end before it takes the next, the oldest first."""

import os

import pytest
from support import collected

from penstock.common import Configuration, Time, WatermarkStrategy
from penstock.connectors.file_system import FileSource, StreamFormat
from penstock.connectors.sinks import CollectSink
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.testing import MiniCluster

ONE_TASK = pytest.mark.variants(executors=["warm", "one", "cold"], parallelism=[1], modes=["STREAMING"])
DAY = 1_000
LINES = 40
PADDING = "." * 60
STAMPED = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda line: int(line.split()[1]))


def write_days(directory, days, lines=LINES):
    """A file for each day, with as many lines as there are moments; names and times of modification disagree."""
    for day in range(days):
        path = directory / f"{days - day:03}"
        path.write_text("".join(f"{day} {day * DAY + DAY * n // lines} {PADDING}\n" for n in range(lines)))
        os.utime(path, (day, day))
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(directory)).build()


def day_of(line):
    return int(line.split()[0])


@ONE_TASK
@pytest.mark.on_spark((1, "STREAMING"), (1, "BATCH"))
def test_one_task_reads_files_in_the_order_of_their_modification(env_factory, tmp_path):
    env = env_factory(Configuration().set_integer("penstock.batch.max-records", 50))
    files = env.from_source(write_days(tmp_path, 4), WatermarkStrategy.no_watermarks(), "files")
    found = [day_of(line) for line in files.map(lambda line: line).execute_and_collect()]
    assert found == [day for day in range(4) for _ in range(LINES)]


class SmallBatches:
    """A job over files whose batches have about ten lines."""

    def __init__(self, source, build, parallelism=1, **start):
        self.env = StreamExecutionEnvironment(executor=MiniCluster(max_records=10)).set_parallelism(parallelism)
        self.sink = CollectSink()
        build(self.env.from_source(source, STAMPED, "files").uid("files")).sink_to(self.sink)
        self.job = self.env._executor.start(list(self.env.sinks), self.env.job_settings(None), **start)

    def steps(self):
        """What comes out of each batch."""
        while self.job.run_batch():
            yield collected(self.sink)

    def open_splits(self):
        (splits,) = self.job.offset.splits.values()
        return [split_id for split_id, at in splits.items() if not at.state.is_finished]


def daily_counts(stream):
    windows = stream.map(lambda line: (day_of(line), 1)).key_by(lambda pair: 0)
    return windows.window(TumblingEventTimeWindows.of(Time.milliseconds(DAY))).reduce(lambda a, b: (a[0], a[1] + b[1]))


def test_a_day_is_complete_before_the_next_but_one_is_read(tmp_path):
    """State has the days that are read, and not all those that follow."""
    job = SmallBatches(write_days(tmp_path, 12), daily_counts)
    found = []
    for results in job.steps():
        found += results
        under_way = [int(split.split("/")[-1].split("@")[0]) for split in job.open_splits()]
        assert len(under_way) <= 1
        if under_way:
            today = 12 - under_way[0]
            assert len(found) >= today - 1
    assert found == [(day, LINES) for day in range(12)]


@pytest.mark.parametrize("parallelism", [2, 3])
def test_several_tasks_have_one_file_each_under_way(tmp_path, parallelism):
    job = SmallBatches(write_days(tmp_path, 12), daily_counts, parallelism)
    found = []
    for results in job.steps():
        found += results
        assert len(job.open_splits()) <= parallelism
    assert sorted(found) == [(day, LINES) for day in range(12)]
    assert found == sorted(found)


def test_a_restored_job_goes_on_with_the_file_it_was_in(tmp_path):
    source = write_days(tmp_path, 4)
    first = SmallBatches(source, lambda lines: lines.map(day_of))
    steps = first.steps()
    found = [day for _ in range(5) for day in next(steps)]
    savepoint = first.job.stop_with_savepoint(str(tmp_path / ".savepoints"))
    found += collected(first.sink)
    second = SmallBatches(source, lambda lines: lines.map(day_of), savepoint=savepoint)
    assert found + [day for step in second.steps() for day in step] == [day for day in range(4) for _ in range(LINES)]


def test_small_files_share_a_batch(tmp_path):
    """A batch ends when it is large enough, not when a file ends."""
    source = write_days(tmp_path, 16, lines=2)
    job = SmallBatches(source, lambda lines: lines.map(day_of))
    steps = list(job.steps())
    assert [day for step in steps for day in step] == [day for day in range(16) for _ in range(2)]
    assert len(steps) <= 5


def test_between_two_files_the_source_holds_back_event_time(tmp_path):
    """Another source that is ahead must not make the next file late."""
    source = write_days(tmp_path, 3)

    def with_another(files):
        numbers = files.get_execution_environment().from_collection([(f"9 {9 * DAY}", 9 * DAY)])
        return daily_counts(files.union(numbers.map(lambda pair: pair[0]).assign_timestamps_and_watermarks(STAMPED)))

    job = SmallBatches(source, with_another)
    assert [result for step in job.steps() for result in step] == [*((day, LINES) for day in range(3)), (9, 1)]
