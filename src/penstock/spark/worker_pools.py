"""Pools of Python workers whose daemon was killed: Spark must drop them, or it fails once for each idle worker.

Spark keeps idle Python workers in pools, each with a daemon that forks them. It notices an ended idle worker when it
needs one, and tells the worker's daemon. If the daemon has ended as well, this call fails, and the task or query with
it, once for every idle worker of every pool. One event (all Python processes of a machine are killed, for instance
because memory ran out) would be half a dozen failures, and exhaust a restart strategy. A stopped pool starts a new
daemon with the next worker.
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
    """Stop the pools of the driver's JVM whose daemon has ended, and return how many there were.

    The pools are not part of Spark's interface. Where they are not accessible, failures are handled one by one.
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
