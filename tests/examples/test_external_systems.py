"""8-10 to 8-16: sources, sinks, requests."""

import external_systems as program
import pytest

from penstock.connectors.base import WriterInitContext
from penstock.datastream import StreamExecutionEnvironment

pytestmark = pytest.mark.variants(modes=("STREAMING",))
# Not on "cold": forgetting a task without closing it, as after a crash, leaves connections and event loops open.
closing = pytest.mark.variants(executors=("warm", "one"))


def test_8_10_a_loop_is_a_source(results):
    assert results(program.count_source) == [(0, 0), (1, 1), (2, 4), (3, 9), (4, 16)]


@pytest.mark.variants(parallelism=(1,))
def test_8_11_every_number_is_there_once(env_factory):
    from penstock.common import WatermarkStrategy

    numbers = env_factory().from_source(program.ResettableCount(10), WatermarkStrategy.no_watermarks(), "count")
    assert list(numbers.execute_and_collect()) == list(range(10))


def test_8_11_a_range_read_again_is_the_same():
    source = program.ResettableCount(10)
    enumerator, reader = source.create_enumerator(1), source.create_reader()
    (split,) = enumerator.discover_splits()
    end = enumerator.latest_offset(split, 3, max_records=5)
    assert list(reader.read(split, 3, end)) == list(reader.read(split, 3, end)) == [([3, 4, 5, 6, 7], None)]
    assert not enumerator.is_finished(split, end)
    assert enumerator.is_finished(split, 10)


@closing
def test_8_12_a_listener_receives_every_line(results):
    expected = [f"{reading.id} {reading.temperature}" for reading in program.READINGS]
    assert sorted(results(program.socket_sink)["received"]) == sorted(expected)


@closing
def test_8_13_the_last_value_of_each_key_is_in_the_table(results):
    assert results(program.upsert_sink) == {"table": [("sensor_1", 70.5), ("sensor_2", 74.0)]}


def test_8_15_all_lines_are_there_at_the_end(results):
    expected = sorted(f"{reading.id} {reading.temperature}" for reading in program.READINGS)
    assert results(program.transactional_file_sink) == {"lines": expected}


def test_8_15_nothing_is_visible_before_the_commit_and_a_second_commit_changes_nothing(tmp_path):
    sink = program.TransactionalFileSink(str(tmp_path))
    writer = sink.create_writer(WriterInitContext(subtask_id=1, parallelism=2, checkpoint_id=7))
    writer.write_batch(["a", "b"], None)
    written = writer.prepare_commit()
    assert list(tmp_path.glob("part-*")) == []
    for _ in range(2):
        sink.create_committer().commit(written, 7)
        assert [part.read_text() for part in tmp_path.glob("part-7-1")] == ["a\nb\n"]


@closing
def test_8_16_results_keep_the_order_of_their_readings(results):
    found = results(program.sensor_locations)
    assert [temperature for _, _, temperature in found] == [68.0, 69.0, 70.5, 71.0, 74.0]
    assert {location for _, location, _ in found} == {"kitchen", "cellar"}


@pytest.mark.variants(parallelism=(1,))
def test_8_14_without_a_crash_both_sinks_write_the_same(env_factory):
    env = env_factory()
    files = program.write_both_ways(env.from_collection(range(10)).set_parallelism(1), crash_at=-1)
    env.execute()
    assert [read() for read in files.values()] == [["0 1 2 3 4 5 6 7 8 9"]] * 2


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_8_14_on_spark_a_crash_shows_in_the_plain_sink_only():
    env = StreamExecutionEnvironment.get_execution_environment()
    found = program.write_ahead_sink(env)
    env.execute()
    plain, logged = (read()[0] for read in found.values())
    assert plain == "0 1 2 3 4 5 6 7 8 6 7 8 9"
    assert logged == "0 1 2 3 4 5 6 7 8 9"
