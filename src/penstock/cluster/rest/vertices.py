"""`/jobs/:jobid/vertices/:vertexid` and below: subtasks, times, workers, watermarks, accumulators, backpressure."""

from __future__ import annotations

from typing import Any

from penstock.cluster.monitored_job import MonitoredJob, now_ms, vertex_hex
from penstock.cluster.rest.jobs import TASK_STATES, Json, io_metrics, task_times
from penstock.cluster.rest.metrics import time_shares
from penstock.cluster.rest.responses import RestError, parse_number
from penstock.cluster.workers import Workers
from penstock.common.watermark_strategy import MIN_WATERMARK
from penstock.runtime.plan.job_vertex import JobVertex

_AGGREGATED = (
    "read-bytes", "write-bytes", "read-records", "write-records",
    "accumulated-backpressured-time", "accumulated-idle-time", "accumulated-busy-time",
)  # fmt: skip


def vertex_details(job: MonitoredJob, vertex: JobVertex, workers: Workers) -> Json:
    """`GET /jobs/:jobid/vertices/:vertexid`."""
    now = now_ms()
    subtasks = [subtask_details(job, vertex, index, workers) for index in range(vertex.parallelism)]
    return {
        "id": vertex_hex(vertex),
        "name": vertex.name,
        "parallelism": vertex.parallelism,
        "maxParallelism": vertex.max_parallelism,
        "now": now,
        "subtasks": subtasks,
        "aggregated": aggregated(subtasks),
    }


def subtask_details(job: MonitoredJob, vertex: JobVertex, index: int, workers: Workers) -> Json:
    """`GET .../subtasks/:index`, and one entry of the list above."""
    now = now_ms()
    known = job.subtasks(vertex)
    worker = workers.of_subtask(index)
    times = task_times(job, now)
    return {
        "subtask": index,
        "status": job.task_state(vertex),
        "attempt": job.progress.restarts,
        "endpoint": worker.endpoint,
        "start-time": times["start-time"],
        "end-time": times["end-time"],
        "duration": times["duration"],
        "metrics": io_metrics(job, vertex, [known[index]] if index in known else [], now),
        "taskmanager-id": worker.worker_id,
        "status-duration": _status_durations(job, now),
        "start_time": times["start-time"],
    }


def _status_durations(job: MonitoredJob, now: int) -> Json:
    """Return how long the subtask was in each state, or -1 for states it was never in."""
    durations = dict.fromkeys(("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING"), -1)
    began = job.running_since
    if began >= 0:
        durations["CREATED"] = began - job.started
        durations["RUNNING"] = (now if job.ended < 0 else job.ended) - began
    return durations


def aggregated(subtasks: list[Json]) -> Json:
    """Return minimum, maximum, quartiles and so on over the subtasks of a task."""
    metrics = {name: _spread([subtask["metrics"][name] for subtask in subtasks]) for name in _AGGREGATED}
    states = subtasks[0]["status-duration"] if subtasks else {}
    durations = {state: _spread([subtask["status-duration"][state] for subtask in subtasks]) for state in states}
    return {"metrics": metrics, "status-duration": durations}


def _spread(values: list[Any]) -> Json:
    """All of them are whole numbers, also the percentiles; what a subtask that never ran does not know counts as 0."""
    numbers = sorted(0 if isinstance(value, str) else int(value) for value in values) or [0]
    return {
        "min": numbers[0],
        "max": numbers[-1],
        "avg": sum(numbers) // len(numbers),
        "sum": sum(numbers),
        "median": _percentile(numbers, 50),
        "p25": _percentile(numbers, 25),
        "p75": _percentile(numbers, 75),
        "p95": _percentile(numbers, 95),
    }


def _percentile(numbers: list[int], percent: float) -> int:
    """Return the estimate of Flink's statistics library.

    >>> [_percentile([1, 2, 4, 10], percent) for percent in (25, 50, 95)]
    [1, 3, 10]
    """
    position = percent / 100 * (len(numbers) + 1)
    below = int(position)
    if below < 1:
        return numbers[0]
    if below >= len(numbers):
        return numbers[-1]
    return int(numbers[below - 1] + (position - below) * (numbers[below] - numbers[below - 1]))


def subtask_times(job: MonitoredJob, vertex: JobVertex, workers: Workers) -> Json:
    """`GET .../subtasktimes`."""
    now = now_ms()
    times = task_times(job, now)
    stamps = dict.fromkeys(TASK_STATES, 0)
    if job.running_since >= 0:
        stamps |= {"CREATED": job.started, "RUNNING": job.running_since}
    if job.ended >= 0:
        stamps[job.task_state(vertex)] = job.ended
    return {
        "id": vertex_hex(vertex),
        "name": vertex.name,
        "now": now,
        "subtasks": [
            {
                "subtask": index,
                "endpoint": workers.of_subtask(index).endpoint,
                "duration": times["duration"],
                "timestamps": stamps,
            }
            for index in range(vertex.parallelism)
        ],
    }


def vertex_workers(job: MonitoredJob, vertex: JobVertex, workers: Workers) -> Json:
    """`GET .../taskmanagers`: the same numbers per worker."""
    now = now_ms()
    known = job.subtasks(vertex)
    state = job.task_state(vertex)
    found = []
    for worker in workers.all():
        mine = [index for index in range(vertex.parallelism) if workers.of_subtask(index) is worker]
        if not mine:
            continue
        details = [subtask_details(job, vertex, index, workers) for index in mine]
        found.append(
            {
                "endpoint": worker.endpoint,
                "status": state,
                **task_times(job, now),
                "metrics": io_metrics(job, vertex, [known[index] for index in mine if index in known], now),
                "status-counts": {name: len(mine) if name == state else 0 for name in TASK_STATES},
                "taskmanager-id": worker.worker_id,
                "aggregated": aggregated(details),
            }
        )
    return {"id": vertex_hex(vertex), "name": vertex.name, "now": now, "taskmanagers": found}


def watermarks(job: MonitoredJob, vertex: JobVertex) -> list[Json]:
    """`GET .../watermarks`: with 19 digits as text, because browsers round numbers. A source has no input."""
    if vertex.is_source:
        return []
    known = job.subtasks(vertex)
    return [
        {
            "id": f"{index}.currentInputWatermark",
            "value": str(known[index].watermark if index in known else MIN_WATERMARK),
        }
        for index in range(vertex.parallelism)
    ]


def accumulators(vertex: JobVertex) -> Json:
    """`GET .../accumulators`: metrics replace accumulators."""
    return {"id": vertex_hex(vertex), "user-accumulators": []}


def subtask_accumulators(job: MonitoredJob, vertex: JobVertex, workers: Workers) -> Json:
    """`GET .../subtasks/accumulators`."""
    return {
        "id": vertex_hex(vertex),
        "parallelism": vertex.parallelism,
        "subtasks": [
            {
                "subtask": index,
                "attempt": job.progress.restarts,
                "endpoint": workers.of_subtask(index).endpoint,
                "user-accumulators": [],
            }
            for index in range(vertex.parallelism)
        ],
    }


def backpressure(job: MonitoredJob, vertex: JobVertex) -> Json:
    """`GET .../backpressure`."""
    if job.task_state(vertex) != "RUNNING":
        return {"status": "deprecated"}
    subtasks: list[Json] = []
    for index, progress in sorted(job.subtasks(vertex).items()):
        busy, waiting = time_shares(progress)
        level = _level(waiting)
        subtasks.append(
            {
                "subtask": index,
                "backpressureLevel": level,
                "backpressure-level": level,
                "ratio": waiting,
                "idleRatio": max(0.0, 1.0 - waiting - busy),
                "busyRatio": busy,
            }
        )
    worst = _level(max((subtask["ratio"] for subtask in subtasks), default=0.0))
    return {
        "status": "ok",
        "backpressureLevel": worst,
        "backpressure-level": worst,
        "end-timestamp": now_ms(),
        "subtasks": subtasks,
    }


def _level(ratio: float) -> str:
    if ratio <= 0.1:
        return "ok"
    return "low" if ratio <= 0.5 else "high"


def check_subtask(vertex: JobVertex, text: str) -> int:
    """Parse the index of a subtask in a path."""
    index = parse_number(text, "subtaskindex")
    if index >= vertex.parallelism:
        raise RestError(404, f"Invalid subtask index for vertex {vertex_hex(vertex)}: {text}")
    return index


def check_attempt(job: MonitoredJob, text: str) -> None:
    """Reject all attempts of a subtask except the current one, which is the only known one."""
    if parse_number(text, "attempt") != job.progress.restarts:
        raise RestError(404, f"Attempt {text} not found: the current attempt is {job.progress.restarts}")
