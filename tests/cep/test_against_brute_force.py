"""Random patterns over random events have the matches that a search without any automaton finds."""

import random

import pytest
from brute_force import matches_of
from cep_jobs import job, run_job
from random_jobs import END, KINDS, chain


def modelled_job(rng):
    """A job that the brute-force search understands; None if the random chain is not one."""
    elements = chain(rng, limits=False)
    if elements[-1]["link"] == "not_follow" or any("group" in element for element in elements):
        return None
    if rng.random() < 0.5:
        elements[-1]["within"] = rng.randint(3, 9)
    script, now = [], 1
    for _ in range(rng.randint(6, 11)):
        now += rng.choice((0, 1, 1, 2, 4))
        script.append(["e", rng.choice("kkj"), rng.choice(KINDS), rng.randint(0, 5), now])
    if rng.random() < 0.3:
        rng.shuffle(script)
    return job(elements, [*script, ["w", END]], comparator=rng.random() < 0.2, timeouts=False)


def compare(seed, cases):
    rng = random.Random(seed)
    compared = with_matches = 0
    while compared < cases:
        one = modelled_job(rng)
        if one is None:
            continue
        found = sorted(entry[1:] for entry in run_job(one) if entry[0] != "w")
        assert found == matches_of(one), one
        compared += 1
        with_matches += bool(found)
    assert with_matches > cases / 3


@pytest.mark.parametrize("seed", range(4))
def test_random_patterns_have_the_matches_of_a_brute_force_search(seed):
    compare(seed, 100)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_random_patterns_have_the_matches_of_a_brute_force_search(seed):
    compare(seed, 1_000)
