"""E03, E05, E31 to E33 and E45: which elements meet in which window."""

import pytest
import windows as program

streaming = pytest.mark.variants(modes=("STREAMING",))


@pytest.mark.variants(modes=("STREAMING",), executors=("warm",))  # a thousand records
def test_e03_only_the_time_of_play_makes_the_level(results):
    assert results(program.mobile_game) == {
        "by the time of play": [("red", "12:00:00", "12:01:00", 600)],
        "by the time of arrival": [],
    }


@streaming
def test_e05_count_windows_fire_when_full_or_after_a_slide(results):
    assert results(program.count_windows) == {
        "tumbling, 4": ["1 2 3 4", "5 6 7 8"],
        "sliding, 4 after every 3": ["1 2 3", "3 4 5 6", "6 7 8 9"],
        "the same, spelled out": ["1 2 3", "3 4 5 6", "6 7 8 9"],
        "by colour, 2": [("blue", "2 4"), ("red", "1 3")],
    }


def test_e31_tumbling_windows_are_aligned_to_the_epoch_and_the_offset(paced):
    found = paced(program, program.tumbling_windows, tick=500)
    assert found["event time, 1 s"] == [
        ("sensor_1", "00:00:00", "00:00:01", 2),
        ("sensor_1", "00:00:01", "00:00:02", 1),
        ("sensor_1", "00:00:02", "00:00:03", 1),
    ]
    assert found["event time, 1 h from a quarter past"] == [
        ("sensor_1", "07:15:00", "08:15:00", 1),
        ("sensor_1", "08:15:00", "09:15:00", 2),
    ]
    # Records at 0.5, 1, 1.5, ... 10 s; the last window is still open when they end.
    assert found["processing time, 1 s"] == [1, *[2] * 9]


@streaming
def test_e32_each_reading_is_in_four_sliding_windows(results):
    assert results(program.sliding_windows) == [
        ("sensor_1", "08:15:00", "09:15:00", 1),
        ("sensor_1", "08:30:00", "09:30:00", 2),
        ("sensor_1", "08:45:00", "09:45:00", 2),
        ("sensor_1", "09:00:00", "10:00:00", 2),
        ("sensor_1", "09:15:00", "10:15:00", 1),
    ]


@streaming
def test_e33_sessions_touch_and_are_bridged(results):
    assert results(program.session_windows) == [
        ("sensor_1", "08:00:00", "08:40:00", 3),
        ("sensor_1", "09:00:00", "09:15:00", 1),
        ("sensor_2", "08:00:00", "08:35:00", 3),
    ]


@streaming
def test_e45_vehicles_are_summed_up_in_five_minutes(results):
    assert results(program.vehicle_count) == [
        ("Main and 1st", "08:00:30", 7),
        ("Main and 1st", "08:05:00", 6),
        ("Main and 2nd", "08:01:00", 7),
        ("Main and 2nd", "08:09:00", 1),
    ]
