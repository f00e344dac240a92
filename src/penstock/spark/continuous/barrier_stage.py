"""The tasks of a job as one barrier stage of Spark, which starts all of them at the same time.

Tasks exchange their addresses through Spark (`allGather`), connect to each other and to the driver, and run until the
driver stops them. A task that fails notifies the driver and ends normally: the driver, not Spark, handles failures. If
a process is killed, Spark starts the stage again. When the driver has all tasks, it stops listening, so tasks that
Spark starts later find no driver and end.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import sys
import threading
from collections.abc import Callable, Iterable

from py4j.protocol import Py4JError
from pyspark import BarrierTaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.common.errors import JobExecutionError, PenstockError
from penstock.spark.continuous.garbage import GarbagePlan
from penstock.spark.continuous.messages import Failed, Message
from penstock.spark.continuous.sockets import (
    Accepted,
    Listener,
    NetworkSettings,
    SocketDriverLinks,
    SocketTaskLinks,
    connect,
    connect_tasks,
    exit_process,
)
from penstock.spark.continuous.task import ContinuousTask
from penstock.spark.continuous.tls import TlsFiles
from penstock.spark.failures import portable_error
from penstock.spark.session import failure_of
from penstock.spark.worker import unpack_in_worker

__all__ = ["BarrierStage"]

_LOOK_SECONDS = 0.1
_END_SECONDS = 5.0
_SWITCH_SECONDS = 0.0005  # how long a step may wait for the thread that writes checkpoints


class BarrierStage:
    """One attempt at a job.

    :param count: the number of tasks
    :param ports: the range for TCP connections
    :param tls: for TCP connections
    """

    def __init__(
        self,
        spark: SparkSession,
        count: int,
        group: str,
        name: str,
        ports: tuple[int, int] | None = None,
        tls: TlsFiles | None = None,
    ) -> None:
        self._spark = spark
        self._count = count
        self._group = group
        self._name = name
        self._network = NetworkSettings(secrets.token_bytes(32), ports, tls)
        conf = spark.sparkContext.getConf()
        host = None if is_one_machine(spark) else str(conf.get("spark.driver.host"))
        self._listener = Listener(host, self._network, conf.get("spark.driver.bindAddress"))
        self._failure: PenstockError | None = None
        self._thread = threading.Thread(target=self._run, name=f"barrier stage of {name}", daemon=True)

    def start(self, look: Callable[[], None]) -> SocketDriverLinks:
        """Start all tasks, and wait until they have connected.

        :param look: called while waiting; raises an error to give up
        """
        self._thread.start()
        accepted: list[Accepted] = []
        while len(accepted) < self._count:
            look()
            if not self._thread.is_alive():
                raise self._failure or JobExecutionError(f"the tasks of {self._name} have ended before the job")
            new = self._listener.accept(_LOOK_SECONDS)
            if new is not None:
                accepted = newest([*accepted, new])
        self._listener.close()
        return SocketDriverLinks({each.task: each.connection for each in accepted})

    def end(self) -> None:
        """End all running tasks, and wait until they have ended."""
        self._listener.close()
        self._thread.join(0.5)
        if self._thread.is_alive():
            with contextlib.suppress(Py4JError, ConnectionError):
                self._spark.sparkContext.cancelJobGroup(self._group)
            self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        context = self._spark.sparkContext
        count, address, network = self._count, self._listener.address, self._network

        def task(_: Iterable[int]) -> Iterable[int]:
            run_task(count, address, network)
            return ()

        try:
            context.setJobGroup(self._group, self._name, interruptOnCancel=True)
            context.parallelize(range(count), count).barrier().mapPartitions(task).collect()
        except (PySparkException, Py4JError, ConnectionError) as error:
            self._failure = failure_of(self._spark, error)


class _PortableLinks(SocketTaskLinks):
    """Converts errors so that the driver can read them."""

    def tell_driver(self, message: Message) -> None:
        if isinstance(message, Failed):
            message = Failed(message.task, portable_error(message.error))
        super().tell_driver(message)


def newest(accepted: list[Accepted]) -> list[Accepted]:
    """Return the connections of the last start, and close those of earlier ones."""
    last = max(each.generation for each in accepted)
    for each in accepted:
        if each.generation < last:
            each.connection.close()
    return [each for each in accepted if each.generation == last]


def is_one_machine(spark: SparkSession) -> bool:
    """Whether all tasks run on the driver's machine. local-cluster counts as a cluster, because it has executors."""
    master = str(spark.sparkContext.master)
    return master == "local" or master.startswith("local[")


def run_task(count: int, driver: str, network: NetworkSettings) -> None:
    """Run the body of a Spark task."""
    context = BarrierTaskContext.get()
    index = context.partitionId()
    host = None if driver.startswith("unix:") else context.getTaskInfos()[index].address.rpartition(":")[0]
    listener = Listener(host, network)
    try:
        answers = context.allGather(json.dumps([listener.address, context.taskAttemptId()]))
        addresses, attempts = zip(*map(json.loads, answers), strict=True)
        generation = max(attempts)
        try:
            to_driver = connect(driver, network, index, generation)
        except OSError:
            return  # the driver has all its tasks, or has ended
        outgoing, incoming = connect_tasks(listener, network, index, generation, addresses)
    finally:
        listener.close()
    links = _PortableLinks(to_driver, outgoing, exit_process)
    for connection in incoming:
        links.add_incoming(connection)
    switch_interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        with contextlib.suppress(Exception):  # the driver already knows
            ContinuousTask(index, links, GarbagePlan, unpack_in_worker).run()
    finally:
        links.close()
        sys.setswitchinterval(switch_interval)
