"""Running one checkpoint of a job again."""

import pdb  # noqa: T100 - it is what is tested
from io import StringIO

import pytest

from penstock.cluster.replay import Replay, ReplayedBatch
from penstock.cluster.replay_observers import Watch
from penstock.common import Time, Types, WatermarkStrategy
from penstock.common.errors import InvalidProgramError, UnsupportedFeatureError, UserFunctionError
from penstock.core.sink import Sink
from penstock.datastream import KeyedProcessFunction, RuntimeContext, SourceFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.table import StreamTableEnvironment
from penstock.testing import ManualClock, MiniCluster
from penstock.testing.mini_engine import ChannelState


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", default_value=0))

    def process_element(self, value, ctx):
        self.count.update(self.count.value() + 1)
        yield ctx.get_current_key(), self.count.value()


class Unwritable(Sink):
    """No writer of this sink may be made."""

    def create_writer(self, context):
        raise AssertionError("a replay must not write")


def environment():
    return StreamExecutionEnvironment(executor=MiniCluster(max_records=4, clock=ManualClock(100)))


def counting(env):
    numbers = env.set_parallelism(2).from_sequence(1, 20)
    return numbers.key_by(lambda n: n % 3).process(Count()).uid("count").name("counting")


def stored(env, batches):
    """The batch after so many, as a job has planned it; its sinks are never used."""
    sinks, settings = list(env.sinks), env.job_settings("job")
    env.sinks.clear()
    job = env._executor.start(sinks, settings)
    for _ in range(batches):
        assert job.run_batch()
    channels = {
        place: ChannelState(dict(state.store.blobs), state.snapshot) for place, state in job.engine.channels.items()
    }
    start = job.offset
    end = job.checkpoints.plan(start)
    return job, ReplayedBatch(start, end, channels, job.job_id)


def replayed(env, batches, **watch):
    job, batch = stored(env, batches)
    lines = []
    try:
        Replay(job.graph, batch, Watch(**watch), lines.append).run()
    finally:
        job.close()
    return lines


def marked(lines, mark):
    return sorted(line.split("  ")[-1].strip().removeprefix(mark).strip() for line in lines if f"  {mark} " in line)


def test_a_replay_repeats_what_the_job_does_next(capsys):
    env = environment()
    counting(env).print()
    job, batch = stored(env, 3)
    lines = []
    Replay(job.graph, batch, Watch(operator="count"), lines.append).run()
    capsys.readouterr()
    job.run_batch()
    job.close()
    printed = sorted(line.partition("> ")[2] for line in capsys.readouterr().out.splitlines())
    assert marked(lines, "out") == printed
    assert len(printed) == 4
    assert "checkpoint 4 of job 'job' (committed), processing time 100" in lines


def test_every_operator_is_counted():
    env = environment()
    counting(env).map(str).name("texts").print()
    lines = replayed(env, 2)
    assert [line.split()[0:3] for line in lines[-4:]] == [
        ["OPERATOR", "IN", "OUT"],
        ["counting", "4", "4"],
        ["texts", "4", "4"],
        ["Sink:", "Print", "to"],
    ]


def test_sinks_get_nothing_and_the_state_of_the_job_stays():
    env = environment()
    counting(env).sink_to(Unwritable())
    job, batch = stored(env, 0)
    before = {place: dict(state.store.blobs) for place, state in job.engine.channels.items()}
    Replay(job.graph, batch, say=lambda line: None).run()
    assert {place: dict(state.store.blobs) for place, state in job.engine.channels.items()} == before
    job.close()


def test_of_one_key_the_records_and_the_state_before_and_after_are_shown():
    env = environment()
    counting(env).print()
    lines = replayed(env, 2, operator="count", key="1")
    assert marked(lines, "in") == ["16"]
    assert marked(lines, "out") == ["(1, 4)"]
    assert [line.strip() for line in lines if "count = " in line] == ["before count = 3", "after  count = 4"]


def test_timers_that_fire_are_shown_with_their_results():
    env = environment()
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda n, _: n * 10)
    numbers = env.set_parallelism(1).from_sequence(1, 20).assign_timestamps_and_watermarks(times)
    windows = numbers.key_by(lambda n: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
    windows.reduce(lambda a, b: a + b).uid("sums").print()
    lines = replayed(env, 2, operator="sums")
    assert "  time 119: timers of all keys" in lines
    assert marked(lines, "out")


def test_rows_of_tables_are_shown_with_their_kinds():
    env = environment()
    rows = env.set_parallelism(1).from_collection(
        [(n % 2, n) for n in range(12)], type_info=Types.ROW_NAMED(["k", "v"], [Types.LONG(), Types.LONG()])
    )
    tables = StreamTableEnvironment.create(env)
    tables.create_temporary_view("numbers", rows)
    tables.to_changelog_stream(tables.sql_query("SELECT k, SUM(v) AS total FROM numbers GROUP BY k")).print()
    lines = replayed(env, 1, operator="GroupAggregate")
    assert marked(lines, "in") == ["+I (0, 4)", "+I (0, 6)", "+I (1, 5)", "+I (1, 7)"]
    assert {"+U (0, 12)", "+U (1, 16)"} <= set(marked(lines, "out"))


def test_no_more_records_are_shown_than_wanted():
    env = environment()
    counting(env).print()
    lines = replayed(env, 2, operator="count", limit=1)
    assert len(marked(lines, "in")) == 2
    assert any("--limit" in line for line in lines)


def test_an_unknown_operator_is_named_with_those_there_are():
    env = environment()
    counting(env).print()
    with pytest.raises(InvalidProgramError, match=r"no operator 'sum'; its operators are 'count', "):
        replayed(env, 1, operator="sum")


def test_a_key_needs_an_operator_with_keyed_state():
    env = environment()
    counting(env).print()
    with pytest.raises(InvalidProgramError, match="--key needs --operator"):
        replayed(env, 1, key="1")


class Once(SourceFunction):
    def run(self, ctx):
        ctx.collect(1)

    def cancel(self):
        pass


def test_records_that_were_received_cannot_be_read_again():
    env = environment()
    env.add_source(Once()).print()
    job = env._executor.start(list(env.sinks), env.job_settings("job"))
    job.run_to_end()
    job.close()
    batch = ReplayedBatch(job.checkpoints.batch.start, job.offset, {}, job.job_id)
    with pytest.raises(UnsupportedFeatureError, match="receives its records"):
        Replay(job.graph, batch, say=lambda line: None).run()


class Failing(Count):
    def process_element(self, value, ctx):
        if value == 16:
            raise ValueError("sixteen")
        return super().process_element(value, ctx)


def test_a_failure_of_the_job_is_repeated_with_its_record():
    env = environment()
    env.set_parallelism(2).from_sequence(1, 20).key_by(lambda n: n % 3).process(Failing()).uid("count").print()
    with pytest.raises(UserFunctionError, match="sixteen"):
        replayed(env, 2)


def test_the_debugger_stops_in_the_function_for_the_key():
    env = environment()
    counting(env).print()
    answers = StringIO()
    debugger = pdb.Pdb(stdin=StringIO("p ('stopped at', value)\ncontinue\n"), stdout=answers, nosigint=True)
    lines = replayed(env, 2, operator="count", key="1", debugger=debugger)
    assert "('stopped at', 16)" in answers.getvalue()
    assert answers.getvalue().count("stopped at") == 1
    assert marked(lines, "out") == ["(1, 4)"]
