"""Random CEP jobs give what Flink's own operator gives. Java, a JDK and Maven are needed; else the test is skipped."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator

import pytest
from cep_jobs import events, job, normal, run_job
from flink_cep import FlinkCep, jars
from notation import chain
from random_jobs import random_job

from penstock.testing.server import ServerUnavailableError

pytestmark = pytest.mark.spark

JOBS = 400


@pytest.fixture(scope="module")
def flink() -> Iterator[FlinkCep]:
    try:
        oracle = FlinkCep(jars())
    except (OSError, subprocess.CalledProcessError, ServerUnavailableError) as error:
        pytest.skip(f"Flink's CEP library cannot be run here: {error}")
    if oracle.ask(job(chain("a > b"), events("a b"))) != [["m", [["a", [0]], ["b", [1]]], 2], ["w", 2**63 - 1]]:
        pytest.skip("the harness of Flink's tests does not run here")
    yield oracle
    oracle.close()


@pytest.mark.timeout(600)
def test_random_jobs_give_what_flink_gives(flink: FlinkCep) -> None:
    rng = random.Random(23)
    answered = with_results = 0
    for _ in range(JOBS):
        one = random_job(rng)
        expected = flink.ask(one)
        if expected is None:  # it took too long
            continue
        answered += 1
        with_results += any(entry[0] in "mt" for entry in expected)
        assert normal(one, run_job(one)) == normal(one, expected), one
    assert answered > 0.9 * JOBS
    assert with_results > 0.4 * JOBS
