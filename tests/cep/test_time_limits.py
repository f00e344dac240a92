"""How long a match may take, and what becomes of runs that take longer."""

import pytest
from cep_jobs import job, run_job
from notation import chain, matches, outcome

LIMITS = [
    ("first and last less than the limit apart", "a -> b within:5", "a b", 4, ["a b"]),
    ("exactly the limit apart is too long", "a -> b within:5", "a b", 5, []),
    ("a limit on any pattern counts for the sequence", "a within:5 -> b -> c", "a b c", 3, []),
    ("the smallest limit counts", "a within:9 -> b within:5", "a b", 6, []),
    ("a limit of zero switches off all others", "a within:0 -> b within:5", "a b", 6, ["a b"]),
    ("a limit since the previous event", "a -> b -> c after:3", "a b c", 2, ["a b c"]),
    ("exactly at the limit since the previous event", "a -> b -> c after:3", "a b c", 3, []),
    ("a limit since the previous event is ignored by loops", "a -> b+ after:3", "a b", 9, ["a b"]),
    ("a limit since the previous event is ignored by the first pattern", "a after:3 -> b", "a b", 9, ["a b"]),
    ("the window of times limits all but its last event", "a -> b{2} apart:3", "a b1 b2", 2, ["a b1 b2"]),
    ("the window of times limits its first event", "a -> b{2} apart:3", "a b1 b2", 3, []),
    ("the window of one_or_more limits its first event", "a -> b+ apart:3", "a b", 3, []),
    ("the window of a range limits all but its last event", "a -> b{1,2} apart:3", "a b", 3, []),
    (
        "a sequence that begins with a loop has no event before its first one",
        "b{2} apart:3 -> c",
        "b1 b2 c",
        9,
        ["b1 b2 c"],
    ),
    ("a limit of None changes nothing", "a -> b", "a b", 9, ["a b"]),
]


@pytest.mark.parametrize(("rule", "pattern", "text", "every", "expected"), LIMITS, ids=[one[0] for one in LIMITS])
def test_limits(rule, pattern, text, every, expected):
    assert matches(pattern, text, every=every) == expected, rule


def script(*steps):
    """Events as (kind, timestamp), watermarks as numbers."""
    return [["w", step] if isinstance(step, int) else ["e", "k", step[0], 0, step[1]] for step in steps]


def test_the_last_event_of_times_may_come_at_any_time_after_the_others():
    found = run_job(job(chain("a -> b{2} apart:3"), script(("a", 1), ("b", 2), ("b", 90), 100)))
    assert found == [["m", [["a", [0]], ["b", [1, 2]]], 90], ["w", 100]]


def test_the_events_of_one_or_more_behind_the_first_may_come_at_any_time():
    found = run_job(job(chain("a -> b+ apart:3"), script(("a", 1), ("b", 2), ("b", 90), 100)))
    assert [entry[2] for entry in found if entry[0] == "m"] == [2, 90]


def test_a_run_that_times_out_is_reported_with_the_time_of_its_limit():
    assert outcome("a -> b within:5", "a z", every=50) == [("t", "a", 6)]


def test_a_run_that_times_out_since_its_previous_event_is_reported_with_the_time_of_that_limit():
    assert outcome("a -> b -> c after:3", "a b z", every=4) == [("t", "a b", 8)]


def test_without_a_handler_runs_time_out_silently():
    assert outcome("a -> b within:5", "a z", every=50, timeouts=False) == []


def test_a_limit_is_noticed_at_a_watermark_although_the_key_is_silent():
    found = run_job(job(chain("a -> b within:5"), script(("a", 1), 5, 6)))
    assert found == [["w", 5], ["t", [["a", [0]]], 6], ["w", 6]]


def test_a_limit_since_the_previous_event_is_noticed_at_the_next_event_only():
    found = run_job(job(chain("a -> b after:5"), script(("a", 1), 1, 1_000, ("z", 2_000), 3_000)))
    assert found == [["w", 1], ["w", 1_000], ["t", [["a", [0]]], 6], ["w", 3_000]]


def test_a_run_that_began_at_time_zero_is_reported_at_the_next_event_only():
    found = run_job(job(chain("a -> b within:5"), script(("a", 0), 1, 1_000, ("z", 2_000), 3_000)))
    assert found == [["w", 1], ["w", 1_000], ["t", [["a", [0]]], 5], ["w", 3_000]]


def test_every_live_run_is_reported_not_every_distinct_partial_match():
    # One run waits for m or q, the other has passed z over and waits for q alone.
    assert outcome("k -> m? -> q within:5", "k z") == [("t", "k", 6), ("t", "k", 6)]


def test_a_run_in_a_loop_is_reported_although_it_has_matched():
    found = outcome("k -> m+ -> q within:9", "k m q")
    assert found[0] == ("m", "k m q", 3)
    assert set(found[1:]) == {("t", "k m", 10)}


def test_a_run_times_out_before_the_event_that_shows_it_is_processed():
    assert outcome("a -> b within:5", "a1 z a2 b", every=3) == [("t", "a1", 6), ("m", "a2 b", 10)]


def test_in_processing_time_a_limit_is_noticed_a_millisecond_after_it_has_passed():
    steps = [["t", 1], ["e", "k", "a", 0, 1], ["t", 6], ["t", 7]]
    assert run_job(job(chain("a -> b within:5"), steps, time="processing")) == [["t", [["a", [0]]], 6]]
    assert run_job(job(chain("a -> b within:5"), steps[:-1], time="processing")) == []


def test_in_processing_time_events_are_processed_as_they_come():
    steps = [["t", 5], ["e", "k", "a", 0, 99], ["t", 8], ["e", "k", "b", 0, 1]]
    assert run_job(job(chain("a > b"), steps, time="processing")) == [["m", [["a", [0]], ["b", [1]]], 8]]


def test_of_both_limits_the_one_since_the_previous_event_gives_the_time():
    assert outcome("a -> b -> c after:3 within:6", "a b z", every=5) == [("t", "a b", 9)]


def test_an_optional_pattern_that_has_passed_an_event_over_has_no_limit_since_the_previous_event():
    passed_over = script(("a", 1), ("z", 2), ("b", 90), ("c", 91), 100)
    found = run_job(job(chain("a -> b? after:5 -> c"), passed_over, timeouts=False))
    assert [["a", [0]], ["b", [2]], ["c", [3]]] in [entry[1] for entry in found if entry[0] == "m"]
    directly = script(("a", 1), ("b", 90), ("c", 91), 100)
    found = run_job(job(chain("a -> b? after:5 -> c"), directly, timeouts=False))
    assert [entry[1] for entry in found if entry[0] == "m"] == []


def test_a_trailing_not_followed_by_with_a_limit_since_the_previous_event_waits_for_the_next_event():
    silent = script(("a", 1), 1, 1_000)
    assert run_job(job(chain("a !-> n after:5"), silent)) == [["w", 1], ["w", 1_000]]
    found = run_job(job(chain("a !-> n after:5"), [*silent, *script(("z", 2_000), 3_000)]))
    assert [entry for entry in found if entry[0] == "m"] == [["m", [["a", [0]]], 2_000]]


def test_the_window_of_times_or_more_limits_its_lower_number_of_events():
    late_third = script(("a", 1), ("b", 2), ("b", 3), ("b", 90), 100)
    found = run_job(job(chain("a -> b{2,} apart:3"), late_third, timeouts=False))
    assert [entry[2] for entry in found if entry[0] == "m"] == [3, 90]
    late_second = script(("a", 1), ("b", 2), ("b", 90), 100)
    assert run_job(job(chain("a -> b{2,} apart:3"), late_second, timeouts=False)) == [["w", 100]]


def test_waiting_matches_leave_before_timeouts_and_these_come_before_the_event():
    steps = script(("a", 1), ("a", 3), ("b", 4), ("b", 6), 6)
    found = run_job(job(chain("a => b within:5"), steps, skip=["first", "a"]))
    # a1 has timed out when b6 comes. Until then it holds back the match of a3 with b4.
    assert [(kind, match) for kind, match, _ in found[:-1]] == [
        ("m", [["a", [0]], ["b", [2]]]),
        ("m", [["a", [1]], ["b", [2]]]),
        ("t", [["a", [0]]]),
        ("m", [["a", [1]], ["b", [3]]]),
    ]
