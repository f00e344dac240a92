"""Rules for all answers, and for those about the cluster as a whole, asked through the gateway."""

import pytest
from starlette.testclient import TestClient
from tests.cluster.driven_jobs import drive, reject_large

from penstock.cli.job_records import JobRecord, JobRecords
from penstock.cluster.gateway import create_gateway
from penstock.cluster.rest.authentication import needed_role
from penstock.cluster.rest.job_control import check_switches
from penstock.cluster.rest.metrics import chosen_subtasks
from penstock.cluster.rest.responses import RestError

KILLED = "ab" * 16
UNKNOWN = "0" * 32


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return JobRecords(tmp_path_factory.mktemp("jobs"))


@pytest.fixture(scope="module")
def jobs(records):
    """A job that runs, one that has finished, one that has failed; a fourth one was killed with its driver."""
    found = {
        "running": drive(records, "running"),
        "finished": drive(records, "finished", last=200),
        "failed": drive(records, "failed", check=reject_large),
    }
    for name in ("finished", "failed"):
        found[name].client.get_job_execution_result().exception()
        found[name].end()
    records.write(JobRecord(KILLED, "killed", "RUNNING", "job.py", 2**22 + 1, 1.0, "/nowhere"))
    yield found
    found["running"].end()


@pytest.fixture(scope="module")
def api(records, jobs):
    with TestClient(create_gateway(records), base_url="http://localhost") as client:
        yield client


def by_name(jobs):
    return {job["name"]: job for job in jobs}


@pytest.mark.parametrize("path", ["/overview", "/jobs", "/jobs/overview", "/taskmanagers", "/config"])
def test_o30_every_path_is_there_bare_below_v1_and_with_slashes_at_its_ends(api, path):
    for variant in (path, f"/v1{path}", f"{path}/", f"/v1{path}//"):
        answer = api.get(variant, follow_redirects=False)
        assert (answer.status_code, answer.json().keys()) == (200, api.get(path).json().keys()), variant
    assert api.get(f"/v2{path}").status_code == 404


def test_o30_slashes_do_not_lead_around_the_roles(api, jobs):
    address = f"http://localhost/{jobs['running'].path}/yarn-cancel/"
    assert api.get(address, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert needed_role("GET", f"{jobs['running'].path}/yarn-cancel").name == "OPERATOR"


def test_o31_answers_are_json_in_utf_8_that_any_page_may_read(api):
    headers = api.get("/overview").headers
    assert headers["content-type"] == "application/json; charset=UTF-8"
    assert headers["access-control-allow-origin"] == "*"
    assert api.get("/jobmanager/log").headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", f"/jobs/{UNKNOWN}", 404),
        ("GET", f"/jobs/{UNKNOWN}/status", 404),
        ("GET", f"/applications/{UNKNOWN}", 404),
        ("PATCH", f"/jobs/{UNKNOWN}", 404),
        ("POST", f"/jobs/{UNKNOWN}/savepoints", 404),
        ("GET", "/jobs/12", 400),
        ("GET", f"/jobs/{'g' * 32}", 400),
        ("GET", "/taskmanagers/nobody", 404),
        ("GET", "/nothing", 404),
        ("POST", "/overview", 404),
        ("GET", f"/savepoint-disposal/{UNKNOWN}", 404),
        ("GET", "/savepoint-disposal/12", 400),
        ("GET", f"/{{running}}/vertices/{UNKNOWN}", 404),
        ("GET", "/{running}/vertices/12", 400),
        ("GET", "/{running}/vertices/{vertex}/subtasks/2", 404),
        ("GET", "/{running}/vertices/{vertex}/subtasks/one", 400),
        ("GET", "/{running}/vertices/{vertex}/subtasks/0/attempts/99", 404),
        ("GET", "/{running}/vertices/{vertex}/subtasks/0/attempts/x", 400),
        ("GET", "/{running}/vertices/{vertex}/subtasks/0/attempts/99/accumulators", 404),
        ("GET", "/{running}/vertices/{vertex}/subtasks/metrics?get=numRecordsIn&agg=median", 400),
        ("GET", "/{running}/vertices/{vertex}/subtasks/metrics?subtasks=one", 400),
        ("GET", "/{running}/checkpoints/details/999999999", 404),
        ("GET", "/{running}/checkpoints/details/last", 400),
        ("GET", f"/{{running}}/savepoints/{UNKNOWN}", 404),
        ("GET", "/{running}/savepoints/12", 400),
        ("GET", f"/{{running}}/rescales/details/{UNKNOWN}", 404),
        ("GET", "/{running}/exceptions?maxExceptions=all", 400),
        ("GET", "/{running}/nothing%20here", 404),
        ("PATCH", "/{running}?mode=never", 400),
        ("PATCH", "/{running}?mode=stop", 400),
        ("PATCH", "/{running}/rescaling", 400),
        ("PATCH", "/{finished}", 409),
        ("POST", "/{finished}/stop", 409),
        ("GET", f"/{{finished}}/vertices/{UNKNOWN}", 404),
    ],
)
def test_o33_a_status_and_a_list_of_errors_for_everything_that_cannot_be_answered(api, jobs, method, path, status):
    vertex = api.get(jobs["running"].path).json()["vertices"][0]["id"]
    paths = {name: job.path.strip("/") for name, job in jobs.items()}
    answer = api.request(method, path.format(vertex=vertex, **paths))
    assert answer.status_code == status
    assert list(answer.json()) == ["errors"]
    assert all(isinstance(text, str) and text for text in answer.json()["errors"])


def test_o33_a_body_that_does_not_parse_is_400(api, jobs):
    for body in (b"{", b"[]", b'"text"'):
        assert api.post(f"{jobs['running'].path}/savepoints", content=body).status_code == 400
    path = f"{jobs['running'].path}/savepoints"
    assert api.post(path, json={"target-directory": "/tmp", "formatType": "ZIP"}).status_code == 400
    assert api.post(path, json={"target-directory": "/tmp", "formatType": []}).status_code == 400
    assert api.post(path.replace("savepoints", "checkpoints"), json={"checkpointType": {}}).status_code == 400
    assert api.post(path, json={"target-directory": "/tmp", "triggerId": "mine"}).status_code == 400


def test_o33_a_body_without_a_length_is_limited_while_it_comes_in(records):
    gateway = create_gateway(records, {"rest.server.max-content-length": "1000"})
    with TestClient(gateway, base_url="http://localhost") as api:
        answer = api.post("/savepoint-disposal", content=iter([b"x" * 600] * 2))
    assert answer.status_code == 413
    assert "at most 1000 bytes" in answer.json()["errors"][0]


def test_o34_unknown_keys_of_a_body_are_ignored_with_a_warning(api, jobs):
    path = f"{jobs['running'].path}/checkpoints"
    answer = api.post(path, json={"checkpointType": "FULL", "colour": "blue", 'a "name"': 1})
    assert answer.status_code == 202
    assert answer.headers["warning"] == '299 - "ignored: colour, a%20%22name%22"'
    assert "warning" not in api.post(path, json={"checkpointType": "FULL"}).headers


def test_o36_an_id_may_be_in_capitals(api, jobs):
    for name in ("running", "finished"):
        job_id = jobs[name].path.rpartition("/")[2]
        assert api.get(f"/jobs/{job_id.upper()}").json()["jid"] == job_id


def test_o40_the_overview_counts_jobs_and_workers(api):
    found = api.get("/overview").json()
    counts = {state: found[f"jobs-{state}"] for state in ("running", "finished", "cancelled", "failed")}
    assert counts == {"running": 1, "finished": 1, "cancelled": 0, "failed": 2}
    assert (found["taskmanagers"], found["flink-version"]) == (1, "2.3.0")
    assert 0 <= found["slots-available"] <= found["slots-total"]


@pytest.mark.parametrize(
    ("key", "feature", "method", "path"),
    [
        ("web.cancel.enable", "web-cancel", "PATCH", "/jobs/{0}"),
        ("web.cancel.enable", "web-cancel", "GET", "/jobs/{0}/yarn-cancel"),
        ("web.cancel.enable", "web-cancel", "POST", "/applications/{0}/cancel"),
        ("web.rescale.enable", "web-rescale", "PATCH", "/jobs/{0}/rescaling?parallelism=1"),
        ("web.rescale.enable", "web-rescale", "PUT", "/v1/jobs/{0}/resource-requirements"),
    ],
)
def test_o41_what_the_service_switches_off_is_rejected_for_every_driver(records, jobs, key, feature, method, path):
    job_id = jobs["running"].path.rpartition("/")[2]
    with TestClient(create_gateway(records, {key: "false"}), base_url="http://localhost") as api:
        answer = api.request(method, path.format(job_id))
        assert answer.status_code == 403
        assert key in answer.json()["errors"][0]
        assert api.get("/config").json()["features"][feature] is False
        assert api.get(f"/jobs/{job_id}/status").json() == {"status": "RUNNING"}


def test_o41_a_driver_has_switches_of_its_own():
    with pytest.raises(RestError, match=r"web\.cancel\.enable"):
        check_switches("PATCH", f"/jobs/{UNKNOWN}", {"web.cancel.enable": "false"})
    check_switches("GET", f"/jobs/{UNKNOWN}", {"web.cancel.enable": "false"})
    with pytest.raises(RestError, match=r"web\.cancel\.enable"):
        check_switches("HEAD", f"/jobs/{UNKNOWN}/yarn-cancel", {"web.cancel.enable": "false"})


def test_a_range_of_subtasks_ends_at_the_last_one():
    assert chosen_subtasks("1-9999999999,7", 3) == [1, 2]


def test_o42_a_job_that_has_ended_keeps_the_counts_of_its_tasks_in_the_list(api):
    found = by_name(api.get("/jobs/overview").json()["jobs"])
    for name, state in (("running", "running"), ("finished", "finished")):
        tasks = found[name]["tasks"]
        assert (tasks["total"], tasks[state]) == (4, 4)
        assert (found[name]["jobType"], found[name]["schedulerType"]) == ("STREAMING", "Adaptive")
    assert found["failed"]["tasks"]["failed"] == 2
    assert {"id": found["failed"]["jid"], "status": "FAILED"} in api.get("/jobs").json()["jobs"]


def test_o43_a_job_that_was_lost_has_failed_and_every_page_about_it_answers(api):
    found = by_name(api.get("/jobs/overview").json()["jobs"])["killed"]
    assert (found["state"], found["schedulerType"], found["tasks"]["total"]) == ("FAILED", None, 0)
    details = api.get(f"/jobs/{KILLED}").json()
    assert set(details["timestamps"]) >= {"RUNNING", "FAILED", "CANCELLING"}
    assert sum(details["status-counts"].values()) == 0
    for rest in ("plan", "status", "accumulators", "execution-result"):
        assert api.get(f"/jobs/{KILLED}/{rest}").status_code == 200, rest
    (entry,) = api.get(f"/jobs/{KILLED}/exceptions").json()["exceptionHistory"]["entries"]
    assert "killed" in entry["stacktrace"]
    application = api.get(f"/applications/{KILLED}").json()
    assert (application["id"], application["status"], application["jobs"]) == (KILLED, "FAILED", [found])
    (entry,) = api.get(f"/applications/{KILLED}/exceptions").json()["exceptionHistory"]["entries"]
    assert entry["jobId"] == KILLED


def test_o45_a_job_is_an_application_with_the_same_id(api, jobs):
    found = by_name(api.get("/applications/overview").json()["applications"])
    assert found["SingleJobApplication(running)"]["jobs"] == {"RUNNING": 1}
    assert found["SingleJobApplication(failed)"]["status"] == "FAILED"
    for job in jobs.values():
        application = api.get(job.path.replace("jobs", "applications")).json()
        assert [f"/jobs/{one['jid']}" for one in application["jobs"]] == [job.path]


def test_o46_a_log_url_is_the_page_of_the_job(api, jobs):
    worker = api.get("/taskmanagers").json()["taskmanagers"][0]["id"]
    for rest in ("jobmanager", f"taskmanagers/{worker}"):
        url = api.get(f"{jobs['running'].path}/{rest}/log-url").json()["url"]
        assert url == f"http://localhost/#{jobs['running'].path}/log"


def test_o48_metrics_over_the_workers_of_all_drivers(api, records, jobs, tmp_path):
    assert {"id": "Status.JVM.Memory.Heap.Used"} in api.get("/taskmanagers/metrics").json()
    (found,) = api.get("/taskmanagers/metrics?get=Status.JVM.Memory.Heap.Used&agg=min,max").json()
    assert found["min"] == found["max"] > 0
    assert api.get("/taskmanagers/metrics?get=Status.JVM.Memory.Heap.Used&taskmanagers=nobody").json() == []
    with TestClient(create_gateway(JobRecords(tmp_path)), base_url="http://localhost") as nothing:
        assert nothing.get("/taskmanagers/metrics").json() == []


def test_o138_metrics_of_a_job_that_has_ended_can_be_asked_for_as_of_a_running_one(api, jobs):
    path = jobs["finished"].path
    vertex = api.get(path).json()["vertices"][1]["id"]
    below = f"{path}/vertices/{vertex}"
    assert {"id": "numRecordsIn"} in api.get(f"{below}/subtasks/0/metrics").json()
    (sums,) = api.get(f"{below}/subtasks/metrics?get=numRecordsIn&agg=sum").json()
    assert sums == {"id": "numRecordsIn", "sum": 200.0}
    (first,) = api.get(f"{below}/subtasks/metrics?get=numRecordsIn&subtasks=0&agg=sum").json()
    (value,) = api.get(f"{below}/subtasks/0/metrics?get=numRecordsIn").json()
    assert float(value["value"]) == first["sum"]
    assert api.get(f"{below}/jm-operator-metrics").json() == []
