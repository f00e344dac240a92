"""A real Kafka broker for tests and benchmarks: one node in KRaft mode, on a free port, removed after the tests.

The broker is Apache's own. Maven fetches its jars, once, into the user's cache directory. If Maven, Java or the network
is missing, :class:`BrokerUnavailableError` names it.

>>> with KafkaBroker() as broker:  # doctest: +SKIP
...     broker.create_topic("readings", partitions=4)
...     print(broker.bootstrap_servers)
127.0.0.1:40123
"""

from __future__ import annotations

import contextlib
import logging
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from penstock.spark.java import find_java
from penstock.testing.maven import maven_jars
from penstock.testing.server import ServerUnavailableError, TemporaryServer, end, free_ports

__all__ = ["KAFKA_VERSION", "BrokerUnavailableError", "KafkaBroker", "kafka_jars"]

KAFKA_VERSION = "4.1.0"
_START_SECONDS = 120.0
_CLUSTER_ID = "cGVuc3RvY2stdGVzdHMtMQ"
_QUIET = {"logger": logging.getLogger("penstock.kafka")}

# One node that is broker and controller. Internal topics have one partition, so the broker starts faster.
_PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={directory}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
"""


BrokerUnavailableError = ServerUnavailableError


class KafkaBroker(TemporaryServer):
    """A running broker. Use it as a context manager.

    :param heap: the JVM's memory
    :param fast_start: start quickly and compute slowly, for tests; benchmarks disable it
    :param properties: further settings of the broker
    """

    def __init__(
        self, *, heap: str = "256m", fast_start: bool = True, properties: dict[str, str] | None = None
    ) -> None:
        java = find_java()
        if java is None:
            raise BrokerUnavailableError("a Kafka broker needs Java 17 or newer")
        self._jars = kafka_jars()
        self._java = str(java / "bin" / "java")
        self._options = [f"-Xmx{heap}", "-XX:+UseSerialGC"] + (["-XX:TieredStopAtLevel=1"] if fast_start else [])
        self._properties = properties or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._admin: Any = None
        self.port = 0

    @property
    def bootstrap_servers(self) -> str:
        """Return the addresses for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def admin(self) -> Any:
        """Return an AdminClient of confluent-kafka."""
        from confluent_kafka.admin import AdminClient

        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap_servers}, **_QUIET)
        return self._admin

    def _start(self) -> None:
        self.port, controller = free_ports(2)
        text = _PROPERTIES.format(port=self.port, controller=controller, directory=self.directory)
        text += "".join(f"{key}={value}\n" for key, value in self._properties.items())
        settings = self.directory / "server.properties"
        settings.write_text(text)
        self._run("kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(settings))
        self._process = self._launch("broker", self._command("kafka.Kafka", str(settings)))
        self._wait(self._process)

    def _stop(self) -> None:
        self._admin = None
        end(self._process)
        self._process = None

    def create_topic(self, name: str, partitions: int = 1, **settings: str) -> None:
        """Create a topic, with settings such as ``cleanup_policy="compact"``."""
        from confluent_kafka.admin import NewTopic

        config = {key.replace("_", "."): value for key, value in settings.items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)
        for future in self.admin.create_topics([topic]).values():
            future.result()
        self._wait_for_partitions(name, partitions)

    def add_partitions(self, name: str, total: int) -> None:
        """Increase the number of a topic's partitions."""
        from confluent_kafka.admin import NewPartitions

        for future in self.admin.create_partitions([NewPartitions(name, total)]).values():
            future.result()
        self._wait_for_partitions(name, total)

    # -- the process --------------------------------------------------------------------------------------------

    def _command(self, *program: str) -> list[str]:
        return [self._java, *self._options, "-cp", str(self._jars / "*"), *program]

    def _run(self, *program: str) -> None:
        done = subprocess.run(self._command(*program), capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode != 0:
            raise BrokerUnavailableError(f"{program[0]} failed: {(done.stderr or done.stdout)[-500:]}")

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                break
            if process.poll() is not None or time.monotonic() > deadline:
                said = (self.directory / "broker.log").read_text(errors="replace")
                raise BrokerUnavailableError(f"the broker did not start: {said[-1000:]}")
            time.sleep(0.05)
        self.admin.list_topics(timeout=_START_SECONDS)

    def _wait_for_partitions(self, name: str, partitions: int) -> None:
        """Wait for a topic: the broker answers before its metadata is updated, so clients may briefly miss it."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            topic = self.admin.list_topics(name, timeout=_START_SECONDS).topics[name]
            if len(topic.partitions) == partitions and all(p.leader >= 0 for p in topic.partitions.values()):
                return
            if time.monotonic() > deadline:
                raise BrokerUnavailableError(f"topic {name} did not get its {partitions} partitions")
            time.sleep(0.01)


def kafka_jars() -> Path:
    """Return the directory with the broker's jars. Fetch them if necessary."""
    return maven_jars("kafka", KAFKA_VERSION, [("org.apache.kafka", "kafka_2.13", KAFKA_VERSION)])
