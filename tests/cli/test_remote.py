"""Commands that speak to a service: -m."""

import json
import re
import zipfile

import pytest

from penstock.cli.command_line import RunCommand
from penstock.cli.job_records import JobRecords
from penstock.cli.job_server import JobServer
from penstock.cli.main import main
from penstock.cli.remote import RestClient, packed
from penstock.cluster.gateway import create_gateway
from penstock.cluster.rest_server import RestServer
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import DiscardingSink
from penstock.testing import MiniCluster


@pytest.fixture
def service(tmp_path):
    """The address of a service with one job, and the job."""
    records = JobRecords(tmp_path / "jobs")
    driver = JobServer(RunCommand("job.py", [], [], "/"), records)
    env = StreamExecutionEnvironment(executor=MiniCluster(max_records=10))
    env.set_parallelism(1)
    env.from_sequence(1, 2**60).key_by(lambda n: n % 3).sum().sink_to(DiscardingSink())
    driver.submitting("endless")
    client = env.execute_async("endless")
    driver.follow(client)
    server = RestServer.on_port(create_gateway(records), "127.0.0.1", "0")
    yield server.address, client
    client.cancel().result()
    driver.close()
    server.close()


def test_o11_list_and_status_of_a_service(service, capsys):
    address, client = service
    assert main(["list", "-m", address.removeprefix("http://")]) == 0
    assert f"{client.get_job_id()}  RUNNING" in capsys.readouterr().out
    assert main(["status", "-m", address, str(client.get_job_id())[:6]]) == 0
    assert "status    RUNNING" in capsys.readouterr().out


def test_o11_savepoint_rescale_and_stop_through_a_service(service, capsys, tmp_path):
    address, client = service
    job = str(client.get_job_id())
    assert main(["savepoint", "-m", address, job, str(tmp_path / "first")]) == 0
    assert main(["rescale", "-m", address, job, "-p", "2"]) == 0
    assert "runs with parallelism 2" in capsys.readouterr().out
    assert main(["stop", "-m", address, job, "-p", str(tmp_path / "last")]) == 0
    assert client.get_job_status().result().name == "FINISHED"
    assert len(list((tmp_path / "last").iterdir())) == 1


def test_o11_cancel_through_a_service(service, capsys):
    address, client = service
    assert main(["cancel", "-m", address, str(client.get_job_id())]) == 0
    with pytest.raises(Exception, match="was cancelled"):
        client.get_job_execution_result().result(30)


def test_o11_a_service_that_does_not_answer_is_named(capsys):
    assert main(["list", "-m", "127.0.0.1:1"]) == 1
    assert "the service at http://127.0.0.1:1 does not answer" in capsys.readouterr().err


@pytest.fixture
def submitting(monkeypatch):
    """A service that takes programs and runs none: gives what was sent to it."""
    sent = []

    def answer(client, method, path, data, content_type):
        sent.append((method, path, data))
        if path == "/jars/upload":
            name = re.search(rb'filename="([^"]*)"', data)[1].decode()
            return {"filename": f"/service/programs/1_{name}", "status": "success"}
        if path.endswith("/run"):
            return {"jobid": "a" * 32}
        return {"status": "FINISHED"} if path.endswith("/status") else {}

    monkeypatch.setattr(RestClient, "_send", answer)
    return sent


def test_o10_run_sends_every_option_to_the_service(submitting, tmp_path, capsys):
    program, module = tmp_path / "job.py", tmp_path / "helper.py"
    program.write_text("", encoding="utf-8")
    module.write_text("", encoding="utf-8")
    options = ["-p", "3", "-s", "/savepoints/1", "-n", "-D", "a.key=b=c", "--take-over", "--master", "local[3]"]
    code = main(
        ["run", "-m", "host:1", *options, "--py-files", str(module), "--entry", "job:main", str(program), "--x"]
    )
    assert code == 0
    assert f"Job has been submitted with JobID {'a' * 32}" in capsys.readouterr().out
    ((_, path, data),) = [call for call in submitting if call[1].endswith("/run")]
    body = json.loads(data)
    assert path == "/jars/1_job.py/run"
    assert (body["parallelism"], body["savepointPath"], body["allowNonRestoredState"]) == (3, "/savepoints/1", True)
    assert (body["entryClass"], body["programArgsList"]) == ("job:main", ["--x"])
    assert body["flinkConfiguration"] == {
        "a.key": "b=c",
        "spark.master": "local[3]",
        "penstock.lease.take-over": "true",
        "python.files": "/service/programs/1_files-0.zip",
    }


def test_o10_a_client_that_must_not_leave_its_job_sends_heartbeats(submitting, tmp_path):
    program = tmp_path / "job.py"
    program.write_text("", encoding="utf-8")
    states = iter(["RUNNING", "FINISHED"])
    plain = RestClient._send

    def answer(client, method, path, data, content_type):
        found = plain(client, method, path, data, content_type)
        return {"status": next(states)} if path.endswith("/status") else found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RestClient, "_send", answer)
        assert main(["run", "-m", "host:1", "--shutdown-on-attached-exit", str(program)]) == 0
    assert [path for method, path, _ in submitting if method == "PATCH"] == [f"/jobs/{'a' * 32}/clientHeartbeat"]


def test_o10_modules_and_packages_are_uploaded_as_archives(tmp_path):
    package = tmp_path / "helpers"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "single.py").write_text("", encoding="utf-8")
    names = [zipfile.ZipFile(file).namelist() for file in packed([str(package), str(tmp_path / "single.py")])]
    assert names == [["helpers/__init__.py"], ["single.py"]]
