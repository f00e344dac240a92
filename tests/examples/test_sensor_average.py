"""E01: averages per sensor and window, and the sensors themselves."""

import argparse
import json
from statistics import fmean

import pytest

import sensor_average as program
from penstock.common import Time
from sensor_average import SensorReading, Sensors

streaming = pytest.mark.variants(modes=("STREAMING",))


def readings(sensors, count, started_at=0):
    generator = Sensors(sensors, started_at)
    generator.open(None)
    return [generator.map(index) for index in range(count)]


@streaming
def test_e01_one_mean_in_celsius_per_sensor_and_window(env_factory):
    env = env_factory()
    stream = env.from_collection(
        [
            SensorReading("sensor_1", 100, 32.0),
            SensorReading("sensor_2", 999, 50.0),
            SensorReading("sensor_1", 1_000, 212.0),
            SensorReading("sensor_1", 800, 50.0),  # out of order, but not by more than the bound
        ]
    )
    found = list(program.averages(stream, Time.seconds(1)).execute_and_collect())
    assert sorted(found) == [
        SensorReading("sensor_1", 1_000, 5.0),
        SensorReading("sensor_1", 2_000, 100.0),
        SensorReading("sensor_2", 1_000, 10.0),
    ]


@streaming
def test_means_of_a_window_make_one_line(env_factory):
    env = env_factory()
    stream = env.from_collection(
        [
            SensorReading("sensor_1", 100, 32.0),
            SensorReading("sensor_3", 200, 50.0),
            SensorReading("sensor_1", 1_100, 212.0),
        ]
    )
    lines = list(program.lines(program.averages(stream, Time.seconds(1)), Time.seconds(1), 3).execute_and_collect())
    assert [line.split()[1:] for line in lines] == [["0.0", "-", "10.0", "5.0"], ["100.0", "-", "-", "100.0"]]
    assert len({len(line) for line in lines}) == 1


def test_the_same_number_gives_the_same_reading_in_any_order():
    expected = readings(3, 60)
    generator = Sensors(3, 0)
    generator.open(None)
    assert [generator.map(index) for index in (59, 12, 30, 0)] == [expected[index] for index in (59, 12, 30, 0)]


def test_readings_are_late_by_less_than_the_bound():
    latest = 0
    for reading in readings(2, 2_000, started_at=10_000):
        assert reading.timestamp > latest - program.MAX_DELAY_MS
        latest = max(latest, reading.timestamp)


@pytest.mark.variants(modes=("STREAMING",), executors=("warm",))
def test_the_whole_job_counts_every_reading(env_factory):
    options = argparse.Namespace(sensors=2, seconds=0.5, window=0.2)
    lines = list(program.build(env_factory(), options, started_at=1_000_000).execute_and_collect())
    by_window = {}
    for reading in readings(2, 10, started_at=1_000_000):
        celsius = (reading.temperature - 32) * 5 / 9
        by_window.setdefault(reading.timestamp // 200, {}).setdefault(reading.id, []).append(celsius)
    means = [
        [f"{fmean(sensors[sensor]):.1f}" if sensor in sensors else "-" for sensor in ("sensor_1", "sensor_2")]
        for _, sensors in sorted(by_window.items())
    ]
    assert [line.split()[1:3] for line in lines] == means


def test_a_killed_job_goes_on_with_the_options_it_began_with(tmp_path):
    parse = program.parser().parse_args
    started_at, resumed = program.recall(tmp_path / "job", parse(["--sensors", "3", "--seconds", "30"]))
    assert not resumed
    again = parse(["--sensors", "5"])
    assert program.recall(tmp_path / "job", again) == (started_at, True)
    assert (again.sensors, again.seconds, again.window) == (3, 30, 1)
    assert json.loads((tmp_path / "job" / "job.json").read_text())["started_at"] == started_at
