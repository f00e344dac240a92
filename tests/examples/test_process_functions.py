"""E06 and E28 to E30: state, timers, side outputs."""

import process_functions as program
import pytest
from sensors import SensorReading, at

from penstock.runtime.operators.keyed_co_process import KeyedCoProcessOperator
from penstock.runtime.operators.keyed_process import KeyedProcessOperator
from penstock.testing import KeyedOneInputOperatorHarness, KeyedTwoInputOperatorHarness

streaming = pytest.mark.variants(modes=("STREAMING",))


@streaming
def test_e06_smoke_within_ten_minutes_of_heat(results):
    assert results(program.heat_then_smoke) == [
        ("cellar", "08:21:00", "smoke, and it was hot at 08:20:00"),
        ("kitchen", "08:10:00", "smoke, and it was hot at 08:00:00"),
    ]


def test_e06_heat_is_forgotten_after_ten_minutes():
    harness = KeyedOneInputOperatorHarness(KeyedProcessOperator(program.HeatThenSmoke(), lambda event: event.room))
    for minute in (0, 4):
        harness.process_element(program.Observation("attic", at(8, minute), "temperature", 120.0), at(8, minute))
    harness.process_watermark(at(8, 10))
    assert harness.num_event_time_timers() == 1
    harness.process_watermark(at(8, 14))
    assert harness.num_event_time_timers() == 0
    harness.snapshot()
    assert harness.num_keyed_state_entries() == 0


def test_e28_a_steady_rise_warns_every_second_and_a_wavering_one_never(paced):
    # Readings every 200 ms: sensor_1 rises from the second one on, at 0.4 s, until 3.2 s.
    found = paced(program, program.temp_increase_alert, tick=200)
    assert found == [("sensor_1", "rising for one second")] * 2


def test_e28_equal_temperatures_leave_the_timer_alone():
    harness = KeyedOneInputOperatorHarness(
        KeyedProcessOperator(program.TempIncreaseAlert(), lambda reading: reading.id)
    )

    def read(now, temperature):
        harness.set_processing_time(now)
        harness.process_element(SensorReading("sensor_1", 0, temperature))
        return [warning for warning, _ in harness.extract_values()]

    assert [read(0, 50.0), read(100, 51.0), read(600, 51.0)] == [[], [], []]
    assert harness.num_processing_time_timers() == 1
    assert read(1_100, 52.0) == ["sensor_1"]  # due since 1100; the same reading starts the next second
    assert read(1_200, 51.9) == []
    assert harness.num_processing_time_timers() == 0


@streaming
def test_e29_all_readings_are_forwarded_and_cold_ones_raise_an_alarm(results):
    found = results(program.freezing_alarms)
    assert sorted(reading.temperature for reading in found["monitored readings"]) == [-4.0, 31.9, 32.0, 33.5]
    assert found["alarms"] == ["Freezing alarm for sensor_2", "Freezing alarm for sensor_3"]


def test_e30_readings_pass_while_the_switch_is_on(paced):
    # Switched on for 1 s at 0.2 s, together with the first reading; the sixth comes at 1.2 s, when the timer fires.
    found = paced(program, program.reading_filter, tick=200)
    steps = {
        sensor: [step for name, _, step in found if name == sensor] for sensor in ("sensor_1", "sensor_2", "sensor_7")
    }
    assert steps["sensor_1"] == []
    assert [step for step in steps["sensor_2"] if step > 0] == [1, 2, 3, 4]
    assert [step for step in steps["sensor_7"] if step > 1] == list(range(2, 15))  # switched on at 0.4 s


class Filter:
    """The filter of one sensor, driven by hand."""

    def __init__(self):
        operator = KeyedCoProcessOperator(program.ReadingFilter(), lambda reading: reading.id, lambda switch: switch[0])
        self.harness = KeyedTwoInputOperatorHarness(operator)

    def switch(self, now, duration):
        self.harness.set_processing_time(now)
        self.harness.process_element2(("sensor_2", duration))

    def passes(self, now):
        self.harness.set_processing_time(now)
        self.harness.process_element1(SensorReading("sensor_2", now, 70.0))
        return bool(self.harness.extract_values())


def test_e30_a_switch_goes_off_by_itself():
    sensor = Filter()
    assert not sensor.passes(0)
    sensor.switch(1_000, 10_000)
    assert sensor.passes(1_000)
    assert sensor.passes(10_999)
    assert not sensor.passes(11_000)
    assert sensor.harness.num_keyed_state_entries() == 1
    sensor.harness.snapshot()
    assert sensor.harness.num_keyed_state_entries() == 0


def test_e30_a_longer_switch_extends_and_a_shorter_one_does_not_shorten():
    sensor = Filter()
    sensor.switch(0, 10_000)
    sensor.switch(5_000, 60_000)  # until 65 s: the timer at 10 s must be gone
    assert sensor.harness.num_processing_time_timers() == 1
    assert sensor.passes(10_000)
    sensor.switch(20_000, 1_000)
    assert sensor.passes(64_999)
    assert not sensor.passes(65_000)
