"""RateLimitedSource: how far batches of any source go, by the job's clock."""

import gzip
import inspect

import pyarrow as pa
import pytest
from crashing import TROUBLE, Crashing, troublesome
from pyarrow import orc, parquet

from penstock.common import Types, WatermarkStrategy
from penstock.common.errors import InvalidProgramError
from penstock.connectors import (
    CollectSink,
    DataGeneratorSource,
    NumberSequenceSource,
    RateLimitedSource,
    RateLimiterStrategy,
)
from penstock.connectors.file_system import FileSource, StreamFormat
from penstock.connectors.hybrid_source import HybridSource
from penstock.connectors.rate_limit import RateLimitedEnumerator
from penstock.connectors.source_function import SourceFunctionSource
from penstock.core.source import Boundedness, Source, SourceSplit, SplitEnumerator
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import SourceFunction
from penstock.formats.orc import OrcColumnarRowInputFormat
from penstock.formats.parquet import ParquetColumnarRowInputFormat
from penstock.testing import ManualClock, MiniCluster

PER_SECOND, PER_CHECKPOINT = RateLimiterStrategy.per_second, RateLimiterStrategy.per_checkpoint


class Run:
    """A job that reads a source and nothing else; the clock stands still until it is told to go on."""

    def __init__(self, source, parallelism=1, max_records=None):
        self.clock = ManualClock(1_000)
        self._sink = CollectSink()
        self._cluster = MiniCluster(clock=self.clock, max_records=max_records)
        env = StreamExecutionEnvironment(executor=self._cluster).set_parallelism(parallelism)
        env.from_source(source, WatermarkStrategy.no_watermarks(), "limited").sink_to(self._sink)
        self._plan = list(env.sinks), env.job_settings(None)
        self.job = self._cluster.start(*self._plan)

    def restart(self):
        self.job.close()
        self.job = self._cluster.start(*self._plan, snapshot=self.job.snapshot())

    def after(self, milliseconds=0):
        """What is read then, in as many batches as there are."""
        self.clock.advance(milliseconds)
        self.job.run()
        found = []
        while not self._sink.records.empty():
            found += self._sink.records.get_nowait()
        return sorted(found)


def endless(strategy):
    return RateLimitedSource(DataGeneratorSource(lambda index: index), strategy)


def test_no_more_is_read_than_is_due():
    run = Run(endless(PER_SECOND(10)))
    assert run.after() == []
    assert run.after(100) == [0]
    assert run.after(99) == []
    assert run.after(1) == [1]
    assert run.after(1_000) == list(range(2, 12))
    assert run.after() == []


def test_less_than_a_record_a_second():
    run = Run(endless(PER_SECOND(0.5)))
    run.after()
    assert [run.after(500) for _ in range(9)] == [[], [], [], [0], [], [], [], [1], []]


def test_nothing_is_planned_while_nothing_is_due():
    run = Run(endless(PER_SECOND(10)))
    run.after(100)
    batch = run.job.offset.checkpoint_id
    assert not any(run.job.run_batch() for _ in range(5))
    run.clock.advance(99)
    assert not run.job.run_batch()
    assert run.job.offset.checkpoint_id == batch


def test_time_before_the_first_batch_has_run_counts_for_nothing():
    run = Run(endless(PER_SECOND(10)))
    run.clock.advance(60_000)
    assert run.job.run_batch()
    run.clock.advance(5_000)  # it starts workers
    assert run.after() == []
    assert run.after(100) == [0]


def test_the_time_of_a_long_batch_is_made_up_for_and_that_without_records_only_for_a_second():
    run = Run(endless(PER_SECOND(10)))
    run.after()
    assert len(run.after(60_000)) == 600
    source = Fed("a")
    run = Run(RateLimitedSource(source, PER_SECOND(10)))
    run.after()
    for _ in range(60):
        assert run.after(1_000) == []
    source.ends["a"] = 1_000
    assert len(run.after(100)) <= 20 + 1


def test_a_clock_that_is_set_back_neither_stops_the_source_nor_gives_it_anything():
    run = Run(endless(PER_SECOND(10)))
    run.after()
    assert run.after(1_000) == list(range(10))
    run.clock.now -= 3_600_000
    assert run.after() == []
    assert run.after(1_000) == list(range(10, 20))


def test_records_per_checkpoint():
    run = Run(RateLimitedSource(NumberSequenceSource(1, 100), PER_CHECKPOINT(7)), parallelism=2)
    while not run.job.finished:
        run.job.run_batch()
        assert len(taken(run)) <= 7
    run = Run(DataGeneratorSource(str, 100, PER_CHECKPOINT(7)))
    run.job.run_batch()
    assert len(taken(run)) == 7


def taken(run):
    return [] if run._sink.records.empty() else run._sink.records.get_nowait()


def test_without_a_limit_it_is_the_source_as_it_is():
    assert Run(RateLimitedSource(NumberSequenceSource(1, 100), RateLimiterStrategy.no_op())).after() == list(
        range(1, 101)
    )


class Fed(DataGeneratorSource):
    """Splits with as many records as a test says, numbered from 0; a record is the name of its split."""

    def __init__(self, *names):
        super().__init__(str)
        self.ends = dict.fromkeys(names, 0)

    def __reduce__(self):
        return Fed, ()  # what the tasks need of it

    def create_enumerator(self, parallelism):
        return FedEnumerator(self.ends)

    def create_reader(self):
        return FedReader()

    def initial_offset(self, split):
        return 0


class FedEnumerator(SplitEnumerator):
    def __init__(self, ends):
        self.ends = ends

    def discover_splits(self):
        return [SourceSplit(name) for name in self.ends]

    def latest_offset(self, split, start_offset, max_records):
        return min(self.ends[split.split_id], start_offset + max_records)

    def is_finished(self, split, offset):
        return False


class FedReader:
    def open(self, runtime_context):
        return

    def read(self, split, start_offset, end_offset):
        yield [split.split_id] * (end_offset - start_offset), None

    def close(self):
        return


@pytest.mark.parametrize("rate", [1, 2, 10, 1_000])
def test_splits_that_are_busy_share_the_rate_evenly(rate):
    source = Fed("a", "b", "c", "empty")
    source.ends.update(a=10**6, b=10**6, c=10**6)
    run = Run(RateLimitedSource(source, PER_SECOND(rate)))
    run.after()
    found = [name for _ in range(30) for name in run.after(1_000)]
    assert 30 * rate - 1 <= len(found) <= 30 * rate  # the last one may be kept for the split that is empty
    counts = [found.count(name) for name in "abc"]
    assert max(counts) - min(counts) <= 2


def test_one_busy_split_of_many_has_the_whole_rate():
    source = Fed(*"abcdefgh")
    source.ends.update(e=10**6)
    run = Run(RateLimitedSource(source, PER_SECOND(100)))
    for _ in range(5):
        run.after(100)
    assert sum(len(run.after(100)) for _ in range(20)) == 200


def test_a_split_that_wakes_up_among_busy_ones_is_read():
    source = Fed("busy", "quiet")
    source.ends.update(busy=10**6)
    run = Run(RateLimitedSource(source, PER_SECOND(1)))
    for _ in range(5):
        run.after(1_000)
    source.ends.update(quiet=1)
    assert "quiet" in run.after(1_000) + run.after(1_000) + run.after(1_000)


def test_the_positions_are_those_of_the_source_so_a_job_goes_on_with_another_limit():
    run = Run(endless(PER_SECOND(10)))
    run.after()
    assert run.after(1_000) == list(range(10))
    run.restart()
    assert run.after(1_000) == []  # the time it was down counts for nothing
    run.after()
    assert run.after(1_000) == list(range(10, 20))
    (positions,) = run.job.offset.splits.values()
    assert [at.offset for at in positions.values()] == [20]


def test_lines_of_a_file_are_read_about_as_fast(tmp_path):
    (tmp_path / "lines").write_text("".join(f"{n:063}\n" for n in range(1_000)), encoding="utf-8")
    files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path / "lines")).build()
    run = Run(RateLimitedSource(files, PER_SECOND(100)))
    run.after()
    counts = [len(run.after(100)) for _ in range(100)]
    assert sum(counts) == 1_000
    assert max(counts) <= 11


def test_what_cannot_be_cut_makes_the_next_one_wait(tmp_path):
    for name in "abc":
        with gzip.open(tmp_path / f"{name}.gz", "wb", compresslevel=0) as file:
            file.write(b"".join(b"%063d\n" % n for n in range(200)))
    files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path)).build()
    run = Run(RateLimitedSource(files, PER_SECOND(100)))
    run.after()
    counts = [len(run.after(100)) for _ in range(60)]
    assert sum(counts) == 600
    first, second, third = (tick for tick, count in enumerate(counts) if count)
    assert min(second - first, third - second) >= 19


@pytest.mark.parametrize("kind", ["orc", "parquet"])
def test_formats_that_know_their_rows_count_them(tmp_path, kind):
    table, path = pa.table({"n": list(range(1_000))}), str(tmp_path / "numbers")
    {"orc": orc.write_table, "parquet": parquet.write_table}[kind](table, path)
    columnar = {"orc": OrcColumnarRowInputFormat, "parquet": ParquetColumnarRowInputFormat}[kind]()
    assert columnar.record_count(path, 0, columnar.length(path)) == 1_000


class Counting(SourceFunction):
    def run(self, ctx):
        for number in range(50):
            ctx.collect(number)

    def cancel(self):
        return


def test_what_a_source_receives_waits_until_it_is_due():
    run = Run(RateLimitedSource(SourceFunctionSource(Counting(), "numbers"), PER_SECOND(10)))
    run.after()
    found, due = [], 0
    while not run.job.finished:
        due += 1
        found += run.after(100)
        assert len(found) <= due
    run.job.close()
    assert found == list(range(50))


def test_a_limit_within_a_hybrid_source_follows_the_clock_of_the_job():
    history = NumberSequenceSource(0, 4)
    live = RateLimitedSource(NumberSequenceSource(5, 100), PER_SECOND(10))
    run = Run(HybridSource.builder(history).add_source(live).build())
    assert run.after() == [0, 1, 2, 3, 4]
    assert run.after(500) == [5, 6, 7, 8, 9]


def test_a_crash_neither_loses_nor_doubles_a_record(tmp_path):
    def build(env):
        slow = RateLimitedSource(NumberSequenceSource(1, 30), PER_SECOND(10_000))
        stream = env.from_source(slow, WatermarkStrategy.no_watermarks(), "slow").map(troublesome)
        stream.sink_to(sink)

    sink = CollectSink()
    TROUBLE.update(dict.fromkeys((7, 22), True))
    assert Crashing(tmp_path, build, max_records=3, receiving=True).run() >= 2
    found = []
    while not sink.records.empty():
        found += sink.records.get_nowait()
    assert sorted(found) == list(range(1, 31))


@pytest.mark.parametrize(
    ("contract", "wrapper"), [(SplitEnumerator, RateLimitedEnumerator), (Source, RateLimitedSource)]
)
def test_every_question_of_the_contract_is_passed_on(contract, wrapper):
    derived = {"get_java_function", "is_bounded", "makes_watermarks", "spreads"}
    asked = {name for name, _ in inspect.getmembers(contract) if not name.startswith("_")} - derived
    assert asked - vars(wrapper).keys() == set()


def test_what_the_source_says_about_itself_is_said_of_the_limited_one():
    source = DataGeneratorSource(str, type_info=Types.STRING())
    source.makes_watermarks = source.spreads = True
    source.watermark_strategy = WatermarkStrategy.for_monotonous_timestamps()
    limited = RateLimitedSource(source, 5)
    assert limited.watermark_strategy is source.watermark_strategy
    assert limited.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    assert (limited.may_end, limited.makes_watermarks, limited.spreads) == (False, True, True)
    assert limited.get_produced_type() == Types.STRING()
    assert RateLimitedSource(NumberSequenceSource(1, 2), 5).get_produced_type() is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: RateLimitedSource("a source", 5),
        lambda: RateLimitedSource(NumberSequenceSource(1, 2), "fast"),
        lambda: RateLimitedSource(NumberSequenceSource(1, 2), 0),
        lambda: PER_SECOND(float("nan")),
        lambda: PER_CHECKPOINT(0),
        lambda: PER_CHECKPOINT(1.5),
    ],
)
def test_impossible_limits_are_refused(make):
    with pytest.raises(InvalidProgramError):
        make()
