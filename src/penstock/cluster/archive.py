"""Archives of ended jobs: the last responses of all their endpoints, in the format of Flink's history server.

An archive is one JSON file: `{"archive": [{"path": "/jobs/<id>", "json": "<text>"}, ...]}`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from penstock.cluster.monitored_job import MonitoredJob, vertex_hex
from penstock.cluster.rest import metrics
from penstock.cluster.rest.app import READING, ClusterContext
from penstock.cluster.rest.responses import RestError

__all__ = ["ArchivedOverviews", "archived_answer", "archived_operation", "write_archive", "write_operation"]

_METRICS = "/metrics"
_OF_SUBTASKS = re.compile(r"(?P<vertex>.*/vertices/[0-9a-f]{32})/subtasks(/(?P<subtask>[0-9]+))?/metrics")
_TRIGGER = re.compile(r"[0-9a-f]{32}")


def write_archive(directory: Path, job: MonitoredJob, context: ClusterContext) -> Path:
    """Write an archive of a job. Readers see the whole file or none."""
    entries = [{"path": path, "json": json.dumps(answer)} for path, answer in _answers(job, context)]
    return _write(directory / job.job_id, {"archive": entries})


def _write(path: Path, content: Any) -> Path:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    hidden.touch(mode=0o600)
    hidden.write_text(json.dumps(content), encoding="utf-8")
    hidden.replace(path)
    return path


def write_operation(directory: Path, scope: str, trigger_id: str, answer: Any) -> None:
    """Store the result of an operation, which clients request after the driver has ended, as after stop."""
    if _TRIGGER.fullmatch(trigger_id):
        _write(directory / f"{scope.replace('/', '.')}.{trigger_id}", answer)


def archived_operation(directory: Path, job_id: str, path: str) -> Any:
    """Return the result of an operation by its path below the job, `savepoints/<trigger id>`, or None."""
    kind, _, trigger_id = path.partition("/")
    if kind not in {"savepoints", "rescaling", "checkpoints"} or not _TRIGGER.fullmatch(trigger_id):
        return None
    try:
        return json.loads((directory / f"{job_id}.{kind}.{trigger_id}").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def archived_answer(directory: Path, job_id: str, path: str, query: Mapping[str, str] | None = None) -> Any:
    """Return the response of an ended job to a path, or None without an archive or such a path.

    :param query: the parameters of the request; only metrics have any
    """
    of_subtasks = _OF_SUBTASKS.fullmatch(path)
    entry_path = path if of_subtasks is None else f"{of_subtasks['vertex']}{_METRICS}"
    try:
        entries = json.loads((directory / job_id).read_text(encoding="utf-8"))["archive"]
        found = next((json.loads(entry["json"]) for entry in entries if entry["path"] == entry_path), None)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # a damaged archive counts as missing
    if found is None or not path.endswith(_METRICS):
        return found
    query = query or {}
    values = {metric["id"]: metric["value"] for metric in found}
    if of_subtasks is None:
        return metrics.metric_list(values, query.get("get"))
    by_subtask = _by_subtask(values)
    if of_subtasks["subtask"] is not None:
        return metrics.metric_list(by_subtask.get(int(of_subtasks["subtask"]), {}), query.get("get"))
    chosen = metrics.chosen_subtasks(query.get("subtasks"), max(by_subtask, default=-1) + 1)
    members: list[Mapping[str, Any]] = [
        {name: metrics.metric_from_text(value) for name, value in by_subtask.get(index, {}).items()} for index in chosen
    ]
    return metrics.aggregated_metrics(members, query.get("get"), query.get("agg"))


def _by_subtask(values: Mapping[str, str]) -> dict[int, dict[str, str]]:
    """Return the metrics of a task by subtask. Their names begin with the index of the subtask."""
    found: dict[int, dict[str, str]] = {}
    for name, value in values.items():
        index, _, own = name.partition(".")
        found.setdefault(int(index), {})[own] = value
    return found


class ArchivedOverviews:
    """The entries of ended jobs in `/jobs/overview`. It reads an archive again only if it has changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[int, dict[str, Any]]] = {}

    def find(self, directory: Path, job_id: str) -> dict[str, Any] | None:
        """Return the overview of one job, or None if its archive is missing or damaged."""
        path = directory / job_id
        try:
            changed = path.stat().st_mtime_ns
        except OSError:
            return None
        known = self._known.get(path)
        if known is None or known[0] != changed:
            application = archived_answer(directory, job_id, f"/applications/{job_id}")
            try:
                overview = application["jobs"][0]
                known = self._known[path] = (changed, {**overview, "state": overview["state"]})
            except (IndexError, KeyError, TypeError):
                return None
        return known[1]


def _answers(job: MonitoredJob, context: ClusterContext) -> Iterator[tuple[str, Any]]:
    for template, answer in READING.items():
        if not template.startswith(("/jobs/{job_id}", "/applications/{job_id}")) or template.endswith(_METRICS):
            continue
        for parameters in _parameters(job, template):
            path = template.format(**parameters)
            try:
                yield path, answer(_request(path, parameters), context)
            except RestError:  # it has no response for this path
                continue
    for template in ("/jobs/{job_id}/metrics", "/jobs/{job_id}/vertices/{vertex_id}/metrics"):
        for parameters in _parameters(job, template):
            path = template.format(**parameters)
            found = READING[template](_request(path, parameters), context)
            names = ",".join(quote(metric["id"]) for metric in found)
            yield path, READING[template](_request(path, parameters, f"get={names}"), context)


def _parameters(job: MonitoredJob, template: str) -> Iterator[dict[str, str]]:
    """Yield all parameters of a path: all vertices, subtasks and checkpoints."""
    vertices = job.graph.vertices if "{vertex_id}" in template else [None]
    checkpoints = job.progress.checkpoints.latest() if "{checkpoint_id}" in template else [None]
    for vertex in vertices:
        subtasks = range(vertex.parallelism) if vertex is not None and "{subtask}" in template else [0]
        for checkpoint in checkpoints:
            for subtask in subtasks:
                yield {
                    "job_id": job.job_id,
                    "vertex_id": "" if vertex is None else vertex_hex(vertex),
                    "checkpoint_id": "" if checkpoint is None else str(checkpoint.checkpoint_id),
                    "subtask": str(subtask),
                    "attempt": str(job.progress.restarts),
                    "rescale_id": "",
                }


def _request(path: str, parameters: dict[str, str], query: str = "") -> Request:
    return Request(
        {
            "type": "http",
            "method": "GET",
            "path": path,
            "path_params": parameters,
            "query_string": query.encode(),
            "headers": [],
        }
    )
