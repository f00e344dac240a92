"""All metrics of the jobs of a driver at one moment, with Flink's scopes and variables."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from penstock.cluster.monitored_job import MonitoredJob, now_ms, vertex_hex
from penstock.cluster.rest.metrics import job_metrics, safe_name, subtask_metrics

if TYPE_CHECKING:
    from penstock.cluster.workers import Workers
    from penstock.runtime.plan.job_vertex import JobVertex

__all__ = ["DEFAULT_SCOPES", "Sample", "collect", "identifier"]

DEFAULT_SCOPES = {
    "jobmanager": "<host>.jobmanager",
    "jobmanager_job": "<host>.jobmanager.<job_name>",
    "taskmanager": "<host>.taskmanager.<tm_id>",
    "taskmanager_job_task": "<host>.taskmanager.<tm_id>.<job_name>.<task_name>.<subtask_index>",
    "taskmanager_job_task_operator": "<host>.taskmanager.<tm_id>.<job_name>.<operator_name>.<subtask_index>",
}
"""Flink's formats of names in systems without labels."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One value. `scope` is the owner of the metric, for example `taskmanager_job_task`."""

    scope: str
    name: str
    value: float
    variables: dict[str, str]

    def to_json(self) -> list[Any]:
        """Return the sample as JSON, to send it from a driver to the service."""
        return [self.scope, self.name, self.value, self.variables]


def collect(jobs: list[MonitoredJob], workers: Workers) -> Iterator[Sample]:
    """Yield all numbers of all jobs that have not ended. Booleans are 0 and 1; other values are skipped."""
    host = socket.gethostname()
    for job in jobs:
        if job.status.is_terminal_state():
            continue
        of_job = {"host": host, "job_id": job.job_id, "job_name": job.name}
        yield from _samples("jobmanager_job", job_metrics(job, now_ms()), of_job)
        for vertex in job.graph.vertices:
            for index in range(vertex.parallelism):
                variables = {
                    **of_job,
                    "tm_id": workers.of_subtask(index).worker_id,
                    "task_id": vertex_hex(vertex),
                    "task_name": vertex.name,
                    "task_attempt_num": str(job.progress.restarts),
                    "subtask_index": str(index),
                }
                yield from _subtask(job, vertex, index, variables)


def _subtask(job: MonitoredJob, vertex: JobVertex, index: int, variables: dict[str, str]) -> Iterator[Sample]:
    metrics = subtask_metrics(job, vertex, index)
    for chained in vertex.operators:
        prefix = f"{safe_name(chained.name)}."
        mine = {name[len(prefix) :]: metrics.pop(name) for name in list(metrics) if name.startswith(prefix)}
        of_operator = {**variables, "operator_id": chained.operator_id, "operator_name": chained.name}
        yield from _samples("taskmanager_job_task_operator", mine, of_operator)
    yield from _samples("taskmanager_job_task", metrics, variables)


def _samples(scope: str, metrics: Mapping[str, Any], variables: dict[str, str]) -> Iterator[Sample]:
    for name, value in metrics.items():
        if isinstance(value, Real):
            yield Sample(scope, name, float(value), variables)


def identifier(sample: Sample, formats: Mapping[str, str], delimiter: str = ".") -> str:
    """Return the name of a metric without labels: the filled format of the scope, and the metric's own name.

    >>> of_job = {"host": "a", "job_name": "my job"}
    >>> identifier(Sample("jobmanager_job", "numRestarts", 0.0, of_job), DEFAULT_SCOPES)
    'a.jobmanager.my_job.numRestarts'
    """
    parts = []
    for part in formats[sample.scope].split("."):
        filled = part
        for name, value in sample.variables.items():
            filled = filled.replace(f"<{name}>", value)
        parts.append("".join(c if c.isalnum() or c in "_-" else "_" for c in filled))
    return delimiter.join([*parts, sample.name.replace(".", delimiter)])
