"""The endpoints over jobs of the mini cluster."""

import time

import pytest
from starlette.testclient import TestClient

from penstock.cluster.job_registry import JobRegistry
from penstock.cluster.rest.app import ClusterContext, create_app
from penstock.cluster.rest.process_files import LogFiles
from penstock.cluster.workers import Workers
from penstock.common import Time, WatermarkStrategy
from penstock.connectors import DiscardingSink
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.testing import MiniCluster


@pytest.fixture
def registry():
    return JobRegistry()


@pytest.fixture
def api(registry):
    context = ClusterContext(registry, Workers.local(2, started=0))
    with TestClient(create_app(context), base_url="http://localhost") as client:
        yield client


@pytest.fixture
def finished_job(registry):
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=10))
    env.set_parallelism(2)
    env.from_sequence(1, 100).name("numbers").key_by(lambda n: n % 5).sum().name("total").print()
    client = env.execute_async("summing")
    client.get_job_execution_result().result()
    return registry.add(client)


def test_an_unknown_job_is_404_with_a_list_of_errors(api):
    answer = api.get("/jobs/" + "0" * 32)
    assert answer.status_code == 404
    assert answer.json() == {"errors": ["Job " + "0" * 32 + " not found"]}


def test_a_malformed_id_is_400(api):
    assert api.get("/jobs/nonsense").status_code == 400


def test_every_path_exists_below_v1_and_unknown_versions_do_not(api):
    assert api.get("/v1/overview").json().keys() == api.get("/overview").json().keys()
    assert api.get("/v2/overview").status_code == 404


def test_details_of_a_job(api, finished_job):
    details = api.get(f"/jobs/{finished_job.job_id}").json()
    assert details["name"] == "summing"
    assert details["state"] == "FINISHED"
    source, total = details["vertices"]
    assert source["metrics"]["read-records"] == 0
    assert source["metrics"]["write-records"] == total["metrics"]["read-records"] == 100
    assert sum(details["status-counts"].values()) == len(details["vertices"])
    assert details["plan"]["nodes"][1]["inputs"][0]["id"] == source["id"]


def test_o76_pages_of_other_sites_cannot_cancel_a_job(api, finished_job):
    path = f"/jobs/{finished_job.job_id}/yarn-cancel"
    assert api.get(path, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert api.get(path, headers={"sec-fetch-site": "same-origin"}).status_code == 409


def test_o152_another_host_name_is_refused(api):
    assert api.get("/overview", headers={"host": "evil.example"}).status_code == 403


def test_every_reading_endpoint_answers(api, finished_job):
    job_id, vertex_id = finished_job.job_id, finished_job.graph.vertices[1].operators[0].operator_id
    worker_id = api.get("/taskmanagers").json()["taskmanagers"][0]["id"]
    from penstock.cluster.rest.app import READING

    last = finished_job.progress.checkpoints.latest_completed.checkpoint_id
    for path in READING:
        if "{rescale_id}" in path:
            continue
        filled = path.format(
            job_id=job_id, vertex_id=vertex_id, subtask=0, attempt=0, checkpoint_id=last, worker_id=worker_id
        )
        assert api.get(filled).status_code == 200, filled


@pytest.fixture
def endless_job(registry):
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=10))
    env.set_parallelism(1)
    env.from_sequence(1, 2**60).key_by(lambda n: n % 3).sum().name("total").uid("total").sink_to(DiscardingSink())
    client = env.execute_async("endless")
    yield registry.add(client)
    client.cancel().result()


def poll(api, path):
    for _ in range(200):
        answer = api.get(path).json()
        if answer["status"]["id"] == "COMPLETED":
            return answer["operation"]
        time.sleep(0.05)
    raise AssertionError(answer)


def test_o69_a_checkpoint_on_demand_is_the_next_batch_that_commits(api, endless_job):
    path = f"/jobs/{endless_job.job_id}/checkpoints"
    answer = api.post(path, json={"checkpointType": "FULL"})
    assert answer.status_code == 202
    assert poll(api, f"{path}/{answer.json()['request-id']}")["checkpointId"] > 0
    assert api.post(path, json={"checkpointType": "LARGE"}).status_code == 400


def test_o73_the_same_trigger_id_is_the_same_operation(api, endless_job, tmp_path):
    path = f"/jobs/{endless_job.job_id}/savepoints"
    body = {"target-directory": str(tmp_path), "triggerId": "ab" * 16}
    assert {api.post(path, json=body).json()["request-id"] for _ in range(3)} == {"ab" * 16}
    location = poll(api, f"{path}/{'ab' * 16}")["location"]
    assert [f"file:{found}" for found in tmp_path.iterdir()] == [location]


def test_o77_a_job_whose_client_is_gone_is_cancelled(api, endless_job):
    path = f"/jobs/{endless_job.job_id}/clientHeartbeat"
    assert api.patch(path, json={"expiredTimestamp": 0}).status_code == 202
    with pytest.raises(Exception, match="was cancelled"):
        endless_job.client.get_job_execution_result().result(30)


def test_o78_a_savepoint_is_disposed_of_and_other_directories_are_not(api, endless_job, tmp_path):
    path = f"/jobs/{endless_job.job_id}/savepoints"
    trigger = api.post(path, json={"target-directory": str(tmp_path)}).json()["request-id"]
    location = poll(api, f"{path}/{trigger}")["location"]
    contents = api.get("/penstock/savepoint", params={"path": location}).json()
    assert "total" in [operator["uid"] for operator in contents["operators"]]
    trigger = api.post("/savepoint-disposal", json={"savepoint-path": location}).json()["request-id"]
    assert poll(api, f"/savepoint-disposal/{trigger}") == {}
    assert list(tmp_path.iterdir()) == []
    trigger = api.post("/savepoint-disposal", json={"savepoint-path": str(tmp_path)}).json()["request-id"]
    assert "failure-cause" in poll(api, f"/savepoint-disposal/{trigger}")
    assert tmp_path.exists()


def test_o79_resource_requirements_that_make_no_sense_are_400(api, endless_job):
    path = f"/jobs/{endless_job.job_id}/resource-requirements"
    now = api.get(path).json()
    assert api.put(path, json={}).status_code == 400
    for lower, upper in ((2, 1), (1, 2**20)):
        wrong = {vertex: {"parallelism": {"lowerBound": lower, "upperBound": upper}} for vertex in now}
        assert api.put(path, json=wrong).status_code == 400


def test_o79_a_rescaling_is_in_the_history(api, endless_job):
    path = f"/jobs/{endless_job.job_id}"
    trigger = api.patch(f"{path}/rescaling?parallelism=2").json()["request-id"]
    assert poll(api, f"{path}/rescaling/{trigger}") == {}
    (entry,) = api.get(f"{path}/rescales/history").json()
    assert (entry["terminalState"], entry["terminatedReason"]) == ("COMPLETED", "SUCCEEDED")
    assert api.get(f"{path}/rescales/overview").json()["rescalesCounts"]["completed"] == 1
    assert api.get(f"{path}/rescales/details/{entry['rescaleUuid']}").json() == entry


def test_o85_the_state_of_one_key_of_a_running_job(api, endless_job):
    state = "sum"
    path = f"/penstock/jobs/{endless_job.job_id}"
    assert api.get(f"{path}/state/nonsense/{state}?key=1").status_code == 404
    assert api.get(f"{path}/state/total/nonsense?key=1").status_code == 404
    assert api.get(f"{path}/state/total/{state}").status_code == 400
    assert api.get(f"{path}/batches").json()["batches"][0]["id"] == 1


def test_o46_logs_are_opened_by_the_names_of_the_list_only(tmp_path):
    (tmp_path / "job.log").write_text("connected to jdbc:postgresql://ann:s3cret@db/orders")
    (tmp_path / "other.txt").write_text("private")
    context = ClusterContext(JobRegistry(), Workers.local(2, started=0))
    context.logs = LogFiles(lambda: list(tmp_path.glob("*.log")))
    with TestClient(create_app(context), base_url="http://localhost") as api:
        assert [log["name"] for log in api.get("/jobmanager/logs").json()["logs"]] == ["job.log"]
        text = api.get("/jobmanager/logs/job.log").text
        assert "connected" in text
        assert "s3cret" not in text
        for name in ("other.txt", "..%2Fother.txt", "%2Fetc%2Fpasswd"):
            assert api.get(f"/jobmanager/logs/{name}").status_code == 404


def test_o98_live_numbers_of_every_task_come_in_one_answer(api, finished_job):
    found = api.get(f"/penstock/jobs/{finished_job.job_id}/live").json()
    source, total = found["vertices"]
    assert (source["source"], source["records-in"], total["records-in"]) == (True, 100, 100)
    assert found["source-records"] == 100
    assert 0 <= total["busy"] <= 1


def test_o100_the_batches_of_a_job_are_listed_from_a_number_on(api, finished_job):
    path = f"/penstock/jobs/{finished_job.job_id}/batches"
    every = api.get(path).json()["batches"]
    assert sum(batch["records"] for batch in every) == 100
    assert all(batch["start"] <= batch["end"] and batch["busy"] for batch in every)
    assert api.get(f"{path}?since={every[0]['id']}").json()["batches"] == every[1:]
    assert api.get(f"{path}?since=x").status_code == 400


def test_o101_splits_have_a_position_and_a_state(api, finished_job):
    found = api.get(f"/penstock/jobs/{finished_job.job_id}/splits").json()["splits"]
    assert {split["source"] for split in found} == {"Source: numbers"}
    assert all(split["state"] in {"FINISHED", "GONE"} and split["offset"] for split in found)


def test_o111_the_lag_of_a_source_is_a_metric_of_its_subtasks_and_in_the_list_of_splits(api, finished_job):
    source = finished_job.graph.source_vertices[0].operators[0].operator_id
    finished_job.progress.pending = {source: {"1..51": 7, "51..101": 5}}
    found = api.get(f"/penstock/jobs/{finished_job.job_id}/splits").json()["splits"]
    assert {split["split"]: split["pending"] for split in found} == {"1..51": 7, "51..101": 5}
    vertex = api.get(f"/jobs/{finished_job.job_id}").json()["vertices"][0]["id"]
    path = f"/jobs/{finished_job.job_id}/vertices/{vertex}/metrics"
    values = api.get(f"{path}?get=0.Source__numbers.pendingRecords,1.Source__numbers.pendingRecords").json()
    assert sorted(float(metric["value"]) for metric in values) == [5, 7]


def test_o71_the_exception_that_ended_a_job_is_in_its_history(api, registry):
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=10))
    env.from_sequence(1, 10).map(lambda n: 1 // (n - 5)).name("divide").sink_to(DiscardingSink())
    client = env.execute_async("failing")
    job = registry.add(client)
    with pytest.raises(Exception, match="divide"):
        client.get_job_execution_result().result(60)
    (entry,) = api.get(f"/jobs/{job.job_id}/exceptions").json()["exceptionHistory"]["entries"]
    assert "ZeroDivisionError" in entry["stacktrace"]


def test_o98_the_last_minutes_are_there_when_the_page_opens(api, finished_job):
    found = api.get(f"/penstock/jobs/{finished_job.job_id}/history").json()
    assert sum(found["records"]) == 100
    assert len({len(found[name]) for name in ("second", "records", "duration", "lag", "state-bytes")}) == 1


def test_o93_the_watermark_of_a_source_is_the_one_it_sends(api, registry):
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=10))
    env.set_parallelism(1)
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda n: n)
    stream = env.from_sequence(1, 2**60).assign_timestamps_and_watermarks(times)
    stream.key_by(lambda n: n % 3).sum().sink_to(DiscardingSink())
    client = env.execute_async("timed")
    job = registry.add(client)
    path = f"/penstock/jobs/{job.job_id}/live"
    try:
        deadline = time.monotonic() + 60
        while (source := api.get(path).json()["vertices"][0])["watermark"] is None:
            assert time.monotonic() < deadline
        assert int(source["watermark"]) > 0
    finally:
        client.cancel().result()


def test_o102_the_state_browser_lists_operators_states_and_keys(api, endless_job):
    path = f"/penstock/jobs/{endless_job.job_id}/state"
    (operator,) = api.get(path).json()["operators"]
    assert operator["name"] == "total"
    (state,) = operator["states"]
    found = api.get(f"{path}/total").json()
    assert [entry["key"] for entry in found["entries"]] == ["0", "1", "2"]
    assert found["complete"]
    assert found["entries"][0]["states"][state["name"]]["value"] > 0


def test_o102_keys_are_searched_and_looked_up(api, endless_job):
    path = f"/penstock/jobs/{endless_job.job_id}/state/total"
    assert [entry["key"] for entry in api.get(f"{path}?search=2").json()["entries"]] == ["2"]
    assert [entry["key"] for entry in api.get(f"{path}?key=1").json()["entries"]] == ["1"]
    assert api.get(f"{path}?key=17").json()["entries"] == []
    some = api.get(f"{path}?limit=1").json()
    assert len(some["entries"]) == 1
    assert not some["complete"]
    assert api.get(f"{path}?limit=x").status_code == 400
    assert api.get(f"/penstock/jobs/{endless_job.job_id}/state/nonsense").status_code == 404


def test_o102_timers_and_windows_of_a_key_are_shown(api, registry):
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=10))
    env.set_parallelism(1)
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda n: n)
    stream = env.from_sequence(1, 2**60).assign_timestamps_and_watermarks(times)
    windows = stream.key_by(lambda n: n % 2).window(TumblingEventTimeWindows.of(Time.days(10_000)))
    windows.reduce(lambda a, b: a + b).name("sums").sink_to(DiscardingSink())
    client = env.execute_async("windows")
    job = registry.add(client)
    try:
        entry = api.get(f"/penstock/jobs/{job.job_id}/state/sums?key=1").json()["entries"][0]
    finally:
        client.cancel().result()
    (state,) = entry["states"].values()
    assert state["kind"].startswith("tumbling event-time windows")
    assert list(state["value"]) == ["0"]  # the start of the window
    assert entry["event-timers"][0]["time"] == str(10_000 * 86_400_000 - 1)
