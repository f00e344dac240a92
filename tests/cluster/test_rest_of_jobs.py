"""Rules for the answers about one job, and for the operations on it, asked through the gateway."""

import json
import re

import pytest
from starlette.testclient import TestClient
from tests.cluster.driven_jobs import drive, eventually, reject_large

from penstock.cli.job_records import JobRecords
from penstock.cluster.gateway import create_gateway
from penstock.cluster.program_store import ProgramStore
from penstock.cluster.rest.programs import program_routes
from penstock.common import JobStatus

TASK_STATES = {
    "CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED",
    "RECONCILING",
}  # fmt: skip


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return JobRecords(tmp_path_factory.mktemp("jobs"))


@pytest.fixture(scope="module")
def api(records, tmp_path_factory):
    store = ProgramStore(tmp_path_factory.mktemp("programs"))
    routes = program_routes(store, lambda arguments, log: pytest.fail("nothing is to be started"), lambda: "http://a")
    with TestClient(create_gateway(records, extra_routes=routes), base_url="http://localhost") as client:
        yield client


@pytest.fixture(scope="module")
def running(records, api):
    """The path of a job that has read something."""
    job = drive(records, "running")
    eventually(lambda: api.get(job.path).json()["vertices"][1]["metrics"]["read-records"] > 0)
    yield job.path
    job.end()


@pytest.fixture(scope="module")
def failed(records):
    job = drive(records, "failed", check=reject_large)
    job.client.get_job_execution_result().exception()
    job.end()
    return job.path


@pytest.fixture
def short_lived(records):
    """A job for a test that ends it."""
    job = drive(records, "short-lived")
    yield job
    job.end()


@pytest.fixture(scope="module")
def details(api, running):
    return api.get(running).json()


@pytest.fixture(scope="module")
def below(running, details):
    """The paths of the source task and of the one behind it."""
    return [f"{running}/vertices/{vertex['id']}" for vertex in details["vertices"]]


def completed(api, path):
    """The result of an operation, when there is one."""
    return eventually(lambda: api.get(path).json()["operation"])


# -- what is known ----------------------------------------------------------------------------------------------------


def test_o50_status_counts_are_of_tasks_and_task_counts_of_subtasks(details):
    assert (details["state"], details["end-time"], details["maxParallelism"]) == ("RUNNING", -1, -1)
    assert set(details["timestamps"]) == {status.name for status in JobStatus}
    assert (details["timestamps"]["FAILED"], details["timestamps"]["RUNNING"] > 0) == (0, True)
    assert set(details["status-counts"]) == TASK_STATES
    assert details["status-counts"]["RUNNING"] == 2
    assert [vertex["tasks"]["RUNNING"] for vertex in details["vertices"]] == [2, 2]


def test_o51_tasks_are_in_the_order_of_the_data_and_sources_read_nothing(details):
    source, total = details["vertices"]
    assert source["name"].startswith("Source: numbers -> ")
    assert source["name"].endswith(" -> check <b>")
    assert source["metrics"]["read-records"] == 0
    assert total["metrics"]["write-records"] == 0
    assert source["metrics"]["write-records"] == total["metrics"]["read-records"] > 0


def test_o52_the_plan_has_a_node_for_each_task_and_names_are_text(api, running, details):
    plan = api.get(f"{running}/plan").json()["plan"]
    assert plan == details["plan"]
    source, total = plan["nodes"]
    assert "check &lt;b&gt;" in source["description"]
    assert "inputs" not in source
    assert [(each["id"], each["ship_strategy"]) for each in total["inputs"]] == [(source["id"], "HASH")]


def test_o53_a_result_is_there_when_the_job_has_ended(api, running, failed):
    assert api.get(f"{running}/status").json() == {"status": "RUNNING"}
    assert api.get(f"{running}/execution-result").json() == {"status": {"id": "IN_PROGRESS"}}
    result = api.get(f"{failed}/execution-result").json()
    assert result["status"] == {"id": "COMPLETED"}
    assert result["job-execution-result"]["application-status"] == "FAILED"
    assert "bad record" in result["job-execution-result"]["failure-cause"]["stack-trace"]


def test_o54_a_task_has_its_subtasks_and_their_aggregates(api, below):
    vertex = api.get(below[1]).json()
    assert [subtask["subtask"] for subtask in vertex["subtasks"]] == [0, 1]
    for subtask in vertex["subtasks"]:
        assert subtask["start_time"] == subtask["start-time"] > 0
        assert (subtask["status"], subtask["attempt"]) == ("RUNNING", 0)
    records = [subtask["metrics"]["read-records"] for subtask in vertex["subtasks"]]
    spread = vertex["aggregated"]["metrics"]["read-records"]
    assert (spread["sum"], spread["min"], spread["max"]) == (sum(records), min(records), max(records))
    assert all(isinstance(value, int) for each in vertex["aggregated"]["metrics"].values() for value in each.values())


def test_o55_times_workers_and_accumulators_of_a_task(api, below):
    for path in below:
        times = api.get(f"{path}/subtasktimes").json()["subtasks"]
        assert [set(each["timestamps"]) for each in times] == [TASK_STATES] * 2
        (worker,) = api.get(f"{path}/taskmanagers").json()["taskmanagers"]
        assert worker["status-counts"]["RUNNING"] == 2
        assert api.get(f"{path}/accumulators").json()["user-accumulators"] == []
        subtasks = api.get(f"{path}/subtasks/accumulators").json()
        assert (subtasks["parallelism"], len(subtasks["subtasks"])) == (2, 2)
        one = api.get(f"{path}/subtasks/1").json()
        assert one["subtask"] == api.get(f"{path}/subtasks/1/attempts/0").json()["subtask"] == 1


def test_o56_watermarks_are_text_and_a_source_has_none(api, below):
    assert api.get(f"{below[0]}/watermarks").json() == []
    found = api.get(f"{below[1]}/watermarks").json()
    assert [each["id"] for each in found] == ["0.currentInputWatermark", "1.currentInputWatermark"]
    assert all(re.fullmatch(r"-?\d+", each["value"]) for each in found)


def test_o57_the_three_shares_of_a_subtask_are_the_whole(api, below, failed):
    found = api.get(f"{below[0]}/backpressure").json()
    assert found["backpressureLevel"] == found["backpressure-level"]
    for subtask in found["subtasks"]:
        assert subtask["ratio"] + subtask["idleRatio"] + subtask["busyRatio"] == pytest.approx(1.0)
        assert subtask["backpressureLevel"] in {"ok", "low", "high"}
    vertex = api.get(failed).json()["vertices"][0]["id"]
    assert api.get(f"{failed}/vertices/{vertex}/backpressure").json() == {"status": "deprecated"}


def test_o58_flame_graphs_are_switched_off(api, below):
    for query in ("", "?type=FULL", "?type=ON_CPU&subtaskindex=0"):
        assert api.get(f"{below[0]}/flamegraph{query}").json() == {"endTimestamp": -2}


def test_o59_metrics_of_coordinators_are_a_list(api, below):
    assert api.get(f"{below[0]}/jm-operator-metrics").json() == []


def test_o60_names_of_a_task_have_the_subtask_in_front(api, running, below):
    names = [metric["id"] for metric in api.get(f"{below[1]}/metrics").json()]
    assert {"0.numRecordsIn", "1.numRecordsIn"} <= set(names)
    assert {"id": "numRecordsIn"} in api.get(f"{below[1]}/subtasks/1/metrics").json()
    assert {"id": "numRestarts"} in api.get(f"{running}/metrics").json()
    assert api.get("/jobmanager/metrics").json()


def test_o61_unknown_names_are_left_out_and_o62_values_are_text(api, below, running):
    (found,) = api.get(f"{running}/metrics?get=numRestarts,nothing").json()
    assert found == {"id": "numRestarts", "value": "0"}
    values = api.get(f"{below[1]}/subtasks/0/metrics?get=isBackPressured,numRecordsInPerSecond").json()
    kinds = {each["id"]: each["value"] for each in values}
    assert kinds["isBackPressured"] in {"true", "false"}
    assert isinstance(kinds["numRecordsInPerSecond"], str)


def test_o63_truth_values_have_no_aggregate(api, below):
    path = f"{below[1]}/subtasks/metrics"
    assert api.get(f"{path}?get=isBackPressured").json() == []
    (found,) = api.get(f"{path}?get=numRecordsIn").json()
    assert set(found) == {"id", "min", "max", "avg", "sum", "skew"}


def test_o64_names_of_operators_are_made_safe(api, below):
    names = [metric["id"] for metric in api.get(f"{below[0]}/metrics").json()]
    assert "0.Source__numbers.numRecordsIn" in names
    assert all(re.fullmatch(r"[\w.]+", name) for name in names)


def test_o35_percentiles_without_samples_are_text(api, running):
    text = api.get(f"{running}/checkpoints").text
    summary = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))["summary"]
    assert summary["alignment_buffered"]["p50"] == "NaN"


def test_o65_checkpoints_are_counted_and_the_newest_comes_first(api, running):
    found = api.get(f"{running}/checkpoints").json()
    counts, history = found["counts"], found["history"]
    assert counts["total"] == counts["completed"] + counts["failed"] + counts["in_progress"]
    numbers = [checkpoint["id"] for checkpoint in history]
    assert numbers == sorted(numbers, reverse=True)
    assert 1 <= len(numbers) <= 10
    assert found["latest"]["completed"]["id"] >= numbers[0]
    assert (found["latest"]["restored"], found["latest"]["savepoint"]) == (None, None)


def test_o67_details_of_a_checkpoint_are_by_task_and_by_subtask(api, failed):
    last = api.get(f"{failed}/checkpoints").json()["latest"]["completed"]["id"]
    found = api.get(f"{failed}/checkpoints/details/{last}").json()
    vertices = [vertex["id"] for vertex in api.get(failed).json()["vertices"]]
    assert sorted(found["tasks"]) == sorted(vertices)
    of_task = api.get(f"{failed}/checkpoints/details/{last}/subtasks/{vertices[0]}").json()
    assert [subtask["index"] for subtask in of_task["subtasks"]] == [0, 1]
    assert set(of_task["summary"]["checkpoint_duration"]) == {"sync", "async"}


def test_o68_the_settings_of_checkpoints_are_those_in_force(api, running):
    found = api.get(f"{running}/checkpoints/config").json()
    assert (found["mode"], found["max_concurrent"]) == ("exactly_once", 1)
    assert found["externalization"] == {"enabled": False, "delete_on_cancellation": False}


def test_o70_parameters_of_the_job_are_shown_without_secrets(api, running):
    found = api.get(f"{running}/config").json()["execution-config"]
    assert found["user-config"] == {"password": "******", "threshold": "17"}
    assert (found["job-parallelism"], found["object-reuse-mode"]) == (2, False)


def test_o71_an_exception_names_the_task_and_the_users_error(api, failed):
    (entry,) = api.get(f"{failed}/exceptions").json()["exceptionHistory"]["entries"]
    assert "bad record" in entry["stacktrace"]
    assert re.search(r"\((1|2)/2\) - execution #0", entry["taskName"])
    assert {"endpoint", "taskManagerId"} <= set(entry)
    assert api.get(f"{failed}/exceptions?maxExceptions=0").status_code == 200


# -- operations -------------------------------------------------------------------------------------------------------


def test_o72_a_failed_savepoint_is_completed_with_the_cause(api, running, tmp_path):
    (tmp_path / "file").write_text("no directory")
    body = {"target-directory": str(tmp_path / "file"), "formatType": "NATIVE"}
    answer = api.post(f"{running}/savepoints", json=body)
    assert answer.status_code == 202
    path = f"{running}/savepoints/{answer.json()['request-id']}"
    assert set(completed(api, path)["failure-cause"]) == {"class", "stack-trace", "serialized-throwable"}
    assert api.get(path).json()["status"] == {"id": "COMPLETED"}
    assert api.get(f"{running}/status").json() == {"status": "RUNNING"}


def test_o74_without_a_directory_there_is_no_savepoint_and_the_job_runs(api, running):
    answer = api.post(f"{running}/savepoints", json={"cancel-job": True})
    assert answer.status_code == 400
    assert "execution.checkpointing.savepoint-dir" in answer.json()["errors"][0]
    assert api.post(f"{running}/stop", json={"drain": False}).status_code == 400
    assert api.get(f"{running}/status").json() == {"status": "RUNNING"}


def test_o75_a_job_that_was_stopped_has_finished_when_its_savepoint_is_told(api, short_lived, tmp_path):
    answer = api.post(f"{short_lived.path}/stop", json={"targetDirectory": str(tmp_path)})
    assert answer.status_code == 202
    location = completed(api, f"{short_lived.path}/savepoints/{answer.json()['request-id']}")["location"]
    assert location.startswith(f"file:{tmp_path}")
    assert short_lived.client.get_job_status().result() is JobStatus.FINISHED


def test_o74_a_job_is_cancelled_after_its_savepoint(api, short_lived, tmp_path):
    body = {"target-directory": str(tmp_path), "cancel-job": True}
    trigger = api.post(f"{short_lived.path}/savepoints", json=body).json()["request-id"]
    assert "location" in completed(api, f"{short_lived.path}/savepoints/{trigger}")
    eventually(lambda: short_lived.client.get_job_status().result() is JobStatus.CANCELED)


@pytest.mark.parametrize("button", ["yarn-cancel", "yarn-stop"])
def test_o76_the_buttons_of_flinks_dashboard_cancel(api, short_lived, button):
    answer = api.get(f"{short_lived.path}/{button}", headers={"sec-fetch-site": "same-origin"})
    assert (answer.status_code, answer.json()) == (202, {})
    eventually(lambda: short_lived.client.get_job_status().result() is JobStatus.CANCELED)


def test_o45_an_application_is_cancelled_with_its_job(api, short_lived):
    answer = api.post(f"{short_lived.path.replace('jobs', 'applications')}/cancel")
    assert (answer.status_code, answer.json()) == (202, {})
    eventually(lambda: short_lived.client.get_job_status().result() is JobStatus.CANCELED)


# -- programs ---------------------------------------------------------------------------------------------------------


def test_o80_exactly_one_program_is_uploaded_under_a_name_of_ours(api):
    answer = api.post("/jars/upload", files={"jarfile": ("../../etc/my job.py", b"pass")})
    assert (answer.status_code, answer.json()["status"]) == (200, "success")
    directory, _, name = answer.json()["filename"].rpartition("/")
    assert re.fullmatch(r"[0-9a-f-]{36}_my_job\.py", name)
    assert "etc" not in directory
    two = [("jarfile", ("a.py", b"")), ("jarfile", ("b.py", b""))]
    for files in (two, {"jarfile": ("job.jar", b"")}, {"jarfile": ("job.txt", b"")}):
        assert api.post("/jars/upload", files=files).status_code == 400
    assert api.post("/jars/upload").status_code == 400


def test_o81_programs_are_listed_and_deleted(api):
    name = api.post("/programs/upload", files={"jarfile": ("job.py", b"pass")}).json()["filename"].rpartition("/")[2]
    listed = {each["id"]: each for each in api.get("/v1/jars").json()["files"]}
    assert (listed[name]["name"], listed[name]["entry"]) == ("job.py", [{"name": "", "description": None}])
    answer = api.delete(f"/jars/{name}")
    assert (answer.status_code, answer.json()) == (200, {})
    assert api.delete(f"/jars/{name}").status_code == 404
    assert api.post(f"/jars/{name}/run").status_code == 404
