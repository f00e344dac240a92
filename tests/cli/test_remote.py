"""Commands that speak to a service: -m."""

import pytest

from penstock.cli.command_line import RunCommand
from penstock.cli.job_records import JobRecords
from penstock.cli.job_server import JobServer
from penstock.cli.main import main
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
