"""The endpoints over jobs of the mini cluster."""

import pytest
from starlette.testclient import TestClient

from penstock.cluster.job_registry import JobRegistry
from penstock.cluster.rest.app import ClusterContext, create_app
from penstock.cluster.workers import Workers
from penstock.datastream import StreamExecutionEnvironment
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


def test_pages_of_other_sites_cannot_cancel_a_job(api, finished_job):
    path = f"/jobs/{finished_job.job_id}/yarn-cancel"
    assert api.get(path, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert api.get(path, headers={"sec-fetch-site": "same-origin"}).status_code == 409


def test_another_host_name_is_refused(api):
    assert api.get("/overview", headers={"host": "evil.example"}).status_code == 403


def test_every_reading_endpoint_answers(api, finished_job):
    job_id, vertex_id = finished_job.job_id, finished_job.graph.vertices[1].operators[0].operator_id
    worker_id = api.get("/taskmanagers").json()["taskmanagers"][0]["id"]
    from penstock.cluster.rest.app import _READING

    last = finished_job.progress.checkpoints.latest_completed.checkpoint_id
    for path in _READING:
        filled = path.format(
            job_id=job_id, vertex_id=vertex_id, subtask=0, attempt=0, checkpoint_id=last, worker_id=worker_id
        )
        assert api.get(filled).status_code == 200, filled
