"""Application mode: a program and its REST API in one process."""

import json

from penstock.cli.main import main
from penstock.cluster.rest_server import RestServer

FINISHES = """
from penstock.connectors import DiscardingSink
from penstock.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2, 3]).sink_to(DiscardingSink())
env.execute_async("an application")
"""
FAILS = FINISHES.replace(".sink_to", ".map(lambda n: n // 0).sink_to")
ASKS = (
    FINISHES
    + """
import json, sys, urllib.request
from pathlib import Path
with urllib.request.urlopen(Path(sys.argv[1]).read_text() + "/jobs/overview") as answer:
    jobs = json.loads(answer.read())["jobs"]
Path(sys.argv[2]).write_text(json.dumps([job["name"] for job in jobs]))
"""
)


def test_o13_an_application_waits_for_its_jobs_and_ends_with_0(program, in_process):
    assert main(["run-application", "--port", "0", str(program(FINISHES))]) == 0


def test_o13_an_application_whose_job_fails_ends_with_1(program, in_process, capsys):
    assert main(["run-application", "--port", "0", str(program(FAILS))]) == 1


def test_o13_an_application_serves_its_own_jobs(program, in_process, tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_JOBS", str(tmp_path / "jobs"))
    on_port = RestServer.on_port
    address, answer = tmp_path / "address", tmp_path / "answer"

    def noting(*arguments):
        server = on_port(*arguments)
        address.write_text(server.address, encoding="utf-8")
        return server

    monkeypatch.setattr(RestServer, "on_port", noting)
    assert main(["run-application", "--port", "0", str(program(ASKS)), str(address), str(answer)]) == 0
    assert json.loads(answer.read_text(encoding="utf-8")) == ["an application"]


def test_o13_a_cluster_needs_the_address_of_its_master(program, capsys):
    assert main(["run-application", "-t", "spark", "--port", "0", str(program(FINISHES))]) == 1
    assert "--master" in capsys.readouterr().err
