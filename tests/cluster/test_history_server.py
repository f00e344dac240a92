"""Jobs that have ended, from their archives."""

import pytest
from starlette.testclient import TestClient

from penstock.cli.command_line import RunCommand
from penstock.cli.job_records import JobRecords
from penstock.cli.job_server import JobServer
from penstock.cluster.history_server import create_history_server
from penstock.common import Configuration
from penstock.connectors import DiscardingSink
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster


@pytest.fixture
def ended_job(tmp_path):
    """The id of a job that has finished; its archive is in the shared directory."""
    server = JobServer(RunCommand("job.py", [], [], "/"), JobRecords(tmp_path / "records"))
    settings = Configuration().set_string("jobmanager.archive.fs.dir", str(tmp_path / "archive"))
    env = StreamExecutionEnvironment(settings, executor=MiniCluster())
    env.from_collection([1, 2, 3]).map(lambda n: n).name("numbers").sink_to(DiscardingSink())
    server.submitting("ended")
    client = env.execute_async("ended")
    server.follow(client)
    client.get_job_execution_result().result()
    server.close()
    return str(client.get_job_id())


@pytest.fixture
def history(tmp_path):
    with TestClient(create_history_server([tmp_path / "archive"]), base_url="http://localhost") as client:
        yield client


def test_o138_an_ended_job_is_listed_and_has_all_its_answers(history, ended_job):
    (job,) = history.get("/jobs/overview").json()["jobs"]
    assert (job["jid"], job["state"], job["name"]) == (ended_job, "FINISHED", "ended")
    assert history.get("/overview").json()["jobs-finished"] == 1
    assert history.get("/applications/overview").json()["applications"][0]["jobs"] == {"FINISHED": 1}
    details = history.get(f"/v1/jobs/{ended_job}").json()
    vertex = details["vertices"][0]["id"]
    for path in (
        "plan",
        "exceptions",
        "checkpoints",
        f"vertices/{vertex}",
        f"vertices/{vertex}/subtasktimes",
        "config",
    ):
        assert history.get(f"/jobs/{ended_job}/{path}").status_code == 200, path
    assert history.get(f"/jobs/{ended_job}/nothing").status_code == 404


def test_o138_the_history_server_offers_no_actions(history):
    features = history.get("/config").json()["features"]
    assert features == {"web-submit": False, "web-cancel": False, "web-rescale": False, "web-history": True}
    assert history.get("/config").json()["refresh-interval"] == 10_000
    assert history.patch(f"/jobs/{'0' * 32}").status_code == 404


def test_o138_a_damaged_archive_is_skipped(history, ended_job, tmp_path):
    (tmp_path / "archive" / ("f" * 32)).write_text("{", encoding="utf-8")
    assert [job["jid"] for job in history.get("/jobs/overview").json()["jobs"]] == [ended_job]
    assert history.get(f"/jobs/{'f' * 32}").status_code == 404
