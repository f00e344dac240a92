"""One of several services leads; jobs come back when their drivers are gone."""

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from penstock.cli.job_records import JobRecord, JobRecords
from penstock.cluster.detached_program import Started
from penstock.cluster.leadership import LeaderOnly, Leadership
from penstock.cluster.recovery import JobStore, Recovery, StoredJob
from penstock.runtime.lease.owner import this_machine


def test_o133_of_two_services_one_leads_and_the_other_takes_over_with_a_higher_epoch(tmp_path):
    ended = threading.Event()
    first, second = Leadership(tmp_path), Leadership(tmp_path)
    assert first.wait("http://first", ended)
    assert (first.is_leader, first.epoch, second.leader_url) == (True, 1, "http://first")
    waiting = threading.Thread(target=second.wait, args=("http://second", ended))
    waiting.start()
    assert not second.is_leader
    first.release()
    waiting.join()
    assert (second.is_leader, second.epoch, first.leader_url) == (True, 2, "http://second")
    second.release()


def test_o133_a_leader_that_finds_a_higher_epoch_ends_at_once(tmp_path):
    ended, gave_up = threading.Event(), threading.Event()
    paused = Leadership(tmp_path, 0.5, give_up=lambda code: gave_up.set())
    assert paused.wait("http://paused", ended)
    (tmp_path / "leader" / "epoch-000002").write_bytes((tmp_path / "leader" / "epoch-000001").read_bytes()[:-1] + b" }")
    taken = json.loads((tmp_path / "leader" / "epoch-000002").read_bytes())
    (tmp_path / "leader" / "epoch-000002").write_text(json.dumps({**taken, "id": "another"}), encoding="utf-8")
    assert gave_up.wait(60)
    paused.release()


def test_o132_a_standby_answers_503_with_the_address_of_the_leader(tmp_path):
    leader, standby = Leadership(tmp_path), Leadership(tmp_path)
    assert leader.wait("http://leader:8081", threading.Event())
    paths = ("/overview", "/health/live")
    app = Starlette(routes=[Route(path, lambda request: PlainTextResponse("ok")) for path in paths])
    with TestClient(LeaderOnly(app, standby), base_url="http://localhost") as client:
        answer = client.get("/overview")
        assert (answer.status_code, answer.headers["location"]) == (503, "http://leader:8081/overview")
        assert "standby" in answer.json()["errors"][0]
        assert client.get("/health/live").status_code == 200
    with TestClient(LeaderOnly(app, leader), base_url="http://localhost") as client:
        assert client.get("/overview").status_code == 200
    leader.release()


class Cluster:
    """Recovery over a directory, with drivers that are only noted."""

    def __init__(self, directory):
        self.records = JobRecords(directory / "records")
        self.store = JobStore(directory / "jobs")
        self.started, self.failures, self.now = [], [], 0.0
        self.works = True
        self.recovery = Recovery(
            self.store, self.records, self.start, lambda job, error: self.failures.append(job.job_id), lambda: self.now
        )

    def start(self, arguments, log):
        self.started.append(arguments)
        log.write_text("no such file", encoding="utf-8")
        return Started(1, "1" * 32 if self.works else None, None if self.works else 1, log)

    def job(self, tmp_path, status, process, machine=None):
        number = f"{len(self.store.all()):032x}"
        self.store.write(StoredJob(number, [f"{status}.py"], str(tmp_path / "log")))
        self.records.write(
            JobRecord(
                number, "job", status, f"{status}.py", process, 1.0, "/nowhere", machine=machine or this_machine()
            )
        )
        return number

    def recover(self):
        for job, take_over in self.recovery.due():
            self.recovery.restart(job, take_over=take_over)


@pytest.fixture
def cluster(tmp_path):
    return Cluster(tmp_path)


@pytest.fixture
def ended_process():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_o136_only_jobs_whose_driver_was_killed_are_started_again(cluster, tmp_path, ended_process):
    for status in ("FINISHED", "CANCELED", "FAILED"):
        cluster.job(tmp_path, status, ended_process)
    cluster.job(tmp_path, "RUNNING", os.getpid())
    cluster.recover()
    assert cluster.started == []
    cluster.job(tmp_path, "RESTARTING", ended_process)
    cluster.recover()
    assert cluster.started == [["RESTARTING.py"]]


def test_o134_a_job_on_another_machine_is_taken_over(cluster, tmp_path):
    cluster.job(tmp_path, "RUNNING", os.getpid(), machine="another")
    cluster.recover()
    assert cluster.started == [["--take-over", "RUNNING.py"]]


def test_o132_a_driver_that_dies_again_and_again_is_started_less_often(cluster, tmp_path, ended_process):
    cluster.job(tmp_path, "RUNNING", ended_process)
    times = []
    for second in range(20):
        cluster.now = float(second)
        before = len(cluster.started)
        cluster.recover()
        if len(cluster.started) > before:
            times.append(second)
    assert times == [0, 1, 3, 7, 15]


def test_o136_one_job_that_cannot_come_back_does_not_keep_the_others(cluster, tmp_path, ended_process):
    bad, good = (cluster.job(tmp_path, "RUNNING", ended_process) for _ in range(2))
    (tmp_path / "jobs" / f"{bad}.json").write_text("{", encoding="utf-8")
    cluster.recover()
    assert len(cluster.started) == 1
    cluster.works, cluster.now = False, 100.0
    cluster.recover()
    assert cluster.failures == [good]


def start_service(directory, shared):
    log = (directory / "log").open("wb") if directory.mkdir() is None else None
    command = [sys.executable, "-m", "penstock.cli", "cluster", "start", "--foreground", "--port", "0"]
    with log:
        return subprocess.Popen(
            [*command, "--dir", str(directory), "--ha-dir", str(shared)], stdout=log, stderr=log, start_new_session=True
        )


def leader_of(shared, other_than=None):
    """The address of the leader, once there is one that answers."""
    waited = threading.Event()
    for _ in range(6000):
        url = Leadership(shared).leader_url
        if url is not None and url != other_than:
            try:
                with urllib.request.urlopen(f"{url}/overview", timeout=60):
                    return url
            except (urllib.error.URLError, OSError):
                pass
        waited.wait(0.05)
    raise AssertionError("no service leads")


@pytest.fixture
def services(tmp_path):
    """Two services on one shared directory."""
    shared = tmp_path / "shared"
    shared.mkdir()
    started = [start_service(tmp_path / name, shared) for name in ("a", "b")]
    yield shared, started
    for service in started:
        service.kill()
        service.wait()


def leading(shared, services):
    owner = json.loads(next((shared / "leader").glob("epoch-*")).read_text(encoding="utf-8"))
    return next(service for service in services if service.pid == owner["pid"])


def test_o137_a_standby_leads_after_the_leader_is_killed(services):
    shared, started = services
    url = leader_of(shared)
    leader = leading(shared, started)
    leader.send_signal(signal.SIGKILL)
    leader.wait()
    assert leader_of(shared, other_than=url) != url
    assert json.loads((shared / "leader.json").read_text(encoding="utf-8"))["epoch"] == 2


def test_o137_a_leader_that_was_paused_for_longer_than_its_lease_ends(services):
    shared, started = services
    url = leader_of(shared)
    leader = leading(shared, started)
    leader.send_signal(signal.SIGSTOP)
    assert leader_of(shared, other_than=url) != url
    leader.send_signal(signal.SIGCONT)
    assert leader.wait() == 75
