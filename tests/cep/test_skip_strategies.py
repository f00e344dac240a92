"""What is dropped when a match is emitted."""

import pytest
from notation import outcome

GREEDY = "b+ greedy -> c"
GREEDY_EVENTS = "b1 b2 b3 c"
ANY = "a => b"
ANY_EVENTS = "a1 a2 b1 b2"

SCENARIOS = [
    ("no_skip keeps everything", ["none"], GREEDY, GREEDY_EVENTS, ["b1 b2 b3 c", "b2 b3 c", "b3 c"]),
    ("past the last event nothing overlaps", ["past"], GREEDY, GREEDY_EVENTS, ["b1 b2 b3 c"]),
    (
        "to the first event of the match",
        ["first", "b"],
        "b+ strict greedy -> c",
        GREEDY_EVENTS,
        ["b1 b2 b3 c", "b2 b3 c", "b3 c"],
    ),
    ("to the last event of a pattern", ["last", "b"], GREEDY, GREEDY_EVENTS, ["b1 b2 b3 c", "b3 c"]),
    ("to the first event of a later pattern", ["first", "c"], GREEDY, GREEDY_EVENTS, ["b1 b2 b3 c"]),
    ("no_skip keeps every match of a start", ["none"], ANY, ANY_EVENTS, ["a1 b1", "a1 b2", "a2 b1", "a2 b2"]),
    ("to the next start: one match for each start", ["next"], ANY, ANY_EVENTS, ["a1 b1", "a2 b1"]),
    ("past the last event: one match for both", ["past"], ANY, ANY_EVENTS, ["a1 b1"]),
    ("after a match the search begins again", ["past"], "a -> b", "a1 b1 a2 b2", ["a1 b1", "a2 b2"]),
    (
        "a pattern without an event drops nothing",
        ["first", "m"],
        "a{1,2} strict > m? > c",
        "a1 a2 c",
        ["a1 a2 c", "a2 c"],
    ),
    ("a live earlier run holds back later matches", ["first", "a"], ANY, ANY_EVENTS, ["a1 b1", "a1 b2"]),
]


@pytest.mark.parametrize(("rule", "skip", "pattern", "text", "expected"), SCENARIOS, ids=[one[0] for one in SCENARIOS])
def test_skip_strategies(rule, skip, pattern, text, expected):
    found = outcome(pattern, text, skip=skip, timeouts=False)
    assert sorted(match for _, match, _ in found) == sorted(expected), rule


def test_a_match_that_was_held_back_leaves_when_the_earlier_run_has_timed_out():
    found = outcome("a => b within:10", "a1 a2 b1 b2", skip=["first", "a"], timeouts=False)
    assert [match for _, match, _ in found[:2]] == ["a1 b1", "a1 b2"]
    assert {match for _, match, _ in found[2:]} == {"a2 b1", "a2 b2"}
    assert [timestamp for _, _, timestamp in found[:2]] == [3, 4]
    assert all(timestamp >= 11 for _, _, timestamp in found[2:])


def test_equal_timestamps_are_skipped_by_the_order_of_the_events():
    found = outcome("a -> b", "a1 b1 a2 b2", every=0, skip=["past"])
    assert [match for _, match, _ in found] == ["a1 b1", "a2 b2"]


def test_the_job_fails_if_the_pattern_to_skip_to_is_missing_and_that_was_asked_for():
    [(kind, name, message)] = outcome("a -> m? -> c", "a c", skip=["first", "m", True])
    assert (kind, name) == ("error", "JobExecutionError")
    assert "m" in message


def test_the_job_fails_if_a_skip_would_lead_to_the_first_event_of_the_match_and_that_was_asked_for():
    [(kind, name, _)] = outcome("a -> c", "a c", skip=["first", "a", True])
    assert (kind, name) == ("error", "JobExecutionError")
