"""Requests that change something: savepoints, stop, cancel, rescale, checkpoints on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from penstock.cluster.monitored_job import MonitoredJob, vertex_hex
from penstock.cluster.rest.jobs import Json
from penstock.cluster.rest.operations import OperationStore
from penstock.cluster.rest.responses import RestError, bad_parameter, json_response, parse_id
from penstock.common.errors import PenstockError

__all__ = ["CHANGING", "Call", "Change", "check_switches", "ignored_keys", "resource_requirements"]


@dataclass(slots=True)
class Call:
    """One request: its target and its content."""

    request: Request
    body: Json
    job: MonitoredJob | None
    operations: OperationStore
    settings: dict[str, str]

    @property
    def the_job(self) -> MonitoredJob:
        """Return the job of the path."""
        assert self.job is not None
        return self.job


Change = Callable[[Call], Response]


# -- switches ---------------------------------------------------------------------------------------------------------

_CANCEL = "web.cancel.enable"
_RESCALE = "web.rescale.enable"


def check_switches(method: str, path: str, settings: Mapping[str, str]) -> None:
    """Reject requests that the settings disable, in the service and in a driver with its own settings."""
    key = _switch_of(method, path.removeprefix("/v1").strip("/").split("/"))
    if key is not None and settings.get(key, "true").strip().lower() != "true":
        what = "Cancelling jobs" if key == _CANCEL else "Changing the parallelism of jobs"
        raise RestError(403, f"{what} is switched off ({key}).")


def _switch_of(method: str, parts: list[str]) -> str | None:
    match method, parts:
        case ("PATCH", ["jobs", _]) | ("GET" | "HEAD", ["jobs", _, "yarn-cancel" | "yarn-stop"]):
            return _CANCEL
        case "POST", ["applications", _, "cancel"]:
            return _CANCEL
        case ("PATCH", ["jobs", _, "rescaling"]) | ("PUT", ["jobs", _, "resource-requirements"]):
            return _RESCALE
    return None


# -- savepoints -------------------------------------------------------------------------------------------------------


def trigger_savepoint(call: Call) -> Response:
    """`POST /jobs/:jobid/savepoints`."""
    directory = _savepoint_directory(call, call.body.get("target-directory"))
    _check_format(call)
    client = call.the_job.client
    take = client.cancel_with_savepoint if call.body.get("cancel-job") else client.trigger_savepoint
    return _start(call, "savepoints", lambda: take(directory), _location)


def stop(call: Call) -> Response:
    """`POST /jobs/:jobid/stop`."""
    directory = _savepoint_directory(call, call.body.get("targetDirectory"))
    _check_format(call)
    drain = bool(call.body.get("drain"))
    client = call.the_job.client
    return _start(call, "savepoints", lambda: client.stop_with_savepoint(drain, directory), _location)


def _savepoint_directory(call: Call, chosen: str | None) -> str | None:
    job = call.the_job
    if job.status.is_terminal_state():
        raise RestError(409, f"Job {job.job_id} is not running: it is {job.status.name}")
    if chosen is None and job.settings.savepoint_dir is None:
        raise RestError(
            400,
            f"Config key [execution.checkpointing.savepoint-dir] is not set. Property [targetDirectory] must be "
            f"provided to take a savepoint of job {job.job_id}.",
        )
    return chosen


def _check_format(call: Call) -> None:
    """Check the format. Savepoints have one format here, canonical, but clients may name either."""
    chosen = call.body.get("formatType")
    if chosen not in (None, "CANONICAL", "NATIVE"):
        raise RestError(400, f"formatType must be CANONICAL or NATIVE, not {chosen!r}.")


def _location(path: str) -> Json:
    return {"location": path if "://" in path or path.startswith("file:") else f"file:{path}"}


def _start(call: Call, kind: str, begin: Callable[[], Any], result: Callable[[Any], Json]) -> Response:
    scope = f"{call.the_job.job_id}/{kind}"
    chosen = call.body.get("triggerId")
    trigger_id = None if chosen is None else parse_id(str(chosen), "triggerId")
    try:
        trigger = call.operations.start(scope, trigger_id, begin, result)
    except PenstockError as error:
        raise RestError(400, str(error)) from error
    return json_response({"request-id": trigger}, 202)


def poll_savepoint(call: Call) -> Response:
    """`GET /jobs/:jobid/savepoints/:triggerid`."""
    return _poll(call, "savepoints")


def _poll(call: Call, kind: str) -> Response:
    scope = f"{call.the_job.job_id}/{kind}"
    trigger_id = parse_id(call.request.path_params["trigger_id"], "triggerid")
    return json_response(call.operations.poll(scope, trigger_id))


# -- cancelling -------------------------------------------------------------------------------------------------------


def cancel(call: Call) -> Response:
    """`PATCH /jobs/:jobid?mode=cancel`."""
    mode = call.request.query_params.get("mode", "cancel")
    if mode == "stop":
        raise RestError(400, "Use POST /jobs/:jobid/stop to stop a job with a savepoint.")
    if mode != "cancel":
        raise bad_parameter("query", "mode", mode)
    return _cancel(call)


def _cancel(call: Call) -> Response:
    job = call.the_job
    if job.status.is_terminal_state():
        raise RestError(
            409,
            f"Job cancellation failed because the job has already reached another terminal state ({job.status.name}).",
        )
    job.client.cancel()
    return json_response({}, 202)


def cancel_from_dashboard(call: Call) -> Response:
    """`GET /jobs/:jobid/yarn-cancel` of Flink's dashboard. Only its own pages may call it, since it is a GET."""
    if call.request.headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
        raise RestError(403, "Only the dashboard's own pages may send this request.")
    return _cancel(call)


# -- rescaling --------------------------------------------------------------------------------------------------------


def rescale(call: Call) -> Response:
    """`PATCH /jobs/:jobid/rescaling?parallelism=N`."""
    text = call.request.query_params.get("parallelism", "")
    if not text.isdigit() or int(text) < 1:
        raise RestError(400, "The query parameter parallelism must be a positive integer.")
    return _start(call, "rescaling", lambda: call.the_job.client.rescale(int(text)), lambda _: {})


def poll_rescaling(call: Call) -> Response:
    """`GET /jobs/:jobid/rescaling/:triggerid`."""
    return _poll(call, "rescaling")


def resource_requirements(job: MonitoredJob) -> Json:
    """`GET /jobs/:jobid/resource-requirements`."""
    return {
        vertex_hex(vertex): {"parallelism": {"lowerBound": 1, "upperBound": vertex.parallelism}}
        for vertex in job.graph.vertices
    }


def require_resources(call: Call) -> Response:
    """`PUT /jobs/:jobid/resource-requirements`: the upper bounds, which must be equal, become the parallelism."""
    job = call.the_job
    missing = {vertex_hex(vertex) for vertex in job.graph.vertices} - call.body.keys()
    if missing:
        raise RestError(400, f"The request must name every vertex of the job; missing: {', '.join(sorted(missing))}.")
    wanted = set()
    for vertex in job.graph.vertices:
        bounds = call.body[vertex_hex(vertex)]
        try:
            lower, upper = (int(bounds["parallelism"][name]) for name in ("lowerBound", "upperBound"))
        except (KeyError, TypeError, ValueError):
            raise RestError(400, "Each vertex needs parallelism.lowerBound and parallelism.upperBound.") from None
        if not 1 <= lower <= upper <= vertex.max_parallelism:
            raise RestError(
                400, f"The bounds {lower} to {upper} of '{vertex.name}' must be within 1 to {vertex.max_parallelism}."
            )
        wanted.add(upper)
    if len(wanted) > 1:
        raise RestError(400, "All vertices must have the same upper bound: a job is rescaled as a whole here.")
    _start(call, "rescaling", lambda: job.client.rescale(wanted.pop()), lambda _: {})
    return json_response({})


# -- checkpoints, heartbeats ------------------------------------------------------------------------------------------


def trigger_checkpoint(call: Call) -> Response:
    """`POST /jobs/:jobid/checkpoints`: the next batch that commits."""
    kind = call.body.get("checkpointType", "CONFIGURED")
    if kind not in ("CONFIGURED", "FULL", "INCREMENTAL"):
        raise RestError(400, f"checkpointType must be CONFIGURED, FULL or INCREMENTAL, not {kind!r}.")
    return _start(call, "checkpoints", call.the_job.life.queries.next_checkpoint, lambda done: {"checkpointId": done})


def poll_checkpoint(call: Call) -> Response:
    """`GET /jobs/:jobid/checkpoints/:triggerid`."""
    return _poll(call, "checkpoints")


def heartbeat(call: Call) -> Response:
    """`PATCH /jobs/:jobid/clientHeartbeat`: cancel the job unless another heartbeat arrives before the expiry."""
    expires = call.body.get("expiredTimestamp")
    if not isinstance(expires, int):
        raise RestError(400, "expiredTimestamp must be a time in epoch milliseconds.")
    call.the_job.keep_until(expires)
    return json_response({}, 202)


CHANGING: dict[tuple[str, str], Change] = {
    ("POST", "/jobs/{job_id}/savepoints"): trigger_savepoint,
    ("GET", "/jobs/{job_id}/savepoints/{trigger_id}"): poll_savepoint,
    ("POST", "/jobs/{job_id}/stop"): stop,
    ("PATCH", "/jobs/{job_id}"): cancel,
    ("GET", "/jobs/{job_id}/yarn-cancel"): cancel_from_dashboard,
    ("GET", "/jobs/{job_id}/yarn-stop"): cancel_from_dashboard,
    ("PATCH", "/jobs/{job_id}/rescaling"): rescale,
    ("GET", "/jobs/{job_id}/rescaling/{trigger_id}"): poll_rescaling,
    ("PUT", "/jobs/{job_id}/resource-requirements"): require_resources,
    ("POST", "/jobs/{job_id}/checkpoints"): trigger_checkpoint,
    ("GET", "/jobs/{job_id}/checkpoints/{trigger_id}"): poll_checkpoint,
    ("PATCH", "/jobs/{job_id}/clientHeartbeat"): heartbeat,
    ("POST", "/applications/{job_id}/cancel"): _cancel,
}

_TRIGGER = {"triggerId"}
_KEYS: dict[Change, set[str]] = {
    trigger_savepoint: {"target-directory", "cancel-job", "formatType", *_TRIGGER},
    stop: {"targetDirectory", "drain", "formatType", *_TRIGGER},
    trigger_checkpoint: {"checkpointType", *_TRIGGER},
    heartbeat: {"expiredTimestamp"},
    rescale: _TRIGGER,
}


def ignored_keys(change: Change, body: Json) -> list[str]:
    """The keys of a body that mean nothing to an endpoint: clients of other versions may send them."""
    known = _KEYS.get(change)
    return [] if known is None else [key for key in body if key not in known]
