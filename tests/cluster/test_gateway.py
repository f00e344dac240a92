"""One address for the jobs of several driver processes."""

import json
import os
import urllib.request

import pytest
from starlette.testclient import TestClient

from penstock.cli.command_line import RunCommand
from penstock.cli.job_records import JobRecord, JobRecords
from penstock.cli.job_server import JobServer
from penstock.cli.live_page import show_live_page
from penstock.cluster.gateway import create_gateway
from penstock.common import JobStatus
from penstock.connectors import DiscardingSink
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster


@pytest.fixture
def records(tmp_path):
    return JobRecords(tmp_path / "jobs")


@pytest.fixture
def gateway(records):
    with TestClient(create_gateway(records), base_url="http://localhost") as client:
        yield client


@pytest.fixture
def running_job(records):
    """A job without an end, served by its driver as `penstock run` does it."""
    server = JobServer(RunCommand("job.py", [], [], "/"), records)
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=10))
    env.set_parallelism(1)
    env.from_sequence(1, 2**60).map(lambda n: n).name("numbers").key_by(lambda n: n % 3).sum().sink_to(DiscardingSink())
    server.submitting("endless")
    client = env.execute_async("endless")
    server.follow(client)
    yield client
    client.cancel().result()
    server.close()


def test_o42_a_running_job_is_listed_with_its_tasks(gateway, running_job):
    (job,) = gateway.get("/jobs/overview").json()["jobs"]
    assert job["jid"] == str(running_job.get_job_id())
    assert job["tasks"]["total"] == 2
    assert gateway.get("/overview").json()["jobs-running"] == 1


def test_a_request_about_a_job_is_answered_by_its_driver(gateway, running_job):
    details = gateway.get(f"/jobs/{running_job.get_job_id()}").json()
    assert [vertex["status"] for vertex in details["vertices"]] == ["RUNNING", "RUNNING"]


def test_the_live_page_of_a_program_shows_its_job(running_job, records, monkeypatch, capsys):
    monkeypatch.setenv("PENSTOCK_JOBS", str(records.archive.parent))
    show_live_page(running_job)
    address, _, page = capsys.readouterr().err.removeprefix("Live page: ").strip().partition("/#")
    assert page == f"/jobs/{running_job.get_job_id()}"
    with urllib.request.urlopen(f"{address}/jobs/overview", timeout=60) as answer:
        assert [job["name"] for job in json.load(answer)["jobs"]] == ["endless"]


def test_o76_a_job_is_cancelled_through_its_driver(gateway, running_job):
    assert gateway.patch(f"/jobs/{running_job.get_job_id()}?mode=cancel").status_code == 202
    with pytest.raises(Exception, match="was cancelled"):
        running_job.get_job_execution_result().result()
    assert running_job.get_job_status().result() is JobStatus.CANCELED


def test_o43_a_job_whose_process_was_killed_has_failed(gateway, records):
    gone = JobRecord("ab" * 16, "lost", "RUNNING", "job.py", 2**22 + 1, 1.0, "/nowhere")
    records.write(gone)
    (job,) = gateway.get("/jobs/overview").json()["jobs"]
    assert (job["state"], job["end-time"]) == ("FAILED", 1000)


def test_a_job_that_is_listed_can_be_asked_about_after_its_driver_has_ended(gateway, records):
    ended = JobRecord("cd" * 16, "done", "FAILED", "job.py", 1, 1.0, "/nowhere", ended=3.0, error="bad record")
    records.write(ended)
    details = gateway.get(f"/jobs/{ended.job_id}").json()
    assert (details["state"], details["duration"], details["vertices"]) == ("FAILED", 2000, [])
    (entry,) = gateway.get(f"/jobs/{ended.job_id}/exceptions").json()["exceptionHistory"]["entries"]
    assert entry["stacktrace"] == "bad record"
    assert gateway.patch(f"/jobs/{ended.job_id}?mode=cancel").status_code == 409


def test_a_job_whose_process_serves_no_api_says_so(gateway, records):
    records.write(JobRecord("ba" * 16, "silent", "RUNNING", "job.py", os.getpid(), 1.0, "/nowhere"))
    path = f"/jobs/{'ba' * 16}"
    details = gateway.get(path).json()
    assert (details["state"], details["end-time"], details["timestamps"]["RUNNING"]) == ("RUNNING", -1, 1000)
    for answer in (gateway.get(f"{path}/checkpoints"), gateway.patch(path)):
        assert "install penstock[service]" in answer.json()["errors"][0]


def test_an_unknown_job_is_404(gateway):
    assert gateway.get("/jobs/" + "0" * 32).status_code == 404


def test_o138_an_ended_job_keeps_its_vertices_and_numbers(gateway, records):
    server = JobServer(RunCommand("job.py", [], [], "/"), records)
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=10))
    env.set_parallelism(2)
    env.from_sequence(1, 100).key_by(lambda n: n % 3).sum().name("total").sink_to(DiscardingSink())
    server.submitting("summing")
    client = env.execute_async("summing")
    server.follow(client)
    client.get_job_execution_result().result()
    server.close()
    path = f"/jobs/{client.get_job_id()}"
    details = gateway.get(f"/v1{path}").json()
    assert details["state"] == "FINISHED"
    assert details["vertices"][0]["metrics"]["write-records"] == 100
    vertex = f"{path}/vertices/{details['vertices'][1]['id']}"
    assert len(gateway.get(vertex).json()["subtasks"]) == 2
    assert gateway.get(f"{vertex}/subtasks/1/attempts/0").json()["subtask"] == 1
    assert {"id": "0.numRecordsIn"} in gateway.get(f"{vertex}/metrics").json()
    values = gateway.get(f"{vertex}/metrics?get=0.numRecordsIn,1.numRecordsIn").json()
    assert sum(int(metric["value"]) for metric in values) == 100
    last = gateway.get(f"{path}/checkpoints").json()["latest"]["completed"]["id"]
    assert gateway.get(f"{path}/checkpoints/details/{last}").json()["status"] == "COMPLETED"
    assert gateway.patch(f"{path}?mode=cancel").status_code == 409


def test_o85_health_and_o105_the_dashboard_page(gateway):
    assert gateway.get("/health/live").status_code == 200
    assert gateway.get("/").status_code == 200


def test_o48_a_worker_is_found_through_its_driver(gateway, running_job):
    (worker,) = gateway.get("/taskmanagers").json()["taskmanagers"]
    assert gateway.get(f"/taskmanagers/{worker['id']}").json()["id"] == worker["id"]
    assert gateway.get(f"/taskmanagers/{worker['id']}/logs").json() == {"logs": []}
    assert gateway.get("/taskmanagers/unknown").status_code == 404


def test_o63_metrics_over_jobs_of_several_drivers(gateway, running_job):
    assert {"id": "numRestarts"} in gateway.get("/jobs/metrics").json()
    (found,) = gateway.get("/jobs/metrics?get=numRestarts&agg=max").json()
    assert found == {"id": "numRestarts", "max": 0.0}


def test_o118_the_service_gives_the_metrics_of_all_jobs_to_prometheus(gateway, running_job):
    answer = gateway.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert f'job_id="{running_job.get_job_id()}"' in answer.text
    assert "flink_jobmanager_numRunningJobs{" in answer.text


def test_o104_the_end_of_a_jobs_log_can_be_read_and_searched(gateway, records, tmp_path):
    log = tmp_path / "job.log"
    log.write_text("begin\nurl=postgresql://me:secret@db/x\nERROR bad record\n" + "padding\n" * 50_000 + "end\n")
    record = JobRecord("ef" * 16, "done", "FINISHED", "job.py", 1, 1.0, "/nowhere", log=str(log), ended=2.0)
    records.write(record)
    tail = gateway.get(f"/penstock/jobs/{record.job_id}/log").json()
    assert (tail["lines"][-1], tail["truncated"], tail["size"]) == ("end", True, log.stat().st_size)
    assert gateway.get(f"/penstock/jobs/{record.job_id}/log?search=error").json()["lines"] == ["ERROR bad record"]
    (url,) = gateway.get(f"/penstock/jobs/{record.job_id}/log?search=url").json()["lines"]
    assert "secret" not in url


def test_o78_a_savepoint_is_disposed_of_without_any_driver(gateway, running_job, tmp_path):
    path = running_job.trigger_savepoint(str(tmp_path / "savepoints")).result()
    trigger = gateway.post("/savepoint-disposal", json={"savepoint-path": path})
    assert trigger.status_code == 200
    answer = gateway.get(f"/savepoint-disposal/{trigger.json()['request-id']}").json()
    assert answer == {"status": {"id": "COMPLETED"}, "operation": {}}
    again = gateway.post("/savepoint-disposal", json={"savepoint-path": path}).json()["request-id"]
    assert "failure-cause" in gateway.get(f"/savepoint-disposal/{again}").json()["operation"]
    assert gateway.post("/savepoint-disposal", json={}).status_code == 400


def test_o138_the_archive_of_an_ended_job_is_complete_when_its_driver_closes(records):
    server = JobServer(RunCommand("job.py", [], [], "/"), records)
    env = StreamExecutionEnvironment(executor=MiniCluster())
    env.from_collection([1, 2, 3]).sink_to(DiscardingSink())
    server.submitting("short")
    client = env.execute_async("short")
    server.follow(client)
    client.get_job_execution_result().result()
    server.close()
    (record,) = records.all()
    assert record.status == "FINISHED"
    assert (records.archive / str(client.get_job_id())).exists()


def test_o71_the_error_that_ended_a_job_is_among_its_exceptions(gateway, records):
    def fail(value):
        raise ValueError("bad record")

    server = JobServer(RunCommand("job.py", [], [], "/"), records)
    env = StreamExecutionEnvironment(executor=MiniCluster())
    env.from_collection([1]).map(fail).name("check").sink_to(DiscardingSink())
    server.submitting("failing")
    client = env.execute_async("failing")
    server.follow(client)
    assert client.get_job_execution_result().exception() is not None
    server.close()
    (entry,) = gateway.get(f"/jobs/{client.get_job_id()}/exceptions").json()["exceptionHistory"]["entries"]
    assert "bad record" in entry["stacktrace"]
    result = gateway.get(f"/jobs/{client.get_job_id()}/execution-result").json()["job-execution-result"]
    assert "bad record" in result["failure-cause"]["stack-trace"]
