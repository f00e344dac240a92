"""What the benchmarks can run."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.harness.options import Options
from benchmarks.harness.program import load_builder, swap_import
from benchmarks.jobs.catalogue import JOBS
from benchmarks.nexmark import queries
from benchmarks.systems.catalogue import SYSTEMS
from benchmarks.systems.environment import ROOT

from penstock.connectors import DiscardingSink
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing.continuous_cluster import ContinuousCluster


@pytest.mark.parametrize("job", JOBS)
def test_every_job_has_its_program(job):
    assert callable(load_builder(JOBS[job], "penstock"))


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_has_a_driver_versions_and_known_jobs(system):
    system = SYSTEMS[system]
    assert set(system.jobs) <= set(JOBS)
    assert (ROOT / "benchmarks" / "systems" / f"{system.driver}.py").is_file()
    if system.environment is not None:
        pinned = (ROOT / "benchmarks" / f"constraints-{system.environment.name}.txt").read_text()
        names = {line.split("==")[0] for line in pinned.splitlines() if "==" in line}
        assert {requirement.split("[")[0] for requirement in system.environment.requirements} <= names


def test_the_program_for_pyflink_imports_nothing_of_ours():
    swapped = swap_import(Path(queries.__file__).read_text(), "pyflink")
    assert "from pyflink.common import" in swapped
    assert "from penstock" not in swapped


def options(mode):
    return Options("penstock", "q5", "default", 1_000, 2, 20_000, 1_000.0, 4.0, mode, 0, ".")


def test_a_small_input_to_compare_spans_many_windows():
    assert options("collect").workload(20_000).events_per_second == 200
    assert options("slope").workload(20_000).events_per_second == 10_000


@pytest.mark.parametrize("job", ["l", "l2", "lw"])
def test_latency_jobs_note_when_records_were_sent_and_when_they_arrived(job, tmp_path):
    env = StreamExecutionEnvironment(executor=ContinuousCluster(max_records=7)).set_parallelism(2)
    start = 1_700_000_000_000_000_000
    lines = env.from_collection([f"{n % 3},{start + n * 20_000_000},{n}.5" for n in range(60)])
    load_builder(JOBS[job], "penstock")(lines, str(tmp_path)).sink_to(DiscardingSink())
    env.execute(job)
    samples = [line.split() for path in tmp_path.glob("samples-*") for line in path.read_text().splitlines()]
    sent = {int(line[0]) for line in samples}
    assert len(sent) > 5
    assert sent <= {start + n * 20_000_000 for n in range(60)}
    assert all(int(arrived) > start for _, arrived in samples)
