"""Random CEP jobs give what Flink's own operator gives. Java, a JDK and Maven are needed; else the test is skipped."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator

import pytest
from cep_jobs import normal, run_job
from flink_cep import FlinkCep, jars
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
    yield oracle
    oracle.close()


@pytest.mark.timeout(600)
def test_random_jobs_give_what_flink_gives(flink: FlinkCep) -> None:
    rng = random.Random(23)
    answered = with_results = 0
    for _ in range(JOBS):
        job = random_job(rng)
        expected = flink.ask(job)
        if expected is None:  # it took too long
            continue
        answered += 1
        with_results += any(entry[0] in "mt" for entry in expected)
        assert normal(job, run_job(job)) == normal(job, expected), job
    assert answered > 0.9 * JOBS
    assert with_results > 0.4 * JOBS
