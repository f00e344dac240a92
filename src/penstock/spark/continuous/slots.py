"""The number of tasks in the continuous mode, and the rejection of jobs that cannot run in it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.common.errors import InvalidProgramError
from penstock.graph.job_graph import JobGraph
from penstock.graph.settings import JobSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_can_run_continuously", "slots_needed", "slots_of", "with_slots", "without_optimising_compiler"]

_MASTER = "spark.master"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def slots_needed(graph: JobGraph) -> int:
    """Return the number of tasks. As in a slot of Flink, each has one subtask of each operator."""
    return max((vertex.parallelism for vertex in graph.vertices), default=1)


def check_can_run_continuously(graph: JobGraph, slots: int | None = None) -> None:
    """Reject a job that cannot run in the continuous mode.

    :param slots: how many tasks Spark can run at the same time, if known
    """
    name = graph.settings.job_name
    if graph.frames:
        raise InvalidProgramError(
            f"job '{name}' reads DataFrames, which Spark can only bring in batches: the continuous mode cannot run it. "
            "Run it with penstock.execution.mode: micro-batch"
        )
    needed = slots_needed(graph)
    if slots is not None and needed > slots:
        raise InvalidProgramError(
            f"job '{name}' has parallelism {needed}, but Spark has {slots} slots: in the continuous mode all tasks run "
            f"at the same time. Lower the parallelism, give Spark more cores (spark.master: local[{needed}], or more "
            "executors), or use penstock.execution.mode: micro-batch"
        )


def with_slots(settings: JobSettings, needed: int) -> JobSettings:
    """Give a local Spark one slot per task, even if there are fewer cores, unless the user sets its size."""
    if _MASTER in settings.configuration:
        return settings
    slots = max(needed, os.cpu_count() or 1)
    return replace(settings, configuration={**settings.configuration, _MASTER: f"local[{slots}]"})


def without_optimising_compiler(settings: JobSettings) -> JobSettings:
    """Disable the optimizing compiler of an embedded Spark: once the tasks run, the JVM has nothing more to do.

    This compiler takes nearly half of the CPU time of the start, and pays off only in long work.
    """
    options = settings.configuration.get(_JAVA_OPTIONS, "")
    added = f"-XX:TieredStopAtLevel=1 {options}".rstrip()  # the user's options come last, and win
    return replace(settings, configuration={**settings.configuration, _JAVA_OPTIONS: added})


def slots_of(session: SparkSession) -> int | None:
    """Return how many tasks a local Spark runs at the same time, or None for a cluster, where Spark checks this."""
    context = session.sparkContext
    return int(context.defaultParallelism) if str(context.master).startswith("local") else None
