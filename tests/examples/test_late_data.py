"""E42 to E44: what is late, and what becomes of it."""

import late_data as program
import pytest
from late_data import reading

from penstock.datastream import StreamExecutionEnvironment
from penstock.runtime.windows.builder import build_window_operator
from penstock.testing import KeyedOneInputOperatorHarness, MiniCluster

streaming = pytest.mark.variants(modes=("STREAMING",))


@streaming
def test_e42_late_is_what_finds_its_window_done(results):
    assert results(program.late_to_side_output) == {
        "readings in 10 s": [("sensor_1", "00:00:10", 3), ("sensor_1", "00:00:20", 2), ("sensor_2", "00:00:10", 1)],
        "late": [reading(7), reading(3, "sensor_2")],
    }


@streaming
def test_e43_late_is_what_is_at_or_behind_the_watermark(results):
    found = results(program.late_filtered)
    assert sorted(found["on time"]) == [reading(1), reading(9), reading(12), reading(2, "sensor_2")]
    assert sorted(found["late"]) == [reading(5), reading(7), reading(10), reading(3, "sensor_2")]


@streaming
def test_e44_each_late_reading_fires_the_window_again_while_it_stays(results):
    assert results(program.late_updates) == [
        ("sensor_1", "00:00:10", 2, "first"),
        ("sensor_1", "00:00:10", 3, "update"),
        ("sensor_1", "00:00:10", 4, "update"),
        ("sensor_1", "00:00:10", 5, "update"),
        ("sensor_1", "00:00:20", 1, "first"),
    ]


def test_e44_no_state_stays_behind_a_window():
    operator = build_window_operator(
        program.TumblingEventTimeWindows.of(program.Time.seconds(10)),
        key_selector=lambda record: record.id,
        window_function=program.UpdatingWindowCount(),
        allowed_lateness_ms=5_000,
    )
    harness = KeyedOneInputOperatorHarness(operator)
    harness.process_element(reading(1), 1_000)
    harness.process_watermark(14_998)
    harness.snapshot()
    assert harness.num_keyed_state_entries() == 1
    harness.process_watermark(14_999)
    harness.snapshot()
    assert harness.num_keyed_state_entries() == 0


def test_e44_the_reading_that_is_dropped_is_counted():
    env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(1)
    program.late_updates(env).print()
    metrics = env.execute().get_all_accumulator_results()
    assert [value for name, value in metrics.items() if name.endswith("numLateRecordsDropped")] == [1], metrics
