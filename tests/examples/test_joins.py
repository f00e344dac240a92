"""E40 and E41: who meets whom."""

import joins as program
import pytest

pytestmark = pytest.mark.variants(modes=("STREAMING",))


def test_e40_both_bounds_of_the_interval_count(results):
    assert sorted(results(program.interval_join)) == [
        ("x", "A 09:00:00", "B 08:00:00", "09:00:00"),
        ("x", "A 09:00:00", "B 09:15:00", "09:15:00"),
        ("y", "A 09:30:00", "B 09:00:00", "09:30:00"),
    ]


def test_e41_pairs_meet_only_within_a_window(results):
    pairs = [("x", "a1", "b1"), ("x", "a2", "b1"), ("x", "a3", "b1"), ("y", "a4", "b3"), ("y", "a4", "b4")]
    found = results(program.window_join)
    assert sorted(found["join"]) == pairs
    assert sorted(found["co_group as an outer join"]) == sorted([*pairs, ("x", "-", "b2")])
