"""The letters of the benchmark jobs."""

from __future__ import annotations

from dataclasses import dataclass

_WINDOWS = "Windows"


@dataclass(slots=True, frozen=True)
class Job:
    """One job: its letter or name, the module under benchmarks/ and the function in it that builds the stream."""

    letter: str
    title: str
    module: str
    builder: str = "build"
    keys: int = 1_000
    measures_latency: bool = False
    uses_kafka: bool = False
    writes_files: bool = False
    reads_files: bool = False
    columns: list[str] | None = None  # of the files it writes, where a system may write more of them
    directory: str = "jobs"
    comparable: bool = True  # whether the results depend on the input alone
    group: str = "Records, keys and state"  # its panel in the picture
    stretch: int = 1  # how much longer than others it is measured
    rate: int = 1_000  # records per second, where latency is measured

    @property
    def commits(self) -> bool:
        """Whether results become visible with checkpoints only."""
        return self.uses_kafka or self.writes_files


def _nexmark(name: str, title: str, *, comparable: bool = True) -> Job:
    return Job(name, title, "queries", f"build_{name}", directory="nexmark", comparable=comparable, group="Nexmark")


def _latency(name: str, title: str, builder: str = "build", *, keys: int = 1_000, rate: int = 1_000) -> Job:
    return Job(name, title, "latency", builder, keys=keys, measures_latency=True, group="Latency", rate=rate)


JOBS = {
    job.letter: job
    for job in (
        Job("a", "sequence, map, filter, discard", "map_filter"),
        Job("b", "running average, 1,000 keys", "keyed_average"),
        Job("c", "running average, 1,000,000 keys", "keyed_average", keys=1_000_000, stretch=3),
        Job("d", "tumbling windows of 1 s", "windows", "build_tumbling", group=_WINDOWS),
        Job("e", "sliding windows of 60 s every 1 s", "windows", "build_sliding", group=_WINDOWS),
        Job("f", "session windows", "windows", "build_session", group=_WINDOWS),
        Job("g", "window join of two streams", "windows", "build_join", group=_WINDOWS),
        Job("p", "pattern of three events within 10 s (CEP)", "pattern", group=_WINDOWS),
        Job("k", "Kafka, count by key, Kafka, exactly once", "kafka_count", uses_kafka=True, group="Connectors"),
        Job(
            "n",
            "files, count in windows of 1 s, Parquet files",
            "files_count",
            writes_files=True,
            reads_files=True,
            columns=["key", "window_end", "count"],
            group="Connectors",
        ),
        Job("r", "deduplication with TTL, Parquet files", "deduplicate", writes_files=True, group="Ordinary jobs"),
        Job("s", "numpy features of sliding windows", "rolling_features", group="Ordinary jobs"),
        Job("t", "slowly changing dimension, timers", "changing_dimension", group="Ordinary jobs"),
        Job(
            "m",
            "Kafka to Kafka, exactly once: latency at 1,000 records/s",
            "kafka_count",
            measures_latency=True,
            group="Latency",
            uses_kafka=True,
        ),
        Job(
            "m1",
            "Kafka to Kafka, at least once: latency at 1,000 records/s",
            "kafka_count",
            "build_at_least_once",
            measures_latency=True,
            group="Latency",
            uses_kafka=True,
        ),
        _latency("l", "socket, state, sink: latency at 1,000 records/s"),
        _latency("l10k", "as (l), at 10,000 records/s", rate=10_000),
        _latency("l50k", "as (l), at 50,000 records/s", rate=50_000),
        _latency("l2", "as (l), with two exchanges", "build_two"),
        _latency("lm", "as (l), with a million keys in state", "build_million", keys=1_000_000),
        _latency("lw", "socket, tumbling windows, sink: latency at 1,000 records/s", "build_window"),
        _nexmark("q0", "Nexmark: pass through"),
        _nexmark("q1", "Nexmark: currency conversion"),
        _nexmark("q2", "Nexmark: selection"),
        _nexmark("q3", "Nexmark: local items"),
        _nexmark("q4", "Nexmark: average price by category"),
        _nexmark("q5", "Nexmark: hot items"),
        _nexmark("q6", "Nexmark: average price by seller"),
        _nexmark("q7", "Nexmark: highest bid"),
        _nexmark("q8", "Nexmark: new sellers"),
        _nexmark("q8_co_group", "Nexmark: new sellers, with co_group"),
        _nexmark("q11", "Nexmark: sessions of bidders"),
        _nexmark("q12", "Nexmark: processing-time windows", comparable=False),
    )
}

NEXMARK = tuple(name for name, job in JOBS.items() if job.directory == "nexmark")
