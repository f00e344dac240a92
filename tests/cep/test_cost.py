"""What an event costs, counted in lines of the automaton and its operator that are executed, and in calls."""

import sys
from pathlib import Path

import pytest
from cep_jobs import Event, job, operator_of
from notation import chain

import penstock.runtime.cep
from penstock.cep import Pattern
from penstock.cep.nfa_compiler import NFACompiler
from penstock.runtime.cep.nfa import NFAState
from penstock.runtime.cep.runs_by_state import RunsByStateNFA
from penstock.runtime.cep.runs_in_order import RunsInOrderNFA
from penstock.testing.harness import KeyedOneInputOperatorHarness

FOLDER = str(Path(penstock.runtime.cep.__file__).parent)
PAST = ["past"]


def ignore(path, timestamp, outcome):
    """What is done with matches."""


def lines(function):
    """How many lines of the package are executed; each round of a loop counts."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        if not frame.f_code.co_filename.startswith(FOLDER):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


class Fed:
    """An operator that gets events, one for each millisecond."""

    def __init__(self, pattern, skip=("none",)):
        self.harness = KeyedOneInputOperatorHarness(operator_of(job(chain(pattern), [], skip=skip), []))
        self.time = 0

    def feed(self, kinds):
        for kind in kinds:
            self.time += 1
            self.harness.process_element(Event(self.time, "k", kind, 0), self.time)
        self.harness.process_watermark(self.time)

    def wait(self, count):
        """Events far ahead of the watermark; then the watermark reaches one after the other."""
        for _ in range(count):
            self.time += 1
            self.harness.process_element(Event(self.time, "k", "z", 0), self.time)
        self.harness.snapshot()  # puts them into the state
        for watermark in range(self.time - count + 1, self.time + 1):
            self.harness.process_watermark(watermark)


@pytest.mark.parametrize(
    ("pattern", "before", "event", "skip"),
    [
        ("k -> m+ -> q", "m", "m", ["none"]),  # a path that grows, and a run behind the loop for each of its events
        ("k -> m{1200,} -> q", "m", "m", PAST),  # a path that grows; runs themselves cost, with a skip strategy
        *(("k -> m+ -> q", "z", "z", skip) for skip in (["none"], PAST)),  # events that are passed over
        *(("a -> b within:1000000", "z", "b", skip) for skip in (["none"], PAST)),  # events that concern nothing
    ],
)
def test_the_cost_of_an_event_does_not_grow_with_the_history(pattern, before, event, skip):
    costs = []
    for history in (100, 1_000):
        fed = Fed(pattern, skip)
        fed.feed("k" + before * history)
        costs.append(lines(lambda fed=fed: fed.feed(event)))
    assert costs[1] <= costs[0] + 5


def test_all_events_of_a_growing_path_cost_the_same_sweeps_included():
    fed = Fed("k -> m+ -> q")
    fed.feed("k")
    costs = [lines(lambda: fed.feed("m" * 500)) for _ in range(4)]
    assert max(costs) < 1.5 * min(costs)


@pytest.mark.parametrize("skip", [["none"], PAST], ids=["no skip", "past last"])
def test_an_event_that_concerns_no_run_costs_the_same_whatever_the_number_of_runs(skip):
    costs = []
    for runs in (10, 500):
        fed = Fed("a -> b -> c", skip)
        fed.feed("a" * runs)
        costs.append(lines(lambda fed=fed: fed.feed("z")))
    assert costs[1] <= costs[0] + 20


def test_events_far_ahead_of_the_watermark_cost_no_more_than_others():
    costs = [lines(lambda count=count: Fed("a -> b within:5").wait(count)) for count in (200, 400, 800)]
    assert costs[2] - costs[1] < 2.2 * (costs[1] - costs[0])


def test_a_limit_bounds_runs_and_taken_events():
    state = NFAState({}, [], None, (0, 0))
    nfa = RunsByStateNFA(NFACompiler.compile(Pattern.begin("a").followed_by_any("b").within(10)), int, ignore, None)
    seen = []
    for start in range(1, 2_001, 50):
        nfa.process(state, list(range(start, start + 50)), [0] * 50)
        nfa.sweep(state)
        seen.append((nfa.count_runs(state), len(state.nodes)))
    assert max(runs for runs, _ in seen) <= 10
    assert max(nodes for _, nodes in seen) <= 2 * 10 + 50 + 32


def collected():
    found = []
    return found, lambda path, timestamp, outcome: found.append([node[4] for node in path])


def test_runs_that_fork_share_what_they_took_before():
    found, on_match = collected()
    pattern = Pattern.begin("a").where(lambda n: n < 0).times(50).followed_by_any("b").where(lambda n: n > 0)
    nfa = RunsByStateNFA(NFACompiler.compile(pattern.followed_by("c").where(lambda n: n == 0)), int, on_match, None)
    state = NFAState({}, [], None, (0, 0))
    values = [*range(-50, 0), *range(1, 41)]
    nfa.process(state, list(range(1, 91)), values)
    assert nfa.count_runs(state) > 40  # one for each b, and those that wait
    assert len(state.nodes) == 50 * 51 // 2 + 40  # every event begins a run; the 40 forks share the path of 50
    nfa.process(state, [91], [0])
    assert [match[:50] for match in found] == [values[:50]] * 40


def asked(pattern_of, values, kind=RunsByStateNFA):
    """How often each value was asked about."""
    counts = dict.fromkeys(values, 0)

    def condition(value):
        counts[value] += 1
        return value < 10

    nfa = kind(NFACompiler.compile(pattern_of(condition)), int, ignore, None)
    nfa.process(NFAState(*nfa.restore(None), None, (0, 0)), list(range(1, len(values) + 1)), values)
    return counts


@pytest.mark.parametrize("kind", [RunsByStateNFA, RunsInOrderNFA])
def test_a_simple_condition_is_asked_once_for_an_event_whatever_the_number_of_runs(kind):
    def pattern(condition):
        return Pattern.begin("a").followed_by_any("b").where(condition).times(3).next("c")

    assert set(asked(pattern, list(range(12)), kind).values()) == {0, 1}  # none of the first event


def test_a_condition_is_not_asked_while_no_run_waits_for_its_pattern():
    counts = asked(lambda condition: Pattern.begin("a").where(lambda n: n > 10).next("b").where(condition), [1, 2, 3])
    assert set(counts.values()) == {0}


def test_conditions_are_asked_once_also_where_very_many_states_are_occupied():
    counts = asked(lambda condition: Pattern.begin("a").where(condition).times(40), list(range(-60, 0)))
    assert set(counts.values()) == {1}


def test_the_pattern_of_a_condition_that_fails_is_known_also_where_very_many_states_are_occupied():
    pattern = Pattern.begin("a").where(lambda n: n < 30 or 1 // 0).times(40)
    nfa = RunsByStateNFA(NFACompiler.compile(pattern), int, ignore, None)
    with pytest.raises(ZeroDivisionError):
        nfa.process(NFAState({}, [], None, (0, 0)), list(range(1, 41)), list(range(1, 41)))
    assert nfa.asked.pattern_name == "a"


def test_an_iterative_condition_walks_a_run_once_for_an_event_however_often_it_asks(monkeypatch):
    walks = []
    walk = RunsByStateNFA.path
    monkeypatch.setattr(RunsByStateNFA, "path", lambda *arguments: walks.append(1) or walk(*arguments))

    def condition(value, ctx):
        return len([*ctx.get_events_for_pattern("a"), *ctx.get_events_for_pattern("b"), *"x"]) < value

    def simple(value, ctx):
        return value == 7

    asks = Pattern.begin("a").where(lambda n: n == 1).followed_by("b").where(condition)
    for pattern, expected in ((asks, 1), (Pattern.begin("a").where(lambda n: n == 1).next("b").where(simple), 0)):
        nfa = RunsByStateNFA(NFACompiler.compile(pattern.followed_by("c")), int, ignore, None)
        state = NFAState({}, [], None, (0, 0))
        nfa.process(state, [1], [1])
        walks.clear()
        nfa.process(state, [2], [0])
        assert len(walks) == expected
