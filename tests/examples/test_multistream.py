"""E08 and E14 to E17: several streams."""

import multistream as program
import pytest

pytestmark = pytest.mark.variants(modes=("STREAMING",))


def test_e08_sums_of_two_sources_reach_two_sinks(results):
    found = results(program.two_source_even_odd)
    assert found["even"][-1] == ("even", 30)
    assert found["odd"][-1] == ("odd", 25)
    assert [len(records) for records in found.values()] == [5, 5]


def test_e14_union_keeps_all_and_duplicates_too(results):
    assert results(program.union_of_cities) == [
        ("Paris", 57.2),
        ("Paris", 58.1),
        ("Rio", 84.4),
        ("Rio", 84.4),
        ("Tokyo", 68.0),
    ]


def test_e15_alerts_only_for_heat_while_there_is_smoke(results):
    assert results(program.fire_alert) == [
        ("sensor_1", "00:00:03", "Risk of fire! 105 °F"),
        ("sensor_3", "00:00:05", "Risk of fire! 101 °F"),
    ]


def test_e16_keyed_streams_meet_and_a_broadcast_is_seen_by_all(results):
    found = results(program.connected_streams)
    assert sorted(found["by key"]) == [(1, "one", 10), (1, "one", 11), (2, "two", 20), (3, "three", 30)]
    first = [("first", 1, 10), ("first", 1, 11), ("first", 2, 20), ("first", 3, 30)]
    second = [("second", 1, "one"), ("second", 2, "two"), ("second", 3, "three")]
    assert sorted(found["second broadcast to two tasks"]) == sorted(first + 2 * second)


def test_e17_a_stream_is_split_and_put_together_again(results):
    found = results(program.split_numbers)
    assert found == {"large": [1_001, 5_000], "small": [7, 42, 1_000], "both": [7, 42, 1_000, 1_001, 5_000]}
