"""`/jobs/:jobid/checkpoints`: counts, summaries, history, details and configuration."""

from __future__ import annotations

from typing import Any

from penstock.cluster.monitored_job import MonitoredJob, vertex_hex
from penstock.cluster.rest.jobs import Json
from penstock.cluster.rest.responses import RestError, not_a_number, parse_number
from penstock.runtime.job.checkpoint_statistics import CheckpointStatistics, Summary
from penstock.runtime.plan.job_vertex import JobVertex

_PERCENTILES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p999": 99.9}
_NOTHING = Summary()


def checkpoints(job: MonitoredJob, *, everything: bool = False) -> Json:
    """`GET /jobs/:jobid/checkpoints`. `everything` returns the whole history instead of the last ten."""
    history = job.progress.checkpoints
    restored = history.latest_restored
    return {
        "counts": {
            "restored": history.restored,
            "total": history.completed + history.failed,
            "in_progress": 0,
            "completed": history.completed,
            "failed": history.failed,
        },
        "summary": {
            "checkpointed_size": summary_of(history.written_size),
            "state_size": summary_of(history.state_size),
            "end_to_end_duration": summary_of(history.duration),
            "alignment_buffered": summary_of(_NOTHING),
            "processed_data": summary_of(_NOTHING),
            "persisted_data": summary_of(_NOTHING),
        },
        "latest": {
            "completed": _statistics(job, history.latest_completed),
            "savepoint": _statistics(job, history.latest_savepoint),
            "failed": _statistics(job, history.latest_failed),
            "restored": None
            if restored is None
            else {
                "id": restored[0],
                "restore_timestamp": restored[1],
                "is_savepoint": restored[2] is not None,
                "external_path": restored[2] or job.settings.checkpoint_dir,
            },
        },
        "history": [_statistics(job, known) for known in (history.all() if everything else history.latest())],
    }


def summary_of(summary: Summary) -> Json:
    """Return minimum, maximum, mean and percentiles."""
    percentiles = {name: not_a_number(summary.percentile(percent)) for name, percent in _PERCENTILES.items()}
    return {"min": summary.minimum, "max": summary.maximum, "avg": summary.average, **percentiles}


def _statistics(job: MonitoredJob, checkpoint: CheckpointStatistics | None) -> Json | None:
    if checkpoint is None:
        return None
    failed = checkpoint.failure is not None
    found: Json = {
        "className": "failed" if failed else "completed",
        "id": checkpoint.checkpoint_id,
        "status": "FAILED" if failed else "COMPLETED",
        "is_savepoint": checkpoint.savepoint is not None,
        "savepointFormat": None if checkpoint.savepoint is None else "CANONICAL",
        "trigger_timestamp": checkpoint.triggered,
        "latest_ack_timestamp": checkpoint.completed,
        "checkpointed_size": checkpoint.written_size,
        "state_size": checkpoint.state_size,
        "end_to_end_duration": checkpoint.duration,
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": checkpoint.subtasks,
        "num_acknowledged_subtasks": checkpoint.subtasks,
        "checkpoint_type": "CHECKPOINT" if checkpoint.savepoint is None else "SAVEPOINT",
        "tasks": {},
    }
    if failed:
        found |= {"failure_timestamp": checkpoint.completed, "failure_message": checkpoint.failure}
    else:
        place = checkpoint.savepoint or job.settings.checkpoint_dir or "<checkpoint-not-externally-addressable>"
        found |= {"external_path": place, "discarded": False}
    return found


def checkpoint_details(job: MonitoredJob, checkpoint_id: str) -> Json:
    """`GET .../checkpoints/details/:checkpointid`."""
    checkpoint = _find(job, checkpoint_id)
    found = _statistics(job, checkpoint)
    assert found is not None
    found["tasks"] = {vertex_hex(vertex): _task_statistics(job, vertex, checkpoint) for vertex in job.graph.vertices}
    return found


def _find(job: MonitoredJob, text: str) -> CheckpointStatistics:
    checkpoint = job.progress.checkpoints.find(parse_number(text, "checkpointid"))
    if checkpoint is None:
        raise RestError(404, f"Could not find checkpointing statistics for checkpoint {text}.")
    return checkpoint


def _task_statistics(job: MonitoredJob, vertex: JobVertex, checkpoint: CheckpointStatistics) -> Json:
    latest = checkpoint is job.progress.checkpoints.latest_completed
    size = sum(subtask.state_bytes for subtask in job.subtasks(vertex).values()) if latest else 0
    return {
        "id": checkpoint.checkpoint_id,
        "status": "COMPLETED" if checkpoint.failure is None else "FAILED",
        "latest_ack_timestamp": checkpoint.completed,
        "checkpointed_size": 0,
        "state_size": size,
        "end_to_end_duration": checkpoint.duration,
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": vertex.parallelism,
        "num_acknowledged_subtasks": vertex.parallelism,
    }


def checkpoint_subtasks(job: MonitoredJob, checkpoint_id: str, vertex: JobVertex) -> Json:
    """`GET .../checkpoints/details/:checkpointid/subtasks/:vertexid`."""
    checkpoint = _find(job, checkpoint_id)
    known = job.subtasks(vertex)
    latest = checkpoint is job.progress.checkpoints.latest_completed
    sizes = [known[index].state_bytes if latest and index in known else 0 for index in range(vertex.parallelism)]
    state, duration = Summary(), Summary()
    for size in sizes:
        state.add(size)
        duration.add(checkpoint.duration)
    nothing = summary_of(_NOTHING)
    return {
        **_task_statistics(job, vertex, checkpoint),
        "summary": {
            "checkpointed_size": nothing,
            "state_size": summary_of(state),
            "end_to_end_duration": summary_of(duration),
            "checkpoint_duration": {"sync": nothing, "async": nothing},
            "alignment": {"buffered": nothing, "processed": nothing, "persisted": nothing, "duration": nothing},
            "start_delay": nothing,
        },
        "subtasks": [_subtask_statistics(checkpoint, index, size) for index, size in enumerate(sizes)],
    }


def _subtask_statistics(checkpoint: CheckpointStatistics, index: int, size: int) -> Json:
    return {
        "className": "completed",
        "index": index,
        "status": "completed",
        "ack_timestamp": checkpoint.completed,
        "end_to_end_duration": checkpoint.duration,
        "checkpointed_size": 0,
        "state_size": size,
        "checkpoint": {"sync": 0, "async": 0},
        "alignment": {"buffered": 0, "processed": 0, "persisted": 0, "duration": 0},
        "start_delay": 0,
        "unaligned_checkpoint": False,
        "aborted": False,
    }


def checkpoint_config(job: MonitoredJob) -> Json:
    """`GET .../checkpoints/config`: the effective settings, including defaults."""
    settings = job.settings
    retention: Any = settings.checkpoint_retention
    return {
        "mode": "exactly_once",
        "interval": settings.checkpoint_interval or 0,
        "timeout": 600_000,
        "min_pause": 0,
        "max_concurrent": 1,
        "externalization": {
            "enabled": settings.checkpoint_dir is not None,
            "delete_on_cancellation": retention == "DELETE_ON_CANCELLATION",
        },
        "state_backend": "PagedStateBackend",
        "checkpoint_storage": "FileSystemCheckpointStorage",
        "unaligned_checkpoints": False,
        "tolerable_failed_checkpoints": 0,
        "aligned_checkpoint_timeout": 0,
        "checkpoints_after_tasks_finish": True,
        "state_changelog_enabled": True,
        "changelog_periodic_materialization_interval": 0,
        "changelog_storage": "rocksdb",
    }
