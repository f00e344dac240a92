"""Metrics over REST: names, values as text, and aggregates over subtasks, jobs or workers."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Mapping
from numbers import Real
from typing import Any

from penstock.cluster.monitored_job import MonitoredJob
from penstock.cluster.rest.jobs import Json
from penstock.cluster.rest.responses import bad_parameter
from penstock.common.watermark_strategy import MIN_WATERMARK
from penstock.runtime.job.job_progress import SubtaskProgress
from penstock.runtime.plan.job_vertex import JobVertex

_UNSAFE = re.compile(r"[^A-Za-z0-9_]")
_AGGREGATES = ("min", "max", "sum", "avg", "skew")


def safe_name(text: str) -> str:
    """Return a task or operator name for metric names.

    >>> safe_name("Source: numbers")
    'Source__numbers'
    """
    return _UNSAFE.sub("_", text)


def subtask_metrics(job: MonitoredJob, vertex: JobVertex, index: int) -> dict[str, Any]:
    """Return all metrics of a subtask: its own, and those of its operators, prefixed with their names."""
    subtask = job.subtasks(vertex).get(index)
    if subtask is None:
        return {}
    found: dict[str, Any] = {
        "numRecordsIn": 0 if vertex.is_source else subtask.records_in,
        "numRecordsOut": subtask.records_out,
        "numBytesIn": subtask.bytes_in,
        "numBytesOut": subtask.bytes_out,
        "currentInputWatermark": MIN_WATERMARK if vertex.is_source else subtask.watermark,
        **_task_rates(vertex, subtask),
        "stateSize": subtask.state_bytes,
    }
    if vertex.is_source:
        source = safe_name(vertex.operators[0].name)
        found[f"{source}.numRecordsIn"] = subtask.records_in
        pending = _pending_records(job, vertex, index)
        if pending is not None:
            found[f"{source}.pendingRecords"] = pending
    names = {chained.name for chained in vertex.operators}
    for full_name, value in subtask.metrics.items():
        operator = max((name for name in names if full_name.startswith(f"{name}.")), key=len, default=None)
        if operator is not None:
            own_name = full_name[len(operator) + 1 :].replace(",", "_")  # commas separate a list of names
            found[f"{safe_name(operator)}.{own_name}"] = value
    return found


def _pending_records(job: MonitoredJob, vertex: JobVertex, index: int) -> int | None:
    """Return the lag of a subtask: unread records of its splits, or None if the source cannot tell."""
    key = vertex.operators[0].operator_id
    pending = job.progress.pending.get(key)
    if pending is None:
        return None
    positions = job.progress.committed.of_source(key)
    readers = {split_id: at.subtask or 0 for split_id, at in positions.items()}
    return sum(count for split_id, count in pending.items() if readers.get(split_id) == index)


def _task_rates(vertex: JobVertex, subtask: SubtaskProgress) -> dict[str, Any]:
    """Return rates over the last minute, and busy, backpressured and idle times, which add up to a second."""
    now = time.time()
    rates = {name: rate.per_second(now) for name, rate in subtask.rates.items()}
    busy, waiting = time_shares(subtask)
    return {
        "numRecordsInPerSecond": 0.0 if vertex.is_source else rates["records_in"],
        "numRecordsOutPerSecond": rates["records_out"],
        "numBytesInPerSecond": rates["bytes_in"],
        "numBytesOutPerSecond": rates["bytes_out"],
        "busyTimeMsPerSecond": round(1000 * busy),
        "backPressuredTimeMsPerSecond": round(1000 * waiting),
        "softBackPressuredTimeMsPerSecond": round(1000 * waiting),
        "hardBackPressuredTimeMsPerSecond": 0,
        "idleTimeMsPerSecond": 1000 - round(1000 * busy) - round(1000 * waiting),
        "isBackPressured": waiting > 0.1,
        "accumulateBusyTimeMs": int(subtask.busy_seconds * 1000),
        "accumulateBackPressuredTimeMs": int(subtask.backpressured_seconds * 1000),
    }


def time_shares(subtask: SubtaskProgress) -> tuple[float, float]:
    """Return the busy and the backpressured share of the last minute. The rest is idle."""
    now = time.time()
    busy = min(1.0, subtask.rates["busy_seconds"].per_second(now))
    return busy, min(1.0 - busy, subtask.rates["backpressured_seconds"].per_second(now))


def vertex_metrics(job: MonitoredJob, vertex: JobVertex) -> dict[str, Any]:
    """Return the metrics of all subtasks, prefixed with the subtask's index."""
    return {
        f"{index}.{name}": value
        for index in range(vertex.parallelism)
        for name, value in subtask_metrics(job, vertex, index).items()
    }


def job_metrics(job: MonitoredJob, now: int) -> dict[str, Any]:
    """Return the metrics of a job as a whole."""
    history = job.progress.checkpoints
    last = history.latest_completed
    running = job.status.name == "RUNNING"
    found: dict[str, Any] = {
        "uptime": now - job.running_since if running and job.running_since >= 0 else -1,
        "downtime": 0 if running else max(0, now - max(job.life.entered.values())),
        "numRestarts": job.progress.restarts,
        "fullRestarts": job.progress.restarts,
        "totalNumberOfCheckpoints": history.completed + history.failed,
        "numberOfCompletedCheckpoints": history.completed,
        "numberOfFailedCheckpoints": history.failed,
        "numberOfInProgressCheckpoints": 0,
        "lastCheckpointDuration": -1 if last is None else last.duration,
        "lastCheckpointSize": -1 if last is None else last.written_size,
        "lastCheckpointFullSize": -1 if last is None else last.state_size,
        "lastCheckpointExternalPath": job.settings.checkpoint_dir or "n/a",
        "lastCompletedCheckpointId": -1 if last is None else last.checkpoint_id,
        "lastCheckpointCompletedTimestamp": -1 if last is None else last.completed,
        "lastCheckpointProcessedData": 0,
        "lastCheckpointPersistedData": 0,
        "lastCheckpointRestoreTimestamp": -1 if history.latest_restored is None else history.latest_restored[1],
        "numLateRecordsDropped": job.progress.late_records,
    }
    for status, entered in job.life.entered.items():
        current = status is job.status and not status.is_terminal_state()
        found[f"{status.name.lower()}Time"] = now - entered if current else 0
    return found


def metric_list(metrics: Mapping[str, Any], wanted: str | None) -> list[Json]:
    """Return names, or the requested values as text, without unknown names."""
    if wanted is None:
        return [{"id": name} for name in metrics]
    return [{"id": name, "value": metric_text(metrics[name])} for name in wanted.split(",") if name in metrics]


def metric_text(value: Any) -> str:
    """Format a value as in Java.

    >>> metric_text(True), metric_text(6000), metric_text(28.0), metric_text(None)
    ('true', '6000', '28.0', 'null')
    """
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def metric_from_text(text: str) -> Any:
    """Parse a number, and return other values as text.

    >>> metric_from_text("28.5"), metric_from_text("-1"), metric_from_text("n/a")
    (28.5, -1.0, 'n/a')
    """
    try:
        return float(text)
    except ValueError:
        return text


def aggregated_metrics(members: list[Mapping[str, Any]], wanted: str | None, aggregates: str | None) -> list[Json]:
    """Return the names of all members, or minimum, maximum, average, sum and skew of the requested ones."""
    if wanted is None:
        return [{"id": name} for name in dict.fromkeys(name for metrics in members for name in metrics)]
    chosen = _AGGREGATES if aggregates is None else tuple(aggregates.split(","))
    for name in chosen:
        if name not in _AGGREGATES:
            raise bad_parameter("query", "agg", name)
    found = []
    for name in wanted.split(","):
        values = [float(m[name]) for m in members if name in m and _is_number(m[name])]
        if values:
            found.append({"id": name, **{kind: _aggregate(kind, values) for kind in chosen}})
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _aggregate(kind: str, values: list[float]) -> float:
    """Aggregate values. `skew` is the coefficient of variation in percent.

    >>> _aggregate("skew", [10, 10]), _aggregate("skew", [0, 20]), _aggregate("avg", [1, 2])
    (0.0, 100.0, 1.5)
    """
    if kind == "skew":
        mean = statistics.fmean(values)
        return statistics.pstdev(values) / mean * 100 if mean else 0.0
    if kind == "avg":
        return statistics.fmean(values)
    return min(values) if kind == "min" else max(values) if kind == "max" else sum(values)


def chosen_subtasks(text: str | None, parallelism: int) -> list[int]:
    """Return the subtasks of `subtasks=0,2-4`, or all without it.

    >>> chosen_subtasks("0,2-4", 8), chosen_subtasks(None, 3)
    ([0, 2, 3, 4], [0, 1, 2])
    """
    if text is None:
        return list(range(parallelism))
    chosen: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise bad_parameter("query", "subtasks", text)
        chosen.update(range(int(first), min(int(last if dash else first) + 1, parallelism)))
    return sorted(chosen)
