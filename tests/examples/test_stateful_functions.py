"""7-2 to 7-13: functions with state."""

import pytest
import stateful_functions as program
from sensors import HOUR, SensorReading

from penstock.runtime.operators.keyed_process import KeyedProcessOperator
from penstock.testing import KeyedOneInputOperatorHarness

pytestmark = pytest.mark.variants(modes=("STREAMING",))


def test_7_2_a_sensor_is_compared_with_itself_and_its_first_reading_with_nothing(results):
    assert results(program.temperature_alert) == [
        ("sensor_1", 71.0, 2.5),
        ("sensor_1", 90.0, 19.0),
        ("sensor_2", 74.0, 3.0),
        ("sensor_2", 70.0, 3.0),
    ]


def test_7_4_each_task_counts_what_it_sees_over_all_checkpoints(results):
    assert results(program.high_temp_counter) == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2)]


def test_7_5_a_count_is_split_into_nearly_equal_parts():
    assert program.split(23, 10) == [3, 3, 3, 2, 2, 2, 2, 2, 2, 2]
    assert program.split(4, 10) == [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]


def test_7_7_thresholds_hold_from_their_time_on_and_temperatures_are_kept_without_one(results):
    assert results(program.updatable_alert) == [
        ("sensor_1", "08:03:00", 71.0, 2.5),
        ("sensor_2", "08:04:00", 73.0, 1.0),
        ("sensor_2", "10:00:00", 70.0, 3.0),
    ]


def test_7_8_keyed_and_operator_state_side_by_side(results):
    found = results(program.two_counters)
    assert [count for _, count, _ in found] == [1, 2, 3, 4] * 2
    assert sorted(of_task for _, _, of_task in found) == list(range(1, 9))


def test_7_13_a_sensor_silent_for_an_hour_starts_afresh(results):
    assert results(program.self_cleaning_alert) == [("sensor_1", 71.0, 2.5), ("sensor_2", 74.0, 3.0)]


def test_7_13_one_timer_a_key_and_nothing_left_behind():
    harness = KeyedOneInputOperatorHarness(
        KeyedProcessOperator(program.SelfCleaningAlert(1.7), lambda reading: reading.id)
    )
    for timestamp in (0, 1_000, 2_000):
        harness.process_element(SensorReading("sensor_1", timestamp, 70.0), timestamp)
    assert harness.num_event_time_timers() == 1
    harness.process_watermark(2_000 + HOUR - 1)
    assert harness.num_keyed_state_entries() == 1
    harness.process_watermark(2_000 + HOUR)
    harness.snapshot()
    assert harness.num_keyed_state_entries() == 0
