"""`/penstock/...`, which Flink's API lacks: the state of one key, and the contents of savepoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.cluster.rest.responses import RestError, bad_parameter
from penstock.common.errors import PenstockError, StateAccessError
from penstock.runtime.records.serialization import dumps
from penstock.runtime.savepoint.manifest import read_manifest
from penstock.runtime.task.state_scan import ScanAnswer, as_json, key_from_text

if TYPE_CHECKING:
    from penstock.cluster.monitored_job import MonitoredJob
    from penstock.cluster.rest.jobs import Json
    from penstock.common.completable_future import CompletableFuture
    from penstock.runtime.plan.job_vertex import JobVertex

__all__ = ["entries", "savepoint_contents", "state_of_key", "states"]

_ANSWER_SECONDS = 30.0
_ENTRIES = 50
_MOST_ENTRIES = 500


def state_of_key(job: MonitoredJob, operator: str, state: str, key: str | None) -> Json:
    """`GET /penstock/jobs/:jobid/state/:operator/:state?key=K`: a value of a completed checkpoint."""
    if key is None:
        raise RestError(400, "The query parameter key is missing.")
    _, uid, _ = _operator(job, operator)
    try:
        answer = job.life.queries.ask(state, key_from_text(key), uid).result(_ANSWER_SECONDS)
    except TimeoutError:
        raise RestError(503, f"No batch was committed within {_ANSWER_SECONDS:.0f} seconds: try again.") from None
    except StateAccessError as error:
        raise RestError(404, str(error)) from None
    return {
        "operator": operator,
        "state": state,
        "key": key,
        "found": answer.kind is not None,
        "kind": answer.kind,
        "value": as_json(answer.value),
    }


def states(job: MonitoredJob) -> Json:
    """`GET /penstock/jobs/:jobid/state`: the operators with keyed state, and the sizes of their states."""
    found = _answer(job.life.queries.scan())
    return {
        "operators": [
            {
                "id": chained.operator_id,
                "name": chained.name,
                "vertex": vertex.name,
                **found.operators[chained.operator_id],
            }
            for vertex in job.graph.vertices
            for chained in vertex.operators
            if chained.operator_id in found.operators
        ]
    }


def entries(job: MonitoredJob, operator: str, query: Mapping[str, str]) -> Json:
    """`GET /penstock/jobs/:jobid/state/:operator?key=K|search=TEXT&limit=N`: keys, with states and timers."""
    _, operator_id, name = _operator(job, operator)
    limit = query.get("limit", str(_ENTRIES))
    if not limit.isdigit():
        raise bad_parameter("query", "limit", limit)
    key = query.get("key")
    pickled = None if key is None else dumps(key_from_text(key), "the key")
    wanted = min(int(limit), _MOST_ENTRIES)
    answer = _answer(job.life.queries.scan(operator_id, key=pickled, contains=query.get("search", ""), limit=wanted))
    found = sorted(answer.entries, key=lambda entry: str(entry["key"]))
    return {
        "operator": operator_id,
        "name": name,
        "states": answer.operators.get(operator_id, {}).get("states", []),
        "entries": found[:wanted] if key is None else found,
        "complete": answer.complete and (key is not None or len(found) <= wanted),
    }


def _answer(future: CompletableFuture[ScanAnswer]) -> ScanAnswer:
    try:
        return future.result(_ANSWER_SECONDS)
    except TimeoutError:
        raise RestError(503, f"No batch was committed within {_ANSWER_SECONDS:.0f} seconds: try again.") from None
    except StateAccessError as error:
        raise RestError(404, str(error)) from None


def _operator(job: MonitoredJob, operator: str) -> tuple[JobVertex, str, str]:
    for vertex in job.graph.vertices:
        for chained in vertex.operators:
            if operator in {chained.operator_id, chained.uid, chained.name}:
                return vertex, chained.operator_id, chained.name
    raise RestError(404, f"The job has no operator {operator!r}: give its uid, its name or its id.")


def savepoint_contents(path: str | None) -> Json:
    """`GET /penstock/savepoint?path=P`: the operators of a savepoint, and the sizes of their states."""
    if not path:
        raise RestError(400, "The query parameter path is missing.")
    try:
        manifest = read_manifest(path)
    except (PenstockError, OSError) as error:
        raise RestError(404, str(error)) from None
    return {
        "path": path,
        "job-id": manifest.job_id,
        "job-name": manifest.job_name,
        "checkpoint-id": manifest.checkpoint_id,
        "processing-time": manifest.processing_time,
        "drained": manifest.drained,
        "operators": [
            {
                "id": operator.operator_id,
                "uid": operator.uid,
                "name": operator.name,
                "parallelism": operator.parallelism,
                "maxParallelism": operator.max_parallelism,
                "keys": sum(file["keys"] for file in operator.keyed_files),
                "size": sum(file["size"] for file in (*operator.keyed_files, *operator.operator_files)),
                "keyed-states": [{"name": state["name"], "kind": state["kind"]} for state in operator.keyed_states],
                "operator-states": operator.operator_states,
            }
            for operator in manifest.operators.values()
        ],
    }
