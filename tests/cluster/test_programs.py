"""Uploaded programs: plans, entry points, arguments."""

import zipfile

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from penstock.cluster.detached_program import Started
from penstock.cluster.program_store import ProgramStore, entry_points
from penstock.cluster.rest.programs import program_routes
from penstock.cluster.rest.responses import RestError, error_response

JOB = """
import sys
from penstock.connectors import DiscardingSink
from penstock.datastream import StreamExecutionEnvironment

def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_sequence(1, 10).map(lambda n: n + 1).name(sys.argv[1])
    numbers.key_by(lambda n: n % 2).sum().sink_to(DiscardingSink())
    env.execute("planned")

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def started():
    """The command lines of the programs that were started."""
    return []


@pytest.fixture
def api(tmp_path, started):
    def run(arguments, log):
        started.append(arguments)
        log.touch()
        return Started(1, "0" * 32, None, log)

    routes = program_routes(ProgramStore(tmp_path / "programs"), run, lambda: "http://localhost")
    app = Starlette(routes=routes, exception_handlers={RestError: error_response})
    with TestClient(app, base_url="http://localhost") as client:
        yield client


def upload(api, name, content):
    answer = api.post("/jars/upload", files={"jarfile": (name, content)})
    return answer.json()["filename"].rpartition("/")[2]


def test_o82_the_plan_of_a_program_without_running_it(api, started):
    program = upload(api, "job.py", JOB.encode())
    answer = api.post(f"/jars/{program}/plan", json={"programArgs": "'plus one'", "parallelism": 3})
    plan = answer.json()["plan"]
    assert (plan["name"], plan["type"]) == ("planned", "STREAMING")
    assert [node["parallelism"] for node in plan["nodes"]] == [3, 3]
    assert "plus one" in plan["nodes"][0]["description"]
    assert plan["nodes"][1]["inputs"][0]["ship_strategy"] == "HASH"
    assert started == []


def test_o82_a_program_that_fails_before_it_has_a_job_is_400_with_its_traceback(api):
    program = upload(api, "job.py", b"raise KeyError('no such thing')")
    answer = api.post(f"/jars/{program}/plan")
    assert answer.status_code == 400
    assert "no such thing" in answer.json()["errors"][0]


def test_o82_run_application_answers_202_with_the_id_of_the_application(api):
    program = upload(api, "job.py", JOB.encode())
    answer = api.post(f"/jars/{program}/run-application", json={})
    assert (answer.status_code, answer.json()) == (202, {"applicationid": "0" * 32})


def test_o82_the_body_of_run_becomes_a_command_line(api, started):
    program = upload(api, "job.py", JOB.encode())
    body = {
        "entryClass": "pkg.job:main",
        "parallelism": "2",
        "savepointPath": "/savepoints/1",
        "allowNonRestoredState": True,
        "flinkConfiguration": {"a.key": "b"},
        "jobId": "f" * 32,
        "programArgsList": ["--x", "1"],
    }
    assert api.post(f"/jars/{program}/run", json=body).status_code == 200
    (arguments,) = started
    assert arguments[-2:] == ["--x", "1"]
    assert arguments[arguments.index("--entry") + 1] == "pkg.job:main"
    assert arguments[arguments.index("--from-savepoint") + 1] == "/savepoints/1"
    assert "--allow-non-restored-state" in arguments
    assert {"a.key=b", f"pipeline.jobid={'f' * 32}"} <= set(arguments)
    assert api.post(f"/jars/{program}/run", json={"jobId": "me"}).status_code == 400


def test_o83_an_entry_of_an_archive_is_a_module_or_a_function(api, tmp_path):
    archive = tmp_path / "jobs.zip"
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("pkg/__init__.py", "")
        content.writestr("pkg/job.py", JOB)
    assert entry_points(archive) == ["pkg.job:main"]
    program = upload(api, "jobs.zip", archive.read_bytes())
    assert api.get("/jars").json()["files"][0]["entry"] == [{"name": "pkg.job:main", "description": None}]
    for entry in ("pkg.job:main", "pkg.job"):
        answer = api.post(f"/jars/{program}/plan", json={"entryClass": entry, "programArgsList": ["x"]})
        assert answer.json()["plan"]["name"] == "planned", entry
    missing = api.post(f"/jars/{program}/plan", json={"entryClass": "pkg.other:main"})
    assert "no module 'pkg.other'" in missing.json()["errors"][0]


def test_o82_what_the_body_does_not_say_is_in_the_query(api, started):
    program = upload(api, "job.py", JOB.encode())
    query = "parallelism=3&programArg=x&entry-class=job&savepointPath=/s/1&allowNonRestoredState=true"
    body = {"parallelism": None, "programArgs": None, "entryClass": "", "allowNonRestoredState": None}
    assert api.post(f"/jars/{program}/run?{query}", json=body).status_code == 200
    (arguments,) = started
    assert arguments[arguments.index("--parallelism") + 1] == "3"
    assert arguments[arguments.index("--entry") + 1] == "job"
    assert arguments[arguments.index("--from-savepoint") + 1] == "/s/1"
    assert "--allow-non-restored-state" in arguments
    assert arguments[-1] == "x"
    assert api.post(f"/jars/{program}/run?parallelism=many").status_code == 400


def test_o81_directories_in_which_plans_are_made_are_not_programs(api, tmp_path):
    program = upload(api, "job.py", JOB.encode())
    (tmp_path / "programs" / "tmp123").mkdir()
    assert [each["id"] for each in api.get("/jars").json()["files"]] == [program]
