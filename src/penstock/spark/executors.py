"""The executors of a Spark, from its own bookkeeping."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from penstock.runtime.job.executor_facts import ExecutorFacts

__all__ = ["running_executors"]

_DRIVER = "driver"


def running_executors(spark: SparkSession) -> list[ExecutorFacts]:
    """Return the live executors. A local Spark has none: its driver runs the tasks itself."""
    context = spark.sparkContext
    if str(context.master).startswith("local"):
        return []
    try:
        java: Any = context._jsc
        summaries = java.sc().statusStore().executorList(True)
        heap = java.sc().executorMemory() << 20
        found = [summaries.apply(index) for index in range(summaries.size())]
        return [_facts(one, heap) for one in found if one.id() != _DRIVER]
    except (Py4JError, ConnectionError):  # Spark has ended, and the job with it
        return []


def _facts(summary: Any, heap: int) -> ExecutorFacts:
    host, _, port = str(summary.hostPort()).rpartition(":")
    peaks = summary.peakMemoryMetrics()
    names = {
        "heap_used": "JVMHeapMemory",
        "non_heap_used": "JVMOffHeapMemory",
        "direct_used": "DirectPoolMemory",
        "mapped_used": "MappedPoolMemory",
    }
    values = {name: peaks.get().getMetricValue(key) for name, key in names.items()} if peaks.isDefined() else {}
    collections = [("all collectors", 0, int(summary.totalGCTime()))]
    if peaks.isDefined():
        collections = [
            (name, peaks.get().getMetricValue(f"{name}GCCount"), peaks.get().getMetricValue(f"{name}GCTime"))
            for name in ("Minor", "Major")
        ]
    return ExecutorFacts(
        executor_id=str(summary.id()),
        host=host,
        port=int(port),
        cores=int(summary.totalCores()),
        started=int(summary.addTime().getTime()),
        heap_max=heap,
        managed=int(summary.maxMemory()),
        collections=tuple(collections),
        **values,
    )
