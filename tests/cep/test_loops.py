"""How often a pattern takes an event: loops, ranges, greedy loops and stop conditions."""

import pytest
from cep_jobs import element
from notation import chain, matches

LOOPS = [
    ("a loop has a match for every length", "a+ -> b", "a1 a2 b", ["a1 b", "a1 a2 b", "a2 b"]),
    ("a loop at the end emits at every event", "k -> a+", "k a1 a2", ["k a1", "k a1 a2"]),
    ("a loop passes over other events", "k -> m+ -> q", "k m1 z m2 q", ["k m1 q", "k m1 m2 q"]),
    ("a loop does not pass over its own events", "k -> m+ -> q", "k m1 m2 q", ["k m1 q", "k m1 m2 q"]),
    (
        "combinations pass over events of the loop",
        "k -> m+ any -> q",
        "k m1 m2 m3 q",
        ["k m1 q", "k m1 m2 q", "k m1 m3 q", "k m1 m2 m3 q"],
    ),
    (
        "the strategy before a loop concerns its first event",
        "k => m+ -> q",
        "k m1 m2 q",
        ["k m1 q", "k m1 m2 q", "k m2 q"],
    ),
    ("a loop behind next begins at once", "k > m+ -> q", "k z m q", []),
    ("a loop behind next is relaxed inside", "k > m+ -> q", "k m1 z m2 q", ["k m1 q", "k m1 m2 q"]),
    ("a consecutive loop ends at other events", "k -> m+ strict -> q", "k m1 m2 z m3 q", ["k m1 q", "k m1 m2 q"]),
    ("a strict pattern behind a loop ends it", "k -> m+ > q", "k m1 m2 z q", []),
    ("a strict pattern behind a loop follows directly", "k -> m+ > q", "k m1 m2 q", ["k m1 m2 q"]),
    ("times takes exactly so many", "k -> m{2} -> q", "k m1 z m2 m3 q", ["k m1 m2 q"]),
    ("times takes no fewer", "k -> m{3} -> q", "k m1 m2 q", []),
    ("times is strict if consecutive", "k -> m{2} strict -> q", "k m1 z m2 q", []),
    ("times with combinations", "k -> m{2} any -> q", "k m1 m2 m3 q", ["k m1 m2 q", "k m1 m3 q"]),
    ("a range has a match for every length", "k -> m{1,2} -> q", "k m1 m2 m3 q", ["k m1 q", "k m1 m2 q"]),
    ("a range from zero is optional", "k -> m{0,2} -> q", "k m q", ["k q", "k m q"]),
    ("times_or_more has a lower limit", "k -> m{2,} -> q", "k m1 m2 m3 q", ["k m1 m2 q", "k m1 m2 m3 q"]),
    ("an optional loop may be missing", "k -> m+? -> q", "k m q", ["k q", "k m q"]),
    ("optional times takes all or none", "k -> m{2}? -> q", "k m q", ["k q"]),
    ("two loops in a row", "a+ > b+", "a b1 b2", ["a b1", "a b1 b2"]),
]

GREEDY = [
    ("a greedy loop takes all it can", "k -> m+ greedy -> q", "k m1 m2 q", ["k m1 m2 q"]),
    ("a greedy loop without competition", "k -> m+ greedy -> q", "k m q", ["k m q"]),
    ("a greedy loop gives nothing back", "k -> x[mq]+ greedy -> q", "k m q", []),
    ("a greedy range takes all it can", "k -> m{1,2} greedy -> q", "k m1 m2 q", ["k m1 m2 q"]),
    ("an optional greedy loop is not skipped", "k -> m+? greedy -> q", "k m q", ["k m q"]),
    ("an optional greedy loop may be missing", "k -> m+? greedy -> q", "k z q", ["k q"]),
    ("greedy concerns the next pattern only", "k -> m+ greedy -> q -> r", "k m1 q m2 r", ["k m1 q r"]),
    ("greedy does nothing for a fixed number", "k -> x[mq]{2} greedy -> q", "k m q1 q2", ["k m q1 q2"]),
    ("a greedy loop at the end is not greedy", "k -> m+ greedy", "k m1 m2", ["k m1", "k m1 m2"]),
]

UNTIL = [
    ("the stop event ends the loop", "k -> m+ until:r -> q", "k m1 r m2 q", ["k m1 q"]),
    ("the stop event is not taken", "k -> x[mr]+ until:r -> q", "k m r q", ["k m q"]),
    ("the stop event may complete the match", "k -> x[mq]+ until:q -> q", "k m q", ["k m q"]),
    ("before the first event the stop event stops nothing", "k -> m+ until:r -> q", "k r m q", ["k m q"]),
    ("a greedy loop ends at the stop event", "k -> x[mq]+ greedy until:q -> q", "k m1 m2 q", ["k m1 m2 q"]),
    ("times_or_more stops, too", "k -> m{2,} until:r -> q", "k m1 r m2 q", []),
]

ALL = LOOPS + GREEDY + UNTIL


@pytest.mark.parametrize(("rule", "pattern", "text", "expected"), ALL, ids=[one[0] for one in ALL])
def test_loops(rule, pattern, text, expected):
    assert matches(pattern, text) == sorted(expected), rule


def test_a_loop_sees_the_events_it_has_taken_so_far():
    total = ["and", ["is", "m"], ["sum_below", "m", 6]]
    pattern = [element("k", "begin"), element("m", "follow", total, ("loop", 1)), element("q")]
    # 3 + 2 is below 6, 3 + 2 + 4 is not: the loop passes m4 over, and takes no part of a larger sum.
    assert matches(pattern, "k m3 m2 m4 q") == ["k m3 m2 q", "k m3 q"]


def test_a_condition_sees_the_events_of_all_rounds_of_a_group():
    pattern = chain("( a -> b ){2}")
    pattern[0]["group"][1]["cond"] = ["and", ["is", "b"], ["sum_below", "b", 6]]
    assert matches(pattern, "a1 b3 a2 b4") == []
    assert matches(pattern, "a1 b3 a2 b2") == ["a1 a2 b3 b2"]


def test_a_stop_condition_sees_the_run_before_the_event():
    pattern = chain("k -> m+ -> q")
    pattern[1]["until"] = ["sum_below", "m", 4]
    assert matches(pattern, "k m5 m-3 q") == ["k m5 q"]
    assert matches(pattern, "k m5 m6 m-3 q") == ["k m5 m6 m-3 q", "k m5 m6 q", "k m5 q"]
