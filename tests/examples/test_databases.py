"""8-6 to 8-9: upserts."""

import databases as program
import pytest

# Not on "cold": forgetting a task without closing it, as after a crash, leaves connections open.
pytestmark = pytest.mark.variants(modes=("STREAMING",), executors=("warm", "one"))


def test_8_7_the_last_temperature_of_each_sensor_is_in_the_table(results):
    found = results(program.write_tuples)
    assert found == {"sensors": [("sensor_1", 69.0), ("sensor_2", 70.5), ("sensor_3", 74.5)]}


def test_8_9_the_highest_temperature_of_each_sensor_is_in_the_table(results):
    found = results(program.write_objects)
    assert found == {"sensors": [("sensor_1", 69.0), ("sensor_2", 71.0), ("sensor_3", 74.5)]}
