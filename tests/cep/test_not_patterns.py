"""What must not come: not_next and not_followed_by, in the middle and at the end of a sequence."""

import pytest
from notation import matches, outcome

END = 2**63 - 1

SCENARIOS = [
    ("not_next offers the event to the next pattern", "a !> n -> b", "a b", ["a b"]),
    ("not_next forbids the very next event", "a !> n -> b", "a n b", []),
    ("not_next allows the event later", "a !> n -> b", "a z n b", ["a b"]),
    ("not_followed_by allows other events", "a !-> n -> b", "a z b", ["a b"]),
    ("not_followed_by forbids the event anywhere before the next", "a !-> n -> b", "a z n b", []),
    ("not_followed_by allows the event later", "a !-> n -> b", "a b n", ["a b"]),
    ("several NOT patterns in a row: first", "a !-> n !-> m -> b", "a n b", []),
    ("several NOT patterns in a row: second", "a !-> n !-> m -> b", "a m b", []),
    ("several NOT patterns in a row: neither", "a !-> n !-> m -> b", "a z b", ["a b"]),
    ("not_followed_by before not_next guards nothing", "a !-> n !> m -> b", "a n b", ["a b"]),
    ("not_followed_by before not_next ends the loop before it", "a+ !-> n !> m -> b", "a n b", []),
    ("a forbidden event may complete the sequence", "a !-> x[nb] -> b", "a b", ["a b"]),
    ("a forbidden event ends a run that is not complete", "a !-> x[nb] -> b -> c", "a b c", []),
    ("the event after not_next ends the loop before it", "k -> m+ !> r -> q", "k m1 r m2 q", []),
    ("a forbidden event ends the loop before it", "k -> m+ !-> r -> q", "k m1 r m2 q", []),
    ("a forbidden event ends a loop that passes events over", "k -> m+ !-> r -> q", "k m1 z r m2 q", []),
    ("a forbidden event ends a range", "k -> m{1,2} !-> r -> q", "k m1 r m2 q", []),
    ("a range that has passed an event over is unguarded", "k -> m{1,2} !-> r -> q", "k m1 z r m2 q", ["k m1 m2 q"]),
    ("an optional pattern that took an event ends the guard", "a !-> n -> b? -> c", "a b n c", ["a b c"]),
    ("the guard reaches beyond an optional pattern", "a !-> n -> b? -> c", "a n c", []),
    ("an event that not_next forbids ends a loop", "k -> m+ !> n[m] -> q", "k m1 m2 q", []),
    ("an event that a greedy loop takes is not forbidden", "k -> m+ greedy !> n[m] -> q", "k m1 m2 q", ["k m1 m2 q"]),
    ("not_next at the end without another event", "a !> n", "a", []),
    ("not_next at the end with the forbidden event", "a !> n", "a n z", []),
    ("a trailing not_followed_by limited by an earlier pattern is ignored", "a within:5 -> b !-> n", "a b n", ["a b"]),
    ("not_followed_by at the end of a group is ignored", "( a !-> n ) -> b", "a n b", ["a b"]),
]


@pytest.mark.parametrize(("rule", "pattern", "text", "expected"), SCENARIOS, ids=[one[0] for one in SCENARIOS])
def test_not_patterns(rule, pattern, text, expected):
    assert matches(pattern, text) == sorted(expected), rule


def test_not_next_at_the_end_matches_with_the_time_of_the_next_event_and_without_the_event():
    assert outcome("a !> n", "a z", every=10) == [("m", "a", 11)]


def test_not_next_at_the_end_is_not_completed_by_its_limit():
    assert outcome("a !> n within:5", "a") == [("t", "a", 6)]


TRAILING = "a !-> n within:5"


def test_a_trailing_not_followed_by_matches_when_its_limit_passes_at_the_end_of_the_input():
    assert outcome(TRAILING, "a") == [("m", "a", END)]


def test_a_trailing_not_followed_by_matches_with_the_time_of_the_next_event_behind_the_limit():
    assert outcome(TRAILING, "a z", every=9) == [("m", "a", 10)]


def test_a_forbidden_event_within_the_limit_ends_a_trailing_not_followed_by():
    assert outcome(TRAILING, "a n", every=4) == []


def test_a_forbidden_event_exactly_at_the_limit_comes_too_late():
    assert outcome(TRAILING, "a n", every=5) == [("m", "a", 6)]


def test_other_events_do_not_end_a_trailing_not_followed_by():
    assert outcome("a -> b !-> n within:5", "a z b z") == [("m", "a b", END)]


def test_a_trailing_not_followed_by_times_out_as_long_as_the_sequence_is_incomplete():
    assert outcome("a -> b !-> n within:5", "a z") == [("t", "a", 6)]
