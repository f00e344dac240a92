"""`/jobs/:jobid/rescales`: the data of Flink's dashboard for jobs that can change their parallelism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cluster.monitored_job import vertex_hex
from penstock.cluster.rest.checkpoints import summary_of
from penstock.cluster.rest.responses import RestError
from penstock.runtime.job.checkpoint_statistics import Summary

if TYPE_CHECKING:
    from penstock.cluster.monitored_job import MonitoredJob
    from penstock.cluster.rest.jobs import Json
    from penstock.runtime.job.job_client import Rescaling

__all__ = ["rescale_details", "rescales_config", "rescales_history", "rescales_overview", "rescales_summary"]


def _state(rescaling: Rescaling) -> str:
    if rescaling.ended < 0:
        return "IN_PROGRESS"
    return "COMPLETED" if rescaling.error is None else "FAILED"


def _counts(job: MonitoredJob) -> Json:
    states = [_state(rescaling) for rescaling in job.client.rescalings]
    return {
        "ignored": 0,
        "inProgress": states.count("IN_PROGRESS"),
        "completed": states.count("COMPLETED"),
        "failed": states.count("FAILED"),
    }


def _entry(job: MonitoredJob, rescaling: Rescaling) -> Json:
    vertices = {
        vertex_hex(vertex): {
            "jobVertexId": vertex_hex(vertex),
            "jobVertexName": vertex.name,
            "slotSharingGroupId": job.job_id,
            "slotSharingGroupName": "default",
            "desiredParallelism": rescaling.wanted,
            "sufficientParallelism": 1,
            "preRescaleParallelism": rescaling.before,
            "postRescaleParallelism": rescaling.wanted if _state(rescaling) == "COMPLETED" else None,
        }
        for vertex in job.graph.vertices
    }
    return {
        "rescaleUuid": rescaling.rescaling_id,
        "resourceRequirementsUuid": rescaling.rescaling_id,
        "rescaleAttemptId": job.client.rescalings.index(rescaling) + 1,
        "vertices": vertices,
        "slots": {},
        "schedulerStates": [],
        "startTimestampInMillis": rescaling.started,
        "endTimestampInMillis": rescaling.ended,
        "terminalState": None if rescaling.ended < 0 else _state(rescaling),
        "triggerCause": "UPDATE_REQUIREMENT",
        "terminatedReason": {"COMPLETED": "SUCCEEDED", "FAILED": "EXCEPTION_OCCURRED"}.get(_state(rescaling)),
    }


def rescales_overview(job: MonitoredJob) -> Json:
    """`GET .../rescales/overview`."""

    def latest(state: str) -> Json | None:
        found = [rescaling for rescaling in job.client.rescalings if _state(rescaling) == state]
        return _entry(job, found[-1]) if found else None

    return {
        "rescalesCounts": _counts(job),
        "latest": {"completed": latest("COMPLETED"), "failed": latest("FAILED"), "ignored": None},
    }


def rescales_summary(job: MonitoredJob) -> Json:
    """`GET .../rescales/summary`: the durations of rescalings."""

    def durations(*states: str) -> Json:
        summary = Summary()
        for rescaling in job.client.rescalings:
            if _state(rescaling) in states:
                summary.add(rescaling.ended - rescaling.started)
        return summary_of(summary)

    return {
        "rescalesCounts": _counts(job),
        "rescalesDurationStatsInMillis": durations("COMPLETED", "FAILED"),
        "completedRescalesDurationStatsInMillis": durations("COMPLETED"),
        "ignoredRescalesDurationStatsInMillis": durations(),
        "failedRescalesDurationStatsInMillis": durations("FAILED"),
    }


def rescales_history(job: MonitoredJob) -> list[Json]:
    """`GET .../rescales/history`, newest first."""
    return [_entry(job, rescaling) for rescaling in reversed(job.client.rescalings)]


def rescales_config(job: MonitoredJob) -> Json:
    """`GET .../rescales/config`."""
    return {
        "rescaleHistoryMax": -1,
        "schedulerExecutionMode": None,
        "submissionResourceWaitTimeoutInMillis": 0,
        "submissionResourceStabilizationTimeoutInMillis": 0,
        "slotIdleTimeoutInMillis": 0,
        "executingCooldownTimeoutInMillis": 0,
        "executingResourceStabilizationTimeoutInMillis": 0,
        "maximumDelayForTriggeringRescaleInMillis": 0,
        "rescaleOnFailedCheckpointCount": 0,
    }


def rescale_details(job: MonitoredJob, rescaling_id: str) -> Json:
    """`GET .../rescales/details/:rescaleuuid`."""
    for rescaling in job.client.rescalings:
        if rescaling.rescaling_id == rescaling_id:
            return _entry(job, rescaling)
    raise RestError(404, f"There is no rescaling {rescaling_id} in the history.")
