"""Spark's settings for a Penstock job: required ones, and those that make a small micro-batch cheap."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["cluster_settings", "driver_memory", "local_settings", "runtime_settings", "static_settings"]

_CHECKPOINT_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_RUNTIME: Mapping[str, str] = {
    # State: RocksDB, committed as a changelog; a snapshot is taken in the background now and then.
    "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # A changelog is two files for every batch and partition, which go when two later snapshots are there. At Spark's
    # own pace, once a minute, those are ten thousand files of a job with two partitions and fifteen batches a second.
    "spark.sql.streaming.stateStore.maintenanceInterval": "10s",
    # Counting rows costs a read per write, and the count is not used.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # Hadoop's FileContext forks a `readlink` for each file of a local checkpoint; its older sibling does not.
    "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINT_FILES,
    # Empty batches would only serve Spark's own watermarks and timers, which a job does not use.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # The source waits for data itself (a long poll); Spark need not wait on top.
    "spark.sql.streaming.pollingDelay": "1ms",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "3",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.stateStore.numStateStoreInstanceMetricsToReport": "0",
    "spark.sql.streaming.stateStore.coordinatorReportSnapshotUploadLag": "false",
    "spark.sql.streaming.stateStore.forceSnapshotUploadOnLag": "false",
    # Adaptive execution plans a query again at run time: nothing to gain for two fixed stages.
    "spark.sql.adaptive.enabled": "false",
    # A batch of buffers has few rows: generating and compiling code for it costs more than it saves.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # If a worker dies, Spark adds what the worker has noted in a file: which operator it was running.
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    # Plans as text, for a UI that is not there.
    "spark.sql.maxPlanStringLength": "1024",
    "spark.sql.ui.explainMode": "simple",
}

_STATIC: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Bookkeeping for a UI, per job, stage, task and query: bounded, and small.
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.sql.streaming.ui.enabled": "false",
    "spark.ui.liveUpdate.period": "-1",
    # Unix sockets between the JVM and its Python workers: no delayed acknowledgements.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.catalogImplementation": "in-memory",
    # As for workers of SQL, so that all are forked by the same process.
    "spark.python.worker.faulthandler.enabled": "true",
    # A task goes where there is room: waiting 3 s for its old place is not for batches of some milliseconds.
    "spark.locality.wait": "0",
}


def runtime_settings(shuffle_partitions: int | None = None) -> dict[str, str]:
    """Return the settings that can be set on a running session, also on one that the user brings.

    >>> runtime_settings(4)["spark.sql.shuffle.partitions"]
    '4'
    """
    settings = dict(_RUNTIME)
    if shuffle_partitions is not None:
        # One partition per channel. Spark keeps the number of a query's first batch forever.
        settings["spark.sql.shuffle.partitions"] = str(shuffle_partitions)
    return settings


def static_settings() -> dict[str, str]:
    """Settings that are needed before Spark starts, wherever it runs."""
    return dict(_STATIC)


def local_settings(directory: Path) -> dict[str, str]:
    """Settings of a local Spark only; temporary files go below ``directory``."""
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": driver_memory(),
        "spark.local.dir": str(directory),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.sql.artifact.isolation.enabled": "false",
        # Everything stays on this machine: compressing it for the way takes longer than the way.
        "spark.broadcast.compress": "false",
        "spark.broadcast.checksum": "false",
        "spark.shuffle.compress": "false",
    }


def cluster_settings() -> dict[str, str]:
    """Settings of a Spark with separate executors."""
    return {
        # A task that is lost with its executor is run again. If it does not send what it sent before (a function that
        # rolls dice), everything that has read from it must be run again, too, or a record would count twice or never.
        # Spark compares what was sent; where it can no longer take something back, the batch fails as a whole.
        "spark.sql.shuffle.orderIndependentChecksum.enabled": "true",
        "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "true",
    }


def driver_memory() -> str:
    """A quarter of this machine's memory, but between 1 and 4 GB: state lives outside of Java's heap."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return "1g"
    return f"{min(max(total // 4, 1 << 30), 4 << 30) >> 20}m"
