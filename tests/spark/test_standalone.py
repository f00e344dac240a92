"""``penstock cluster start --workers``: several jobs share one Spark."""

import json
import urllib.request
from pathlib import Path

import pytest
from processes import wait_until
from two_phase_job import committed

from penstock.cli.main import main
from penstock.cli.remote import RestClient
from penstock.cluster.standalone import running_spark

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]


def test_o142_two_jobs_run_on_the_workers_of_one_spark(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PENSTOCK_JOBS", str(tmp_path / "jobs"))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    directory = tmp_path / "cluster"
    assert main(["cluster", "start", "--dir", str(directory), "--port", "0", "--workers", "1"]) == 0
    url = capsys.readouterr().out.partition("The service is running: ")[2].split()[0]
    try:
        client = RestClient(url)
        program = Path(client.upload(Path(__file__).parent / "two_phase_job.py")).name
        spark = running_spark(directory)
        jobs = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            arguments = [str(tmp_path / f"{name}-checkpoint"), str(tmp_path / name), "300", spark.master]
            jobs.append(client.send("POST", f"/jars/{program}/run", {"programArgsList": arguments})["jobid"])
        with urllib.request.urlopen(f"{spark.web}/json/", timeout=30) as answer:
            assert len(json.load(answer)["activeapps"]) == 2
        for job in jobs:
            wait_until(
                lambda: client.send("GET", f"/jobs/{job}/status")["status"] == "FINISHED",  # noqa: B023
                300,
                "the end of the job",
            )
        assert len(committed(tmp_path / "one")) == len(committed(tmp_path / "two")) == 300
    finally:
        main(["cluster", "stop", "--dir", str(directory), "--yes"])
    assert running_spark(directory) is None
