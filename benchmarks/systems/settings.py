"""The configuration of each variant: what is set, and nothing else is.

`default` sets nothing. `process` and `thread` are PyFlink's two ways to run Python code, tuned for the job: large
bundles and a state cache that holds every key for throughput; small bundles and a short buffer timeout for latency.
`continuous` is Penstock's continuous mode, with a checkpoint every second; for latencies of Kafka every 200 ms, as in
PyFlink.
"""

from __future__ import annotations

from benchmarks.jobs.catalogue import Job

_PYFLINK_THROUGHPUT = {
    "python.fn-execution.bundle.size": "100000",
    "python.fn-execution.bundle.time": "1000",
    "python.state.cache-size": "2000000",
    "pipeline.object-reuse": "true",
}
_PYFLINK_LATENCY = {
    "python.fn-execution.bundle.size": "100",
    "python.fn-execution.bundle.time": "5",
    "python.state.cache-size": "100000",
    "pipeline.object-reuse": "true",
    "execution.buffer-timeout.interval": "1 ms",
}


# Exactly once needs checkpoints; results become visible with them.
_CHECKPOINT = "execution.checkpointing.interval"


def settings_for(package: str, variant: str, job: Job) -> dict[str, str]:
    """The configuration values of a variant for a job."""
    checkpoints = {_CHECKPOINT: "200 ms" if job.measures_latency else "1 s"} if job.commits else {}
    if package == "penstock" and variant == "continuous":
        return {"penstock.execution.mode": "continuous", **checkpoints}
    if package != "pyflink":
        return {}
    if variant in ("default", "loopback"):
        return checkpoints
    tuned = _PYFLINK_LATENCY if job.measures_latency else _PYFLINK_THROUGHPUT
    return {**tuned, **checkpoints, "python.execution-mode": variant}
