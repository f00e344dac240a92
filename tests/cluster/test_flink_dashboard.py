"""Flink's own dashboard works with the service: it shows what Flink's API answers where the manual is silent."""

import json
import urllib.request
from uuid import uuid4

import pytest
from tests.cluster.flink_dashboard import flink_dashboard
from tests.cluster.live_site import HOSTILE, needs_browser

from penstock.cluster.detached_program import Started
from penstock.cluster.gateway import create_gateway
from penstock.cluster.program_store import ProgramStore
from penstock.cluster.rest.programs import program_routes
from penstock.cluster.rest_server import RestServer

PROGRAM = """
from penstock.connectors import DiscardingSink
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 10).key_by(lambda n: n % 2).sum().name("planned total").sink_to(DiscardingSink())
env.execute("planned")
"""
OF_JOB = {
    "overview": "count -> nothing",
    "timeline": "Vertex TimeLine",
    "exceptions": "Root Exception",
    "checkpoints": "Triggered",
    "configuration": "Object reuse mode",
    "dataskew": "Data Skew Percentage",
    "rescales": "Rescales",
}
OF_VERTEX = {
    "detail": "Records Received",
    "subtasks": "Aggregated Metrics",
    "taskmanagers": "localhost",
    "watermarks": "Datetime of Watermark",
    "accumulators": "SubTask Accumulators",
    "backpressure": "Back Pressure Status",
    "metrics": "Add Metric",
    "flamegraph": "currently disabled",
}
OF_WORKER = {
    "metrics": "Framework Heap",
    "logs": "",
    "stdout": "",
    "log-list": "Log Name",
    "thread-dump": "Id=",
    "profiler": "Profiling Mode",
}
OF_MANAGER = {**OF_WORKER, "metrics": "JVM Heap", "config": "Classpath"}


@pytest.fixture(scope="module")
def flink(site):
    with flink_dashboard(site.url) as dashboard:
        yield dashboard


@pytest.fixture
def submitting(site, tmp_path):
    """A service that knows one program and is said to start a job that runs already; and what it is to start."""
    store, started = ProgramStore(tmp_path / "programs"), []
    store.directory.mkdir()
    (store.directory / f"{uuid4()}_planned.py").write_text(PROGRAM, encoding="utf-8")

    def run(arguments, log):
        started.append(arguments)
        log.touch()
        return Started(1, str(site.clients[HOSTILE].get_job_id()), None, log)

    routes = program_routes(store, run, lambda: "http://localhost")
    gateway = create_gateway(site.records, {"web.submit.enable": "true"}, extra_routes=routes)
    server = RestServer.on_port(gateway, "127.0.0.1", "0")
    with flink_dashboard(server.address) as dashboard:
        yield dashboard, started
    server.close()


def get(site, path):
    with urllib.request.urlopen(site.url + path, timeout=60) as answer:
        return json.load(answer)


def look_at(page, flink, path, expected):
    """Open a page within the dashboard; no request may fail, and no script."""
    flink.failures.clear()
    if not (page.run("location.href") or "").startswith(flink.url):
        page.open(flink.url)
        page.wait_for_text("Running Applications")
    page.run(f"location.hash = {json.dumps('#' + path)}")
    page.wait_for_text(expected)
    assert flink.failures == [], path
    assert page.script_errors() == [], path


@needs_browser
def test_o163_lists_name_the_jobs_as_they_are(page, site, flink):
    for path in ("/overview", "/application/running", "/job/running"):
        look_at(page, flink, path, HOSTILE)
    for path in ("/application/completed", "/job/completed"):
        look_at(page, flink, path, "bad")
    assert page.run("document.title") != "owned"


@needs_browser
def test_o163_every_page_of_a_running_job(page, site, flink):
    job = f"/job/running/{site.clients[HOSTILE].get_job_id()}"
    for tab, expected in OF_JOB.items():
        look_at(page, flink, f"{job}/{tab}", expected)


@needs_browser
def test_o163_every_page_of_a_failed_job(page, site, flink):
    job = site.clients["bad"].get_job_id()
    look_at(page, flink, f"/job/completed/{job}/overview", "check")
    look_at(page, flink, f"/job/completed/{job}/exceptions", "order 17 has no customer")
    look_at(page, flink, f"/application/completed/{job}/exceptions", "order 17 has no customer")
    look_at(page, flink, f"/job/completed/{job}/timeline", "FAILED")
    look_at(page, flink, f"/job/completed/{job}/checkpoints", "Triggered")


@needs_browser
def test_o163_every_page_of_a_vertex(page, site, flink):
    job = site.clients[HOSTILE].get_job_id()
    vertex = get(site, f"/jobs/{job}")["vertices"][1]["id"]
    for tab, expected in OF_VERTEX.items():
        look_at(page, flink, f"/job/running/{job}/overview/{vertex}/{tab}", expected)


@needs_browser
def test_o163_every_page_of_workers_and_of_the_service(page, site, flink):
    worker = get(site, "/taskmanagers")["taskmanagers"][0]["id"]
    look_at(page, flink, "/task-manager", worker)
    for tab, expected in OF_WORKER.items():
        look_at(page, flink, f"/task-manager/{worker}/{tab}", expected)
    for tab, expected in OF_MANAGER.items():
        look_at(page, flink, f"/job-manager/{'log' if tab == 'log-list' else tab}", expected)


@needs_browser
def test_o163_the_submit_page_shows_the_plan_of_a_program_and_starts_it(page, submitting):
    flink, started = submitting
    look_at(page, flink, "/submit", "planned.py")
    page.run("[...document.querySelectorAll('tr')].find((row) => row.innerText.includes('planned.py')).click()")
    page.click("Show Plan")
    page.wait_for_text("HASH")  # this page shows no names of tasks, as with Flink
    page.wait_for("document.querySelectorAll('.ant-drawer .node').length >= 2")
    assert started == []
    page.run("document.querySelector('.ant-drawer-mask')?.click()")
    page.click("Submit", within="form")
    page.wait_for_text(HOSTILE)
    assert flink.failures == []
    assert page.script_errors() == []
    ((*_, program),) = started
    assert program.endswith("_planned.py")


@needs_browser
def test_o163_the_cancel_button_ends_a_job(page, site, flink):
    client = site.clients["counts"]
    look_at(page, flink, f"/job/running/{client.get_job_id()}/overview", "Cancel Job")
    page.click("Cancel Job")
    page.click("Yes", within=".ant-popover")
    page.wait_for_text("CANCELED")
    assert flink.failures == []
    assert client.get_job_status().result().is_terminal_state()
