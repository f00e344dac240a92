"""E34 to E37 and E46: what is computed of a window."""

import pytest
import window_functions as program

pytestmark = pytest.mark.variants(modes=("STREAMING",))

MIN_MAX = [
    program.MinMaxTemp("sensor_1", 70.0, 74.0, "00:00:05"),
    program.MinMaxTemp("sensor_1", 72.0, 72.0, "00:00:10"),
    program.MinMaxTemp("sensor_1", 68.0, 68.0, "00:00:20"),
    program.MinMaxTemp("sensor_2", 60.0, 60.0, "00:00:05"),
    program.MinMaxTemp("sensor_2", 63.0, 63.0, "00:00:10"),
    program.MinMaxTemp("sensor_2", 57.0, 57.0, "00:00:15"),
    program.MinMaxTemp("sensor_2", 65.0, 65.0, "00:00:20"),
]


def test_e34_lowest_temperature(results):
    assert results(program.min_temp_per_window) == [
        ("sensor_1", 70.0),
        ("sensor_1", 68.0),
        ("sensor_2", 57.0),
        ("sensor_2", 65.0),
    ]


def test_e35_average_temperature(results):
    assert results(program.avg_temp_per_window) == [
        ("sensor_1", 72.0),
        ("sensor_1", 68.0),
        ("sensor_2", 60.0),
        ("sensor_2", 65.0),
    ]


def test_e36_lowest_and_highest_of_all_elements(results):
    assert results(program.high_and_low_temp) == MIN_MAX


def test_e37_incrementally_gives_the_same_as_e36(results):
    assert results(program.min_max_incrementally) == MIN_MAX


def test_e46_median_and_most_frequent_value(results):
    # 70 70 71 75 90, and 65 66 66 67
    assert results(program.median_and_mode) == [
        ("sensor_1", "00:00:10", 71.0, 70.0),
        ("sensor_1", "00:00:20", 66.0, 66.0),
    ]
