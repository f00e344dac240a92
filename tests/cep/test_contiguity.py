"""What may lie between two events of a match, and where a match may begin."""

import pytest
from cep_jobs import job, run_job
from notation import chain, matches, outcome

SCENARIOS = [
    ("next takes the very next event", "a > b", "a b", ["a b"]),
    ("next ends the run at any other event", "a > b", "a c b", []),
    ("followed_by passes over events that do not match", "a -> b", "a c c b", ["a b"]),
    ("followed_by takes the first event that matches and no later one", "a -> b", "a b1 b2", ["a b1"]),
    ("followed_by_any takes every event that matches", "a => b", "a b1 c b2", ["a b1", "a b2"]),
    ("every event may begin a match", "a -> b", "a1 a2 b", ["a1 b", "a2 b"]),
    ("the first pattern does not wait for its event", "a > b", "c a b", ["a b"]),
    ("strategies may differ along a sequence", "a -> b > c", "a x b c", ["a b c"]),
    ("strategies may differ along a sequence: strict part", "a -> b > c", "a b x c", []),
    ("any fans out again at each pattern", "a => b => c", "a b1 b2 c", ["a b1 c", "a b2 c"]),
    ("a pattern without a condition accepts every event", "a > x[*]", "a z", ["a z"]),
    ("an optional pattern is tried and left out at once", "a -> b? -> c", "a b c", ["a b c", "a c"]),
    ("an optional pattern may be missing", "a -> b? -> c", "a z c", ["a c"]),
    ("an optional strict pattern may be missing", "a > b? > c", "a c", ["a c"]),
    ("an optional strict pattern cannot be passed over", "a > b? > c", "a b c", ["a b c"]),
    ("an optional first pattern may be missing", "a? -> b", "a b", ["a b", "b"]),
    ("a sequence of optional patterns has no empty match", "a? -> b?", "c", []),
    ("a sequence of optional patterns matches each part", "a? -> b?", "a b", ["a", "a b", "b"]),
    ("an event occurs once in a match", "x[*] -> y[*]", "a", []),
    ("an event may be in many matches", "x[*] => y[*]", "a b c", ["a b", "a c", "b c"]),
]


@pytest.mark.parametrize(("rule", "pattern", "text", "expected"), SCENARIOS, ids=[one[0] for one in SCENARIOS])
def test_contiguity(rule, pattern, text, expected):
    assert matches(pattern, text) == sorted(expected), rule


def test_events_of_other_keys_are_not_between():
    script = [["e", "k", "a", 0, 1], ["e", "j", "z", 0, 2], ["e", "k", "b", 0, 3], ["w", 10]]
    assert run_job(job(chain("a > b"), script)) == [["m", [["a", [0]], ["b", [2]]], 3], ["w", 10]]


def test_a_match_has_its_names_in_the_order_they_took_events_and_no_name_without_events():
    script = [["e", "k", kind, 0, number] for number, kind in enumerate("aacb", 1)]
    found = run_job(job(chain("a{2} -> x? -> c -> b"), [*script, ["w", 10]]))
    assert found[0] == ["m", [["a", [0, 1]], ["c", [2]], ["b", [3]]], 4]


def test_a_match_has_the_timestamp_of_the_event_that_completes_it():
    assert outcome("a -> b", "a z b", every=10) == [("m", "a b", 21)]


def test_two_runs_at_one_pattern_may_disagree_about_an_event():
    pattern = chain("a -> b -> c")
    pattern[1]["cond"] = ["and", ["is", "b"], ["sum_below", "a", 6]]
    # 4 + 3 is too much for the run that began with a4, so it passes b3 over and takes b1.
    assert matches(pattern, "a4 a1 b3 b1 c") == ["a1 b3 c", "a4 b1 c"]
