"""The order of matches that one event completes, and of runs that time out together: Flink's, without a skip strategy.

Matches are in the order of their first events. Those with the same first event are put into a heap in the order in
which their runs forked, and leave it as Java's `PriorityQueue` lets equal items leave. Timed-out runs are in the order
in which they forked. `test_against_flink.py` has more.
"""

import pytest
from notation import outcome


def ordered(kind, pattern, text, **options):
    return [match for one, match, _ in outcome(pattern, text, **options) if one == kind]


@pytest.mark.parametrize(
    ("rule", "pattern", "text", "expected"),
    [
        ("by first event", "k -> q", "k1 k2 q", ["k1 q", "k2 q"]),
        ("a run stays in a loop before one leaves it", "k -> m+ -> q", "k m1 m2 q", ["k m1 m2 q", "k m1 q"]),
        ("three equal items of a heap", "k -> m+ -> q", "k m1 m2 m3 q", ["k m1 m2 m3 q", "k m1 q", "k m1 m2 q"]),
        (
            "four equal items of a heap",
            "k -> m+ -> q",
            "k m1 m2 m3 m4 q",
            ["k m1 m2 m3 m4 q", "k m1 q", "k m1 m2 q", "k m1 m2 m3 q"],
        ),
        ("a run takes an event before one passes it over", "k => m => q", "k m1 m2 q", ["k m1 q", "k m2 q"]),
        ("an optional pattern before the next", "k => m? -> q", "k m1 q", ["k m1 q", "k q"]),
        (
            "runs that a group makes twice",
            "k => ( a? ){1,2}? => q",
            "k a q",
            ["k a q", "k q", "k q", "k a q", "k q", "k a q"],
        ),
        ("a greedy loop with until", "k -> m? -> n+ greedy until:r -> q", "k m n q", ["k m n q", "k n q"]),
    ],
)
def test_matches_leave_in_the_order_of_flinks_heap(rule, pattern, text, expected):
    assert ordered("m", pattern, text) == expected, rule


def test_timed_out_runs_are_reported_in_the_order_in_which_they_forked():
    assert ordered("t", "k -> m+ -> q within:5", "k m1 m2 z z z z") == ["k m1 m2", "k m1 m2", "k m1"]


def test_timed_out_runs_that_a_group_makes_twice_are_reported_in_flinks_order():
    found = ordered("t", "k => ( x[ab]? ){1,2}? -> q within:5", "k a1 b2 a3")
    later = ["k b2 a3", "k b2", "k b2", "k a3", "k", "k", "k a1", "k", "k"]
    assert found == ["k a1 b2", "k a1", "k a1", *later]


def test_pending_matches_leave_in_the_order_of_the_heap():
    found = ordered("m", "k -> m+ !-> q within:5", "k m1 m2 m3 z z z")
    assert found == ["k m1 m2 m3", "k m1", "k m1 m2"]
