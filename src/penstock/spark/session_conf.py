"""Spark's settings for a Penstock job: required ones, and those that make a small micro-batch cheap."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["cluster_settings", "driver_memory", "local_settings", "runtime_settings", "static_settings"]

_CHECKPOINT_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_RUNTIME: Mapping[str, str] = {
    # State: RocksDB, committed as a changelog. A snapshot is taken in the background from time to time.
    "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # A changelog has two files per batch and partition, which are deleted after two later snapshots. With Spark's
    # default, once per minute, a job with two partitions and fifteen batches per second would have ten thousand of
    # these files.
    "spark.sql.streaming.stateStore.maintenanceInterval": "10s",
    # Counting rows costs one read per write, and the count is not used.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # Hadoop's FileContext starts a `readlink` process for each file of a local checkpoint; the older API does not.
    "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINT_FILES,
    # Empty batches would only serve Spark's own watermarks and timers, which a job does not use.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # The source itself waits for data (a long poll), so Spark need not wait, too.
    "spark.sql.streaming.pollingDelay": "1ms",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "3",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.stateStore.numStateStoreInstanceMetricsToReport": "0",
    "spark.sql.streaming.stateStore.coordinatorReportSnapshotUploadLag": "false",
    "spark.sql.streaming.stateStore.forceSnapshotUploadOnLag": "false",
    # Adaptive execution plans a query again at run time, which does not help with two fixed stages.
    "spark.sql.adaptive.enabled": "false",
    # A batch of frames has few rows: generating and compiling code for it costs more than it saves.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # If a worker dies, Spark reports what the worker has noted in a file: the running operator.
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    # The text of plans is only for the UI, which is off.
    "spark.sql.maxPlanStringLength": "1024",
    "spark.sql.ui.explainMode": "simple",
}

_STATIC: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Bookkeeping for the UI, per job, stage, task and query: limited and small.
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
    # The same as for SQL workers, so that one daemon forks all of them.
    "spark.python.worker.faulthandler.enabled": "true",
    # A task runs where there is room: waiting 3 s for its previous place is too long for batches of some milliseconds.
    "spark.locality.wait": "0",
}


def runtime_settings(shuffle_partitions: int | None = None) -> dict[str, str]:
    """Return the settings that can be set on a running session, including one that the user provides.

    >>> runtime_settings(4)["spark.sql.shuffle.partitions"]
    '4'
    """
    settings = dict(_RUNTIME)
    if shuffle_partitions is not None:
        # One partition per channel. Spark keeps the number from a query's first batch forever.
        settings["spark.sql.shuffle.partitions"] = str(shuffle_partitions)
    return settings


def static_settings() -> dict[str, str]:
    """Return settings that must be set before Spark starts, wherever it runs."""
    return dict(_STATIC)


def local_settings(directory: Path) -> dict[str, str]:
    """Return settings of a local Spark. Temporary files go below ``directory``."""
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": driver_memory(),
        "spark.local.dir": str(directory),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.sql.artifact.isolation.enabled": "false",
        # Everything stays on this machine, where compressing data takes longer than moving it.
        "spark.broadcast.compress": "false",
        "spark.broadcast.checksum": "false",
        "spark.shuffle.compress": "false",
    }


def cluster_settings() -> dict[str, str]:
    """Return settings of a Spark with separate executors."""
    return {
        # A task that is lost with its executor runs again. If it then sends other data (because of a random function),
        # everything that has read from it must run again, too, or records would count twice or never. Spark compares
        # what was sent. If it can no longer undo something, the whole batch fails.
        "spark.sql.shuffle.orderIndependentChecksum.enabled": "true",
        "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "true",
        # By default, a JVM's directory for temporary files, which on YARN is too long a path for a socket.
        "spark.python.unix.domain.socket.dir": "/tmp",  # noqa: S108
    }


def driver_memory() -> str:
    """Return a quarter of this machine's memory, but between 1 and 4 GB: state lives outside of Java's heap."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return "1g"
    return f"{min(max(total // 4, 1 << 30), 4 << 30) >> 20}m"
