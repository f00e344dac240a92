"""Killing a service and the drivers of its jobs: the next leader brings them back, exactly once."""

import json
import os
import random
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from processes import SOURCES, alive, descendants, kill, wait_until
from two_phase_job import KEYS, committed

from penstock.cli.job_records import JobRecords
from penstock.cli.remote import RestClient
from penstock.cluster.leadership import Leadership

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

START_SECONDS = 240


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


def kill_all(service, record):
    """The leader and the driver of the job at once, as when their machine loses its power."""
    processes = descendants(record.process)
    service.kill()
    kill([record.process])
    service.wait()
    wait_until(lambda: not alive(processes), 60, "the end of the JVM and its workers")


def test_o137_a_job_survives_its_service_and_its_driver_exactly_once(tmp_path):
    """PENSTOCK_HA_KILLS=20 kills twenty times, after random waits, and prints how long everything took;
    PENSTOCK_HA_SECONDS ends that earlier."""
    kills = int(os.environ.get("PENSTOCK_HA_KILLS", "1"))
    ends = time.monotonic() + float(os.environ.get("PENSTOCK_HA_SECONDS", "inf"))
    chosen = random.Random(int(os.environ.get("PENSTOCK_HA_SEED", "1")))
    records = 2_100 * (1 if kills == 1 else 1_000)
    shared, output = tmp_path / "shared", tmp_path / "output"
    shared.mkdir()
    output.mkdir()
    services = [start_service(tmp_path / "service-0", shared)]
    url = leader(shared)
    services.append(start_service(tmp_path / "service-1", shared))
    record, job, again = None, "", JobRecords(shared / "records")

    def commits():
        return len(list(output.glob("*.txt")))

    try:
        client = RestClient(url)
        program = Path(client.upload(Path(__file__).parent / "two_phase_job.py")).name
        arguments = [str(tmp_path / "checkpoint"), str(output), str(records)]
        job = client.send("POST", f"/jars/{program}/run", {"programArgsList": arguments})["jobid"]
        wait_until(lambda: commits() >= 3, START_SECONDS, "a commit")
        for number in range(1, kills + 1):
            (record,) = again.all()
            if time.monotonic() > ends:
                break
            if kills > 1:
                time.sleep(chosen.uniform(0.0, 3.0))
            leading = int(json.loads((shared / "leader.json").read_text(encoding="utf-8"))["epoch"]) - 1
            kill_all(services[leading], record)
            killed, before = time.monotonic(), commits()
            url = leader(shared, other_than=url)
            client, led = RestClient(url), time.monotonic() - killed
            services.append(start_service(tmp_path / f"service-{number + 1}", shared))
            wait_until(
                lambda: (
                    client.send("GET", f"/jobs/{job}/status")["status"] in {"RUNNING", "FINISHED"}  # noqa: B023
                    and again.all()[0].process != record.process  # noqa: B023
                ),
                START_SECONDS,
                "the job's new driver",
            )
            running = time.monotonic() - killed
            wait_until(lambda: commits() > before, START_SECONDS, "the next commit")  # noqa: B023
            if kills > 1:
                print(  # noqa: T201
                    f"kill {number}: leader after {led:.1f} s, job running after {running:.1f} s, "
                    f"next commit after {time.monotonic() - killed:.1f} s",
                    flush=True,
                )
        if kills > 1:
            client.send("PATCH", f"/jobs/{job}?mode=cancel")
        wait_until(
            lambda: client.send("GET", f"/jobs/{job}/status")["status"] in {"FINISHED", "CANCELED"},
            START_SECONDS,
            "the end of the job",
        )
    finally:
        for service in services:
            service.kill()
            service.wait()
        for each in again.all():
            kill(pid for pid, _ in alive(descendants(each.process)))
            if each.process and not each.is_over:
                kill([each.process])
    found = committed(output)
    counts = {key: sum(1 for each, _ in found if each == key) for key in range(KEYS)}
    assert found == sorted((key, n) for key, total in counts.items() for n in range(1, total + 1))
    if kills > 1:
        print(f"{sum(counts.values())} records, exactly once")  # noqa: T201
    else:
        assert sum(counts.values()) == records
