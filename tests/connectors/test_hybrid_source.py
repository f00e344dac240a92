"""HybridSource: one source after the other, exactly once across the switch and across restarts."""

import pytest
from crashing import Crashing

from penstock.common import Duration, WatermarkStrategy
from penstock.common.errors import InvalidProgramError
from penstock.connectors import CollectSink, DataGeneratorSource, NumberSequenceSource
from penstock.connectors.file_system import FileSource, StreamFormat
from penstock.connectors.hybrid_source import HybridSource, _HybridEnumerator
from penstock.core.source import SplitEnumerator
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import MapFunction, ProcessFunction
from penstock.testing import MiniCluster


def three_in_a_row():
    first, second, third = NumberSequenceSource(1, 40), NumberSequenceSource(41, 45), NumberSequenceSource(46, 100)
    return HybridSource.builder(first).add_source(second).add_source(third).build()


def numbers(env, source):
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")


@pytest.mark.variants(modes=("STREAMING", "BATCH"))
def test_all_records_of_all_sources_come_once(env_factory):
    assert sorted(numbers(env_factory(), three_in_a_row()).execute_and_collect()) == list(range(1, 101))


@pytest.mark.parametrize("max_records", [None, 1, 7])
def test_a_source_begins_when_the_one_before_it_has_ended(max_records):
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=max_records)).set_parallelism(1)
    assert list(numbers(env, three_in_a_row()).execute_and_collect()) == list(range(1, 101))


def test_files_before_a_generator(tmp_path):
    (tmp_path / "old.txt").write_text("a\nb\n", encoding="utf-8")
    files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path)).build()
    live = DataGeneratorSource(lambda n: f"live {n}", 2)
    env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(1)
    found = list(numbers(env, HybridSource.builder(files).add_source(live).build()).execute_and_collect())
    assert found == ["a", "b", "live 0", "live 1"]


def test_the_watermark_of_the_first_source_does_not_end_event_time():
    """A watermark at the end of the first source would make everything after it late."""

    class Late(ProcessFunction):
        def process_element(self, value, ctx):
            if value <= ctx.timer_service().current_watermark():
                yield value

    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=10)).set_parallelism(2)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(50))
    stream = env.from_source(three_in_a_row(), strategy.with_timestamp_assigner(lambda n: n), "numbers")
    assert list(stream.rebalance().process(Late()).execute_and_collect()) == []


@pytest.mark.parametrize("batches", range(1, 12))
def test_a_job_goes_on_in_the_source_where_it_was(batches):
    cluster = MiniCluster(max_records=10)
    env = StreamExecutionEnvironment(executor=cluster).set_parallelism(2)
    collected = numbers(env, three_in_a_row()).collect_async()
    sinks, settings = list(env.sinks), env.job_settings(None)
    first = cluster.start(sinks, settings)
    for _ in range(batches):
        first.run_batch()
    second = cluster.start(sinks, settings, snapshot=first.snapshot())
    second.run_to_end()
    found = []
    while not collected._records.empty():
        found += collected._records.get()
    assert sorted(found) == list(range(1, 101))


def test_a_history_that_was_read_leaves_the_checkpoint_and_is_not_read_again(tmp_path):
    """Files before a directory that is watched: neither source has anything in the checkpoint when all is read."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    for number in range(3):
        (old / f"{number}.txt").write_text(f"old {number}\n", encoding="utf-8")
    (new / "0.txt").write_text("new 0\n", encoding="utf-8")
    text = StreamFormat.text_line_format()
    history = FileSource.for_record_stream_format(text, old).build()
    live = FileSource.for_record_stream_format(text, new).monitor_continuously(Duration.of_millis(1)).build()
    sinks = []

    def build(env):
        sinks.append(CollectSink())
        numbers(env, HybridSource.builder(history).add_source(live).build()).sink_to(sinks[-1])

    crashing = Crashing(tmp_path, build, max_records=2)
    found = []

    def run_until_there_are(job, count):
        while len(found) < count:
            job.run_batch()
            while not sinks[-1].records.empty():
                found.extend(sinks[-1].records.get_nowait())
        while any(job.offset.splits.values()):
            with job.coordinator.changed:
                job.coordinator.wake_at(0)
            job.run_batch()

    job = crashing.start()
    run_until_there_are(job, 4)
    crashing.snapshot = job.snapshot()
    job.coordinator.close()
    (old / "3.txt").write_text("too late for the history\n", encoding="utf-8")
    (new / "1.txt").write_text("new 1\n", encoding="utf-8")
    again = crashing.start()
    run_until_there_are(again, 5)
    again.coordinator.close()
    assert sorted(found[:3]) == ["old 0", "old 1", "old 2"]
    assert found[3:] == ["new 0", "new 1"]


def test_a_source_says_which_subtask_reads_its_splits():
    class Second(NumberSequenceSource):
        def create_enumerator(self, parallelism):
            enumerator = super().create_enumerator(parallelism)
            enumerator.subtask_for = lambda split_id, parallelism: parallelism - 1
            return enumerator

    both = HybridSource.builder(NumberSequenceSource(1, 4)).add_source(Second(5, 8)).build()
    env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(3)

    class WithSubtask(MapFunction):
        def open(self, runtime_context):
            self.subtask = runtime_context.get_index_of_this_subtask()

        def map(self, value):
            return value, self.subtask

    found = dict(numbers(env, both).map(WithSubtask()).execute_and_collect())
    assert {found[number] for number in range(5, 9)} == {2}
    assert {found[number] for number in range(1, 5)} != {2}


def test_nothing_can_follow_an_endless_source_and_only_sources_count():
    endless = DataGeneratorSource(lambda n: n)
    with pytest.raises(InvalidProgramError, match="nothing can follow source 1"):
        HybridSource.builder(endless).add_source(NumberSequenceSource(1, 2))
    with pytest.raises(InvalidProgramError, match="consists of sources"):
        HybridSource.builder([1, 2])
    assert not HybridSource.builder(NumberSequenceSource(1, 2)).add_source(endless).build().is_bounded


def test_all_sources_know_that_offsets_are_asked_for_between_checkpoints():
    class Noting(SplitEnumerator):
        steps = False

        def use_steps(self, wake):
            self.steps = True

        def discover_splits(self):
            return []

        def latest_offset(self, split, start_offset, max_records):
            return None

        def is_finished(self, split, offset):
            return True

    both = [Noting(), Noting()]
    _HybridEnumerator(both).use_steps(lambda: None)
    assert [enumerator.steps for enumerator in both] == [True, True]
