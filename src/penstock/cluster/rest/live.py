"""Endpoints that Flink lacks: live metrics of all tasks in one response, batches, splits and the log of a job.

The paths are below `/penstock/jobs/:jobid`, so that they never collide with Flink's paths.
"""

from __future__ import annotations

import time
from typing import Any

from penstock.cluster.monitored_job import MonitoredJob, now_ms, vertex_hex
from penstock.cluster.rest.jobs import Json
from penstock.cluster.rest.metrics import time_shares
from penstock.cluster.rest.responses import bad_parameter
from penstock.common.watermark import MAX_WATERMARK
from penstock.common.watermark_strategy import MIN_WATERMARK
from penstock.runtime.job.job_progress import SubtaskProgress
from penstock.runtime.plan.job_vertex import JobVertex
from penstock.runtime.plan.offset import SplitPosition

_SHOWN_OFFSET = 200


def live(job: MonitoredJob) -> Json:
    """`GET .../live`: rates, busy shares, watermark, lag and skew of each task."""
    progress = job.progress
    return {
        "now": now_ms(),
        "late-records": progress.late_records,
        "state-size": progress.state_bytes,
        "restarts": progress.restarts,
        "watermark": watermark_text(progress.watermark),
        "lag": event_time_lag(progress.watermark, now_ms()),
        "records-per-second": progress.records_per_second(time.time()),
        "source-records": progress.source_records,
        "last-checkpoint": None if progress.checkpointed_at is None else int(progress.checkpointed_at * 1000),
        "vertices": [_vertex(job, vertex) for vertex in job.graph.vertices],
    }


def _vertex(job: MonitoredJob, vertex: JobVertex) -> Json:
    subtasks = list(job.subtasks(vertex).values())
    shares = [time_shares(subtask) for subtask in subtasks] or [(0.0, 0.0)]
    progress = job.progress.vertices[vertex.id]
    watermark = progress.output_watermark if vertex.is_source else progress.watermark
    records = [subtask.records_in for subtask in subtasks]
    mean = sum(records) / len(records) if records else 0
    late = (value for s in subtasks for name, value in s.metrics.items() if name.endswith(".numLateRecordsDropped"))
    return {
        "id": vertex_hex(vertex),
        "source": vertex.is_source,
        "operators": [operator.name for operator in vertex.operators],
        "records-in": job.progress.vertices[vertex.id].records_in,
        "records-out": job.progress.vertices[vertex.id].records_out,
        "records-in-per-second": _rate(subtasks, "records_in"),
        "records-out-per-second": _rate(subtasks, "records_out"),
        "bytes-out-per-second": _rate(subtasks, "bytes_out"),
        "busy": max(busy for busy, _ in shares),
        "backpressured": max(waiting for _, waiting in shares),
        "skew": max(abs(count - mean) for count in records) / mean * 100 if mean else 0.0,
        "watermark": watermark_text(watermark),
        "lag": event_time_lag(watermark, now_ms()),
        "late-records": sum(late),
        "state-size": job.progress.vertices[vertex.id].state_size,
    }


def _rate(subtasks: list[SubtaskProgress], name: str) -> float:
    now = time.time()
    return float(sum(subtask.rates[name].per_second(now) for subtask in subtasks))


def watermark_text(watermark: int) -> str | None:
    """Return a watermark as text, since browsers round numbers with 19 digits, or None before the first one."""
    return None if watermark == MIN_WATERMARK else str(watermark)


def event_time_lag(watermark: int, now: int) -> int | None:
    """Return the lag of event time behind the clock, or None without watermarks and after the end of input.

    >>> event_time_lag(1_000, 3_500), event_time_lag(MIN_WATERMARK, 3_500)
    (2500, None)
    """
    return None if watermark in {MIN_WATERMARK, MAX_WATERMARK} else now - watermark


def batches(job: MonitoredJob, since: str) -> Json:
    """`GET .../batches?since=N`: the last thousand batches after number N."""
    if not since.isdigit():
        raise bad_parameter("query", "since", since)
    names = {vertex.id: vertex_hex(vertex) for vertex in job.graph.vertices}
    found = [
        {
            "id": batch.checkpoint_id,
            "start": batch.start,
            "end": batch.end,
            "duration": batch.end - batch.start,
            "steps": batch.steps,
            "records": batch.records_in,
            "watermark": watermark_text(batch.watermark),
            "lag": event_time_lag(batch.watermark, batch.end),
            "late-records": batch.late_records,
            "state-bytes": batch.state_size,
            "written-bytes": batch.written_size,
            "busy": {names[vertex]: busy for vertex, busy in batch.busy.items() if vertex in names},
        }
        for batch in job.progress.batches.since(int(since))
    ]
    return {"now": now_ms(), "batches": found}


def history(job: MonitoredJob) -> Json:
    """`GET .../history`: the last 15 minutes in columns, one row per second with a batch."""
    seconds = job.progress.batches.seconds()
    return {
        "now": now_ms(),
        "second": [one.second for one in seconds],
        "records": [one.records_in for one in seconds],
        "duration": [one.longest for one in seconds],
        "lag": [event_time_lag(one.watermark, one.second * 1000 + 999) for one in seconds],
        "late-records": [one.late_records for one in seconds],
        "state-bytes": [one.state_size for one in seconds],
    }


def splits(job: MonitoredJob) -> Json:
    """`GET .../splits`: the position of each split. Those that hold back event time come first."""
    committed = job.progress.committed
    found = [
        _split(job, vertex, split_id, position, committed.alignment.get(key, {}).get(split_id))
        for vertex in job.graph.vertices
        if vertex.is_source
        for key in (vertex.operators[0].operator_id,)
        for split_id, position in committed.of_source(key).items()
    ]
    return {"now": now_ms(), "splits": sorted(found, key=lambda split: -(split["lag"] or 0))}


def _split(
    job: MonitoredJob, vertex: JobVertex, split_id: str, position: SplitPosition, aligned: list[int] | None
) -> Json:
    reading = None if position.subtask is None else job.subtasks(vertex).get(position.subtask)
    watermark = aligned[0] if aligned else MIN_WATERMARK if reading is None else reading.output_watermark
    return {
        "vertex": vertex_hex(vertex),
        "source": vertex.operators[0].name,
        "split": split_id,
        "offset": _offset_text(position.offset),
        "state": position.state.name,
        "subtask": position.subtask,
        "watermark": watermark_text(watermark),
        "watermark-of": "split" if aligned else "subtask",
        "pending": job.progress.pending.get(vertex.operators[0].operator_id, {}).get(split_id),
        "lag": None if position.state.is_finished else event_time_lag(watermark, now_ms()),
        "paused": bool(aligned and len(aligned) > 1 and aligned[1]),
    }


def _offset_text(offset: Any) -> str:
    text = "" if offset is None else str(offset)
    return text if len(text) <= _SHOWN_OFFSET else text[:_SHOWN_OFFSET] + "…"
