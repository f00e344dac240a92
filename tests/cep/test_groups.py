"""Groups: a sequence in the place of a pattern."""

import pytest
from notation import matches, outcome

SCENARIOS = [
    ("a group is its sequence", "k -> ( a -> b ) -> q", "k a z b q", ["k a b q"]),
    ("a group behind next begins at once", "k > ( a -> b )", "k z a b", []),
    ("a group behind next is relaxed inside if it says so", "k > ( a -> b )", "k a z b", ["k a b"]),
    ("a group behind any begins at every event", "k => ( a > b )", "k a1 b1 a2 b2", ["k a1 b1", "k a2 b2"]),
    ("a group may be the beginning", "( a > b ) -> q", "a b q", ["a b q"]),
    ("a group may be optional", "k -> ( a -> b )? -> q", "k a b q", ["k q", "k a b q"]),
    ("names collect their events over the rounds", "( a -> b ){2}", "a1 b1 z a2 b2", ["a1 a2 b1 b2"]),
    ("rounds of a consecutive group touch", "k -> ( a -> b ){2} strict", "k a1 b1 z a2 b2", []),
    ("rounds of a consecutive group that touch", "k -> ( a -> b ){2} strict", "k a1 b1 a2 b2", ["k a1 a2 b1 b2"]),
    (
        "inside a consecutive group its own strategies hold",
        "k -> ( a -> b ){2} strict",
        "k a1 z b1 a2 b2",
        ["k a1 a2 b1 b2"],
    ),
    (
        "a looping group has a match for every number of rounds",
        "k -> ( a > b )+ -> q",
        "k a1 b1 a2 b2 q",
        ["k a1 b1 q", "k a1 a2 b1 b2 q"],
    ),
    (
        "combinations of a group pass over rounds",
        "k -> ( a > b ){2} any -> q",
        "k a1 b1 a2 b2 a3 b3 q",
        ["k a1 a2 b1 b2 q", "k a1 a3 b1 b3 q"],
    ),
    ("a group from one to two rounds", "k -> ( a > b ){1,2} > q", "k a1 b1 q", ["k a1 b1 q"]),
    ("groups nest", "( k -> ( a > b ){2} ) -> q", "k a1 b1 a2 b2 q", ["k a1 a2 b1 b2 q"]),
    ("the stop event of a group ends its rounds", "k -> ( a -> b )+ until:r -> q", "k a1 b1 r a2 b2 q", ["k a1 b1 q"]),
    ("the stop event ends a round", "k -> ( a -> b )+ until:r -> q", "k a r b q", []),
]


@pytest.mark.parametrize(("rule", "pattern", "text", "expected"), SCENARIOS, ids=[one[0] for one in SCENARIOS])
def test_groups(rule, pattern, text, expected):
    assert matches(pattern, text) == sorted(expected), rule


def test_a_limit_in_a_group_counts_for_the_sequence_unless_it_is_on_the_last_pattern_of_the_group():
    assert matches("( a within:5 -> b ) -> c", "a b c", every=3) == []
    assert matches("( a -> b within:5 ) -> c", "a b c", every=3) == ["a b c"]


def test_the_skip_strategy_of_the_outer_sequence_counts_for_a_group():
    found = outcome("( a -> b ) -> c", "a1 a2 b c", skip=["past"], timeouts=False)
    assert [match for _, match, _ in found] == ["a1 b c"]
