"""E25 to E27: watermarks made by the program, and what they let through."""

import pytest
import watermarks as program
from sensors import MINUTE, SensorReading

from penstock.runtime.operators.timestamps import TimestampsAndWatermarksOperator
from penstock.testing import OneInputOperatorHarness

pytestmark = pytest.mark.variants(modes=("STREAMING",))

COUNTS = [
    ("sensor_1", "00:01:00", 2),
    ("sensor_1", "00:03:00", 1),
    ("sensor_2", "00:01:00", 1),
    ("sensor_2", "00:02:00", 2),
]


def test_e25_readings_up_to_a_minute_late_are_counted(results):
    assert results(program.periodic_assigner) == COUNTS


def test_e25_the_watermark_is_a_minute_behind_and_never_wraps_around():
    harness = OneInputOperatorHarness(TimestampsAndWatermarksOperator(program.PERIODIC))
    harness.end_batch()  # asked before the first record
    assert harness.extract_output() == []
    early, late = SensorReading("sensor_1", 30_000, 1.0), SensorReading("sensor_1", 10_000, 1.0)
    harness.process_elements([early, late])
    harness.end_batch()
    assert harness.extract_output() == [(early, 30_000), (late, 10_000), 30_000 - MINUTE]


def test_e26_only_one_sensor_moves_the_watermark_and_never_back(results):
    assert sorted(results(program.punctuated_assigner)) == [
        (10, "sensor_1", None),
        (15, "sensor_1", -50),
        (55, "sensor_2", -45),
        (65, "sensor_2", -50),
        (90, "sensor_2", 70),
        (130, "sensor_1", -45),
    ]


def test_e27_both_strategies_count_everything(results):
    assert results(program.built_in_strategies) == {
        "bounded out-of-orderness": COUNTS,
        "ascending timestamps": COUNTS,
    }


@pytest.mark.variants(executors=("one",))
def test_e47_the_clock_of_a_task_is_that_of_its_slowest_input(results):
    clocks = [clock for _, _, _, clock in results(program.four_partitions)]
    assert clocks == ["-", "-", "-", "-", 2, 3, 3, 4, 4]
