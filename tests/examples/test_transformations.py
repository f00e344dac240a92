"""E02 to E24: what comes out of each operator, record by record."""

import pytest
import transformations as program
from sensors import SensorReading

from penstock.common import Row

pytestmark = pytest.mark.variants(modes=("STREAMING",))


def test_e02_hashtags_are_counted_one_by_one(results):
    assert results(program.hashtag_count) == [
        ("#flink", 1),
        ("#flink", 2),
        ("#river", 1),
        ("#streams", 1),
        ("#weather", 1),
        ("#weather", 2),
    ]


def test_e04_min_changes_one_field_and_min_by_gives_the_record(results):
    found = results(program.rolling_minimum)
    assert found["min"] == [
        SensorReading("sensor_1", 1_000, 25.3),
        SensorReading("sensor_1", 1_000, 24.1),
        SensorReading("sensor_1", 1_000, 24.1),
        SensorReading("sensor_2", 2_000, 21.7),
        SensorReading("sensor_2", 2_000, 21.7),
        SensorReading("sensor_2", 2_000, 20.4),
    ]
    assert found["min_by"] == [
        SensorReading("sensor_1", 1_000, 25.3),
        SensorReading("sensor_1", 3_000, 24.1),
        SensorReading("sensor_1", 3_000, 24.1),
        SensorReading("sensor_2", 2_000, 21.7),
        SensorReading("sensor_2", 2_000, 21.7),
        SensorReading("sensor_2", 6_000, 20.4),
    ]


def test_e09_the_count_is_emitted_after_each_record(results):
    counts = [(sensor, number) for sensor in ("sensor_1", "sensor_2") for number in (1, 2, 3)]
    assert results(program.record_count) == counts


def test_e10_one_at_most_one_and_any_number(results):
    found = results(program.basic_transformations)
    assert found["map to the sensor"] == ["sensor_1"] * 3 + ["sensor_2"] * 3
    assert sorted(found["filter from 25 degrees"]) == [
        SensorReading("sensor_1", 1_000, 25.3),
        SensorReading("sensor_1", 5_000, 26.9),
        SensorReading("sensor_2", 4_000, 25.0),  # the bound itself is kept
    ]
    assert found["flat_map to words"] == ["but", "do", "end", "never", "streams", "windows"]


def test_e11_white_once_black_twice_gray_never(results):
    assert results(program.flat_map_by_colour) == ["black", "black", "white", "white"]


def test_e12_rolling_sums_keep_the_fields_of_the_first_record(results):
    assert results(program.rolling_sum) == [(1, 2, 2), (1, 7, 2), (2, 3, 1), (2, 5, 1)]


def test_e13_reduce_gets_the_current_value_first(results):
    assert results(program.words_per_language) == [("en", ["tea"]), ("en", ["tea", "cake"]), ("fr", ["vin"])]


def test_e20_numbers_and_objects(results):
    assert results(program.numbers_and_objects) == {
        "incremented": [2, 3, 4, 5],
        "older than 18": [program.Person("Sarah", 23)],
    }


def test_e21_all_ways_to_declare_a_type_give_the_same(results):
    found = results(program.type_hints)
    assert list(found) == ["by the function", "with the call", "afterwards"]
    for records in found.values():
        assert records == [Row(name="Adam", age=17), Row(name="Sarah", age=23)]


def test_e23_all_forms_of_a_filter_give_the_same(results):
    found = results(program.keyword_filters)
    assert list(found) == ["FlinkFilter()", "KeywordFilter('flink')", "lambda"]
    for records in found.values():
        assert records == ["joined two streams with flink today #flink #streams", "reading about streams #flink"]


def test_e24_a_function_knows_its_subtask(results):
    assert sorted(results(program.rich_flat_map)) == [(0, 2), (0, 4), (0, 6), (1, 1), (1, 3), (1, 5)]
