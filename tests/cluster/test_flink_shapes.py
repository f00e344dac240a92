"""Every answer has the members of Flink's, of the same kinds.

`flink_shapes.json` describes the answers of a Flink 2.3.0 session cluster with a running and a failed job of two tasks:
a member is "number", "text", "boolean", "null" or several of these; `?` marks one that is not always there, `*` a map
whose keys are ids.
"""

import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from penstock.cluster.job_registry import JobRegistry
from penstock.cluster.monitored_job import now_ms
from penstock.cluster.rest.app import ClusterContext, create_app
from penstock.cluster.rest.process_files import LogFiles
from penstock.cluster.workers import Workers
from penstock.common import Configuration, WatermarkStrategy
from penstock.connectors import DiscardingSink
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster

SHAPES = json.loads((Path(__file__).parent / "flink_shapes.json").read_text(encoding="utf-8"))
OURS = {"/jobmanager/environment": {"python"}, "/overview": {"penstock-version"}}
"""Members that Flink's answers do not have."""


def differences(answer, shape, where=""):
    """What a client made for Flink would miss, or not be able to read."""
    if isinstance(shape, dict):
        yield from differences_of_objects(answer, shape, where)
    elif isinstance(shape, list):
        if not isinstance(answer, list):
            yield f"{where}: {answer!r} instead of a list"
        for element in answer if shape else []:
            yield from differences(element, shape[0], f"{where}[]")
    elif kind_of(answer) not in shape.split("|") and not is_percentile(answer, where):
        yield f"{where}: {answer!r} instead of {shape}"


def differences_of_objects(answer, shape, where):
    if not isinstance(answer, dict):
        yield f"{where}: {answer!r} instead of an object"
        return
    if "*" in shape:
        for key, value in answer.items():
            yield from differences(value, shape["*"], f"{where}.{key}")
        return
    for name, inner in shape.items():
        if name.rstrip("?") in answer:
            yield from differences(answer[name.rstrip("?")], inner, f"{where}.{name.rstrip('?')}")
        elif not name.endswith("?"):
            yield f"{where}.{name} is missing"
    known = {name.rstrip("?") for name in shape}
    allowed = next((more for path, more in OURS.items() if where.endswith(path)), set())
    if shape:
        yield from (f"{where}.{name} is not in Flink's answer" for name in answer.keys() - known - allowed)


def is_percentile(answer, where):
    """Percentiles are a number, or the text NaN without samples."""
    return answer == "NaN" or (where.rpartition(".")[2].startswith("p") and kind_of(answer) == "number")


def kind_of(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, (int, float)) else "text"


def job(*, failing):
    env = StreamExecutionEnvironment(
        Configuration().set_string("restart-strategy.type", "none"), executor=MiniCluster(max_records=10)
    )
    env.set_parallelism(2)
    env.get_config().set_global_job_parameters({"password": "x", "threshold": "17"})
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value % 2**59)

    def check(value):
        if failing and value % 2**59 > 200:
            raise ValueError("bad record")
        return value

    numbers = env.from_sequence(1, 2**60).map(check).name("check").assign_timestamps_and_watermarks(strategy)
    numbers.key_by(lambda value: value % 3).sum().sink_to(DiscardingSink())
    return env.execute_async("failing" if failing else "running")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """An API over a job that runs and one that has failed."""
    registry = JobRegistry()
    log = tmp_path_factory.mktemp("log") / "driver.log"
    log.write_text("a line\n", encoding="utf-8")
    clients = {"running": job(failing=False), "failed": job(failing=True)}
    for client in clients.values():
        registry.add(client)
    assert clients["failed"].get_job_execution_result().exception() is not None
    clients["running"].trigger_savepoint(str(tmp_path_factory.mktemp("savepoints"))).result()
    context = ClusterContext(registry, Workers.local(2, now_ms()), {"a.key": "b"}, logs=LogFiles(lambda: [log]))
    with TestClient(create_app(context), base_url="http://localhost") as api:
        yield api, {state: str(client.get_job_id()) for state, client in clients.items()}
    clients["running"].cancel().result()


def paths(api, jobs, name):
    """The paths behind a name such as `running /jobs/:id/vertices/:v`."""
    state, _, template = name.rpartition(" ")
    if not state:
        worker = api.get("/taskmanagers").json()["taskmanagers"][0]["id"]
        return [template.replace(":id", worker)]
    path = template.replace(":id", jobs[state])
    if ":n" in path:
        history = api.get(f"/jobs/{jobs[state]}/checkpoints?all=true").json()["history"]
        # That of a savepoint stays, while those of a running job make room for newer ones.
        wanted = [c for c in history if state == "failed" or c["is_savepoint"]]
        path = path.replace(":n", str(wanted[-1]["id"]))
    vertices = [vertex["id"] for vertex in api.get(f"/jobs/{jobs[state]}").json()["vertices"]]
    return [path.replace(":v", vertex) for vertex in vertices] if ":v" in path else [path]


@pytest.mark.parametrize("name", SHAPES)
def test_o164_an_answer_has_the_shape_of_flinks(cluster, name):
    api, jobs = cluster
    for path in paths(api, jobs, name):
        answer = api.get(path)
        assert answer.status_code == 200, path
        assert list(differences(answer.json(), SHAPES[name], name)) == []
