"""Pools of Python workers whose daemon was killed: Spark must forget them, or it stumbles over each worker in turn.

Spark keeps idle Python workers in pools, each behind a daemon that forks them. An idle worker that has ended is found
when it is wanted, and Spark tells its daemon to bury it; if the daemon has ended as well, that call fails, and with it
the task or the query, once for every idle worker of every pool. One event (all Python processes of a machine are
killed, say for want of memory) would be half a dozen failures, and use up a restart strategy. A pool that was stopped
starts a new daemon with the next worker.
"""

from __future__ import annotations

import contextlib
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

__all__ = ["forget_dead_pools"]

_ENVIRONMENT = "org.apache.spark.SparkEnv"
_POOL = "org.apache.spark.api.python.PythonWorkerFactory"


def forget_dead_pools(spark: SparkSession) -> int:
    """Stop the pools of the driver's JVM whose daemon has ended; how many there were.

    The pools are no part of Spark's interface: where they cannot be had, failures are met one by one.
    """
    context: Any = spark.sparkContext
    stopped = 0
    with contextlib.suppress(Py4JError):
        daemon_of = _private(context, _POOL, "daemon")
        pools = _private(context, _ENVIRONMENT, "pythonWorkers").get(context._jsc.sc().env()).values().iterator()
        while pools.hasNext():
            pool = pools.next()
            daemon = daemon_of.get(pool)
            if daemon is not None and not daemon.isAlive():
                pool.stop()
                stopped += 1
    return stopped


def _private(context: Any, owner: str, name: str) -> Any:
    field = context._jvm.java.lang.Class.forName(owner).getDeclaredField(name)
    field.setAccessible(True)
    return field
