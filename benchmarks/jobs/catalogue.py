"""The letters of the benchmark jobs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Job:
    """One job: the module under benchmarks/jobs and the function in it that builds the stream."""

    letter: str
    title: str
    module: str
    builder: str = "build"
    keys: int = 1_000
    measures_latency: bool = False
    uses_kafka: bool = False


JOBS = {
    job.letter: job
    for job in (
        Job("a", "sequence, map, filter, discard", "map_filter"),
        Job("b", "running average, 1,000 keys", "keyed_average"),
        Job("c", "running average, 1,000,000 keys", "keyed_average", keys=1_000_000),
        Job("d", "tumbling windows of 1 s", "windows", "build_tumbling"),
        Job("e", "sliding windows of 60 s every 1 s", "windows", "build_sliding"),
        Job("f", "session windows", "windows", "build_session"),
        Job("g", "window join of two streams", "windows", "build_join"),
        Job("k", "Kafka, count by key, Kafka, exactly once", "kafka_count", uses_kafka=True),
        Job("m", "the same: latency at 1,000 records/s", "kafka_count", measures_latency=True, uses_kafka=True),
        Job("l", "latency at 1,000 records/s", "latency", measures_latency=True),
    )
}
