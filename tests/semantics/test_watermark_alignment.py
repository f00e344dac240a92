"""Watermark alignment of whole jobs (FLIP-182, FLIP-217); how the driver decides: tests/runtime/test_alignment.py."""

import pytest
from support import BY_SECOND_FIELD, Script, collected

from penstock.common import Duration, Time, Watermark, WatermarkStrategy
from penstock.common.watermark_strategy import WatermarkGenerator
from penstock.connectors import DataGeneratorSource, NumberSequenceSource
from penstock.connectors.file_system import FileSource, StreamFormat
from penstock.connectors.sinks import CollectSink
from penstock.datastream import ProcessJoinFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.runtime.operators.interval_join import IntervalJoinOperator
from penstock.runtime.operators.split_watermarks import SplitWatermarksOperator
from penstock.testing import ManualClock, MiniCluster

DRIFT = 1_000
FAST_STEP, SLOW_STEP, LENGTH = 100, 5, 12_000
RECORDS = 20  # of each source in a batch: the fast one makes 2 s of event time with it, the slow one 0.1 s


def environment(clock=None, cold=False):
    cluster = MiniCluster(clock=clock, max_records=RECORDS, cold=cold)
    env = StreamExecutionEnvironment(executor=cluster)
    return env.set_parallelism(1).set_runtime_mode(RuntimeExecutionMode.STREAMING)


def aligned(strategy, group="group"):
    return strategy.with_watermark_alignment(group, Duration.of_millis(DRIFT))


def start(env, stream, snapshot=None):
    """The job, to be driven by hand, and what comes out of it."""
    sink = CollectSink()
    stream.sink_to(sink)
    return env._executor.start(list(env.sinks), env.job_settings(None), snapshot=snapshot), sink


def known_watermarks(job):
    return [watermark for source in job.offset.alignment.values() for watermark, _ in source.values()]


def largest_distance(job):
    """Runs the job to its end; how far its two splits were apart at most while both were read."""
    largest = 0
    while not job.finished:
        job.run_batch()
        known = known_watermarks(job)
        if len(known) == 2:
            largest = max(largest, max(known) - min(known))
    return largest


BOUND = DRIFT + 2 * RECORDS * FAST_STEP  # at the end of a batch: the drift, and what a batch reads


def multiples(step):
    return aligned(WatermarkStrategy.for_monotonous_timestamps()).with_timestamp_assigner(lambda number: number * step)


def numbers(env, step, path):
    return env.from_source(NumberSequenceSource(0, LENGTH // step), multiples(step), "numbers").map(
        lambda number: number * step
    )


def generated(env, step, path):
    source = DataGeneratorSource(lambda index: index * step, LENGTH // step + 1)
    strategy = aligned(WatermarkStrategy.for_monotonous_timestamps()).with_timestamp_assigner(lambda value: value)
    return env.from_source(source, strategy, "generated")


def collection(env, step, path):
    strategy = aligned(WatermarkStrategy.for_monotonous_timestamps()).with_timestamp_assigner(lambda value: value)
    return env.from_collection(list(range(0, LENGTH + 1, step))).assign_timestamps_and_watermarks(strategy)


def file(env, step, path):
    lines = path / f"every-{step}"
    lines.write_text("".join(f"{value:063d}\n" for value in range(0, LENGTH + 1, step)))  # cut by bytes, 64 a line
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(lines)).build()
    strategy = aligned(WatermarkStrategy.for_monotonous_timestamps()).with_timestamp_assigner(int)
    return env.from_source(source, strategy, "file").map(int)


class OfEveryRecord(WatermarkGenerator):
    """A generator of the user's own runs in the task behind the source."""

    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output):
        pass


def own_generator(env, step, path):
    strategy = aligned(WatermarkStrategy.for_generator(OfEveryRecord)).with_timestamp_assigner(lambda value: value)
    return env.from_source(Script(list(range(0, LENGTH + 1, step))), strategy, "script")


@pytest.mark.parametrize("make", [numbers, generated, collection, file, own_generator])
def test_sources_of_one_group_stay_together(make, tmp_path):
    env = environment()
    fast, slow = make(env, FAST_STEP, tmp_path), make(env, SLOW_STEP, tmp_path)
    job, sink = start(env, fast.union(slow))
    assert 0 < largest_distance(job) <= BOUND
    expected = [*range(0, LENGTH + 1, FAST_STEP), *range(0, LENGTH + 1, SLOW_STEP)]
    assert sorted(collected(sink)) == sorted(expected)


@pytest.mark.parametrize("strategy", [BY_SECOND_FIELD, WatermarkStrategy.for_generator(OfEveryRecord)])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_splits_of_one_source_stay_together(strategy, parallelism):
    env = environment().set_parallelism(parallelism)
    splits = [("f", at) for at in range(0, LENGTH, FAST_STEP)], [("s", at) for at in range(0, LENGTH, SLOW_STEP)]
    strategy = aligned(strategy).with_timestamp_assigner(lambda value: value[1])
    job, sink = start(env, env.from_source(Script(*splits), strategy, "script"))
    assert 0 < largest_distance(job) <= BOUND
    assert sorted(collected(sink)) == sorted([*splits[0], *splits[1]])


@pytest.mark.parametrize("cold", [False, True])
def test_a_job_that_is_started_again_all_the_time_stays_together(cold):
    """Except for one batch: when it was planned, its watermarks were not known yet."""
    script = Script(list(range(0, LENGTH, FAST_STEP)), list(range(0, LENGTH, SLOW_STEP)))
    strategy = aligned(WatermarkStrategy.for_monotonous_timestamps()).with_timestamp_assigner(lambda value: value)
    snapshot, largest, finished = None, 0, False
    while not finished:
        env = environment(cold=cold)
        job, _ = start(env, env.from_source(script, strategy, "script"), snapshot)
        for _ in range(2):
            job.run_batch()
        snapshot, finished = job.snapshot(), job.finished
        known = known_watermarks(job)
        if len(known) == 2:
            largest = max(largest, max(known) - min(known))
    assert 0 < largest <= BOUND + RECORDS * FAST_STEP


class Pair(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left[1], right[1]


def joined(strategy):
    """An interval join of a fast and a slow source: the most bytes of state it had, and its results."""
    env = environment()
    fast = env.from_source(Script([("k", at) for at in range(0, LENGTH, FAST_STEP)]), strategy, "fast")
    slow = env.from_source(Script([("k", at) for at in range(0, LENGTH, SLOW_STEP)]), strategy, "slow")
    pairs = (
        fast.key_by(lambda value: value[0])
        .interval_join(slow.key_by(lambda value: value[0]))
        .between(Time.milliseconds(0), Time.milliseconds(0))
        .process(Pair())
    )
    job, sink = start(env, pairs)
    most = 0
    while not job.finished:
        job.run_batch()
        most = max(most, waiting_elements(job))
    return most, sorted(collected(sink))


def operators(job, kind):
    """Those of the running tasks."""
    tasks = [task for stage in job.engine.stages.values() for task in stage._tasks.values()]
    return [operator for task in tasks for operator in task.chain.operators if isinstance(operator, kind)]


def waiting_elements(job):
    """How many elements of the only key the join keeps, on both sides."""
    if job.finished:
        return 0
    (join,) = operators(job, IntervalJoinOperator)
    join.backend.set_current_key("k")
    sides = [join.backend.entry[slot] for slot in (join._left, join._right)]
    join.backend.clear_current_key()
    return sum(len(side[0]) for side in sides if side is not None)


def test_the_state_of_a_join_of_a_fast_and_a_slow_source_stays_small():
    most, pairs = joined(aligned(BY_SECOND_FIELD))
    most_without, pairs_without = joined(BY_SECOND_FIELD)
    assert pairs == pairs_without == [(at, at) for at in range(0, LENGTH, FAST_STEP)]
    assert most_without > 0.9 * LENGTH / FAST_STEP
    assert most < 2 * BOUND / FAST_STEP


def test_a_split_that_is_held_back_is_not_called_idle_by_its_own_generator():
    clock = ManualClock()
    env = environment(clock)
    source = Script([100_000, 200_000], [0], bounded=False)
    strategy = aligned(WatermarkStrategy.for_generator(OfEveryRecord)).with_timestamp_assigner(lambda value: value)
    job, sink = start(env, env.from_source(source, strategy.with_idleness(Duration.of_seconds(1)), "script"))
    job.coordinator.sizer.limit = 2  # one record of each

    def idle(split):
        (generators,) = operators(job, SplitWatermarksOperator)
        return generators._splits.parts[split].idle

    for time in range(0, 5_000, 500):
        source.add(time // 100, split=1)
        job.run_batch()
        clock.advance(500)
        assert not idle("0")
    read = collected(sink)
    assert 100_000 in read
    assert 200_000 not in read
    for _ in range(4):  # the other one falls silent: it is declared idle, and no longer waited for
        clock.advance(500)
        job.run()
    assert idle("1")
    assert collected(sink)[-1] == 200_000


def test_batch_mode_has_no_watermarks_to_align_by():
    env = environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
    stream = env.from_source(Script([("f", 100_000), ("f", 200_000)], [("s", 0)]), aligned(BY_SECOND_FIELD), "script")
    assert sorted(stream.execute_and_collect()) == [("f", 100_000), ("f", 200_000), ("s", 0)]
