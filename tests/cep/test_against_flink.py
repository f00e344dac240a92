"""Jobs with the results that Flink 2.3 gave, recorded.

Each line of `flink_jobs.jsonl` is a random job and the log of `tests/differential/java/CepOracle.java`.
"""

import json
from pathlib import Path

import pytest
from cep_jobs import normal, run_job

LINES = Path(__file__).with_name("flink_jobs.jsonl").read_text(encoding="utf-8").splitlines()
PARTS = 20


@pytest.mark.parametrize("part", range(PARTS))
def test_recorded_jobs_give_what_flink_gave(part):
    for line in LINES[part::PARTS]:
        job, expected = json.loads(line)
        assert normal(job, run_job(job)) == normal(job, expected), job


def test_the_recorded_jobs_have_matches_timeouts_errors_and_every_skip_strategy():
    jobs, logs = zip(*map(json.loads, LINES), strict=True)
    assert len(LINES) >= 300
    assert {job["skip"][0] for job in jobs} == {"none", "next", "past", "first", "last"}
    assert {job["time"] for job in jobs} == {"event", "processing"}
    for kind in ("m", "t", "late", "error"):
        assert sum(any(entry[0] == kind for entry in log) for log in logs) >= 5, kind
