"""Tokens, roles, the audit log, hidden secrets."""

import logging

import pytest
from starlette.testclient import TestClient

from penstock.cli.command_line import RunCommand
from penstock.cli.job_records import JobRecord, JobRecords
from penstock.cli.job_server import JobServer
from penstock.cli.main import main
from penstock.cluster.gateway import create_gateway
from penstock.cluster.rest.authentication import Role, TokenFile, create_token
from penstock.cluster.session_service import SessionService
from penstock.common import Configuration
from penstock.common.errors import InvalidProgramError
from penstock.connectors import DiscardingSink
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster

JOB = "ab" * 16


@pytest.fixture
def tokens(tmp_path):
    return {role: create_token(tmp_path / "tokens", role.name, role) for role in Role}


@pytest.fixture
def api(tmp_path, tokens):
    records = JobRecords(tmp_path / "jobs")
    ended = {"ended": 3.0, "error": "no route to jdbc:postgresql://ann:s3cret@db/orders"}
    records.write(JobRecord(JOB, "<img onerror=alert(1)>", "FAILED", "job.py", 1, 1.0, "/nowhere", **ended))
    app = create_gateway(records, {"my.password": "s3cret"}, tokens=TokenFile(tmp_path / "tokens"))
    with TestClient(app, base_url="http://localhost") as client:
        yield client


def headers(tokens, role):
    return {"Authorization": f"Bearer {tokens[role]}"}


def test_o151_without_a_token_nothing_is_told_but_health(api):
    answer = api.get("/jobs")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.json()["errors"]
    assert api.get("/jobs", headers={"Authorization": "Bearer nonsense"}).status_code == 401
    assert api.get("/health/live").status_code == 200


def test_o151_roles_decide_what_a_user_may_do(api, tokens):
    path = f"/jobs/{JOB}"
    assert api.get(path, headers=headers(tokens, Role.VIEWER)).status_code == 200
    assert api.patch(path, headers=headers(tokens, Role.VIEWER)).status_code == 403
    assert api.get(f"{path}/yarn-cancel", headers=headers(tokens, Role.VIEWER)).status_code == 403
    assert api.patch(path, headers=headers(tokens, Role.OPERATOR)).status_code == 409  # allowed, but it has ended
    assert api.delete("/cluster", headers=headers(tokens, Role.OPERATOR)).status_code == 403
    assert api.get("/jobmanager/logs", headers=headers(tokens, Role.VIEWER)).status_code == 403


def test_o151_the_token_file_holds_no_token_and_only_its_owner_reads_it(tmp_path, tokens):
    text = (tmp_path / "tokens").read_text()
    assert not any(token in text for token in tokens.values())
    assert (tmp_path / "tokens").stat().st_mode & 0o077 == 0


def test_o151_a_new_user_needs_no_restart(api, tmp_path, capsys):
    assert main(["token", "create", "eve", "--role", "viewer", "--file", str(tmp_path / "tokens")]) == 0
    token = capsys.readouterr().out.strip()
    assert api.get("/jobs", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_o151_a_bad_line_of_the_token_file_is_named(tmp_path):
    (tmp_path / "bad").write_text("ann king sha256:00\n")
    with pytest.raises(InvalidProgramError, match="line 1"):
        TokenFile(tmp_path / "bad")


def test_o155_every_call_that_changes_something_is_logged(api, tokens, caplog):
    with caplog.at_level(logging.INFO, "penstock.audit"):
        api.patch(f"/jobs/{JOB}", headers=headers(tokens, Role.OPERATOR))
        api.delete("/cluster")
        api.get("/jobs", headers=headers(tokens, Role.VIEWER))
    assert [record.getMessage() for record in caplog.records] == [
        f"OPERATOR testclient PATCH /jobs/{JOB} 409",
        "- testclient DELETE /cluster 401",
    ]


def test_o153_a_planted_secret_is_in_no_answer(api, tokens):
    allowed = headers(tokens, Role.ADMIN)
    for path in (
        "/overview", "/config", "/jobs/overview", "/jobmanager/config", "/jobmanager/environment", "/metrics",
        f"/jobs/{JOB}", f"/jobs/{JOB}/exceptions", "/applications/overview",
    ):  # fmt: skip
        answer = api.get(path, headers=allowed)
        assert answer.status_code == 200, path
        assert "s3cret" not in answer.text, path


def test_o84_a_token_is_needed_to_choose_token(tmp_path):
    with pytest.raises(InvalidProgramError, match="token-file"):
        SessionService(tmp_path, JobRecords(tmp_path), {"penstock.security.auth": "token"})


def test_o152_a_request_with_the_origin_of_another_site_changes_nothing(api, tokens):
    allowed = headers(tokens, Role.ADMIN)
    assert api.patch(f"/jobs/{JOB}", headers={**allowed, "Origin": "http://evil.example"}).status_code == 403
    same = api.patch(f"/jobs/{JOB}", headers={**allowed, "Origin": "http://localhost"})
    assert same.status_code != 403


def test_o155_a_body_that_is_too_large_is_413(api, tokens):
    allowed = headers(tokens, Role.ADMIN)
    answer = api.post("/jars/upload", content=b"", headers={**allowed, "Content-Length": str(2**30)})
    assert answer.status_code == 413


def test_o153_records_of_jobs_are_readable_by_their_owner_only(tmp_path):
    records = JobRecords(tmp_path / "private")
    records.write(JobRecord(JOB, "job", "RUNNING", "job.py", 1, 1.0, "/nowhere"))
    assert (tmp_path / "private" / f"{JOB}.json").stat().st_mode & 0o077 == 0


def test_o153_a_planted_secret_is_in_no_answer_of_a_driver_and_not_in_its_archive(tmp_path):
    records = JobRecords(tmp_path / "jobs")
    server = JobServer(RunCommand("job.py", [], ["--password", "s3cret"], "/"), records)
    settings = Configuration().set_string("kafka.sasl.password", "s3cret")
    env = StreamExecutionEnvironment(settings, executor=MiniCluster())
    env.get_config().set_global_job_parameters({"api-key": "s3cret", "url": "http://ann:s3cret@db/"})

    def fail(value):
        raise ValueError("cannot reach postgresql://ann:s3cret@db/orders")

    env.from_collection([1]).map(fail).name("check").sink_to(DiscardingSink())
    server.submitting("leaking")
    client = env.execute_async("leaking")
    server.follow(client)
    assert client.get_job_execution_result().exception() is not None
    server.close()
    archive = (records.archive / str(client.get_job_id())).read_text(encoding="utf-8")
    assert "cannot reach" in archive
    assert "s3cret" not in archive
