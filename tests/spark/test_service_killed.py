"""Killing a service and the drivers of its jobs: the next leader brings them back, exactly once."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from counting_job import KEYS
from processes import SOURCES, alive, descendants, wait_until

from penstock.cli.job_records import JobRecords
from penstock.cli.remote import RestClient
from penstock.cluster.leadership import Leadership

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

START_SECONDS = 240
RECORDS = 2_100


def start_service(directory, shared):
    directory.mkdir()
    command = [sys.executable, "-m", "penstock.cli", "cluster", "start", "--foreground", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    with (directory / "log").open("wb") as log:
        return subprocess.Popen(
            [*command, "--dir", str(directory), "--ha-dir", str(shared)],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=environment,
        )


def answers(url):
    try:
        with urllib.request.urlopen(f"{url}/overview", timeout=30):
            return True
    except OSError:
        return False


def leader(shared, other_than=None):
    wait_until(
        lambda: (url := Leadership(shared).leader_url) not in {None, other_than} and answers(url), 120, "a leader"
    )
    return Leadership(shared).leader_url


def test_o137_a_job_survives_its_service_and_its_driver_exactly_once(tmp_path):
    shared, output = tmp_path / "shared", tmp_path / "output"
    shared.mkdir()
    output.mkdir()
    drivers = {}
    first = start_service(tmp_path / "first", shared)
    url = leader(shared)
    second = start_service(tmp_path / "second", shared)
    try:
        client = RestClient(url)
        program = Path(client.upload(Path(__file__).parent / "counting_job.py")).name
        arguments = [str(tmp_path / "checkpoint"), str(output), str(RECORDS)]
        job = client.send("POST", f"/jars/{program}/run", {"programArgsList": arguments})["jobid"]
        wait_until(lambda: len(list(output.glob("*.json"))) >= 3, START_SECONDS, "a commit")
        (record,) = JobRecords(shared / "records").all()
        drivers = descendants(record.process)
        first.kill()
        os.kill(record.process, signal.SIGKILL)
        first.wait()
        wait_until(lambda: not alive(drivers), 60, "the end of the JVM and its workers")
        client = RestClient(leader(shared, other_than=url))
        wait_until(
            lambda: client.send("GET", f"/jobs/{job}/status")["status"] == "FINISHED",
            START_SECONDS,
            "the end of the job",
        )
    finally:
        for service in (first, second):
            service.kill()
            service.wait()
        for pid, _ in alive(drivers):
            os.kill(pid, signal.SIGKILL)
    found = sorted(tuple(each) for path in output.glob("*.json") for each in json.loads(path.read_text()))
    counts = {key: len(range(key or KEYS, RECORDS + 1, KEYS)) for key in range(KEYS)}
    assert found == sorted((key, n) for key, total in counts.items() for n in range(1, total + 1))
