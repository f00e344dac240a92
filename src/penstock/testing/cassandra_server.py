"""A real Cassandra for tests: one node on free ports of 127.0.0.1, removed after the tests.

Maven fetches Apache's own jars, once, into the user's cache directory. If Maven, Java or the network is missing,
:class:`~penstock.testing.server.ServerUnavailableError` names it.

>>> with CassandraServer() as server:  # doctest: +SKIP
...     print(server.execute("SELECT cluster_name FROM system.local").one())
Row(cluster_name='penstock')
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
from typing import Any

from penstock.connectors.cassandra.connection import Connection
from penstock.connectors.cassandra.options import ClusterBuilder
from penstock.spark.java import find_java
from penstock.testing.maven import maven_jars
from penstock.testing.server import ServerUnavailableError, TemporaryServer, end, free_ports

__all__ = ["CASSANDRA_VERSION", "CassandraServer"]

CASSANDRA_VERSION = "5.0.6"
_START_SECONDS = 120.0

# Cassandra uses internals of the JDK. The list is from its conf/jvm17-server.options.
_EXPORTS = """
    java.base/jdk.internal.misc java.base/jdk.internal.ref java.base/sun.nio.ch
    java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry java.rmi/sun.rmi.server
    java.rmi/sun.rmi.transport.tcp java.sql/java.sql jdk.unsupported/sun.misc
"""
_OPENS = """
    java.base/java.io java.base/java.lang java.base/java.lang.module java.base/java.lang.reflect java.base/java.net
    java.base/java.nio java.base/java.util java.base/java.util.concurrent java.base/java.util.concurrent.atomic
    java.base/jdk.internal.loader java.base/jdk.internal.math java.base/jdk.internal.module
    java.base/jdk.internal.ref java.base/jdk.internal.reflect java.base/jdk.internal.util.jar java.base/sun.nio.ch
    jdk.management/com.sun.management.internal
"""
_MODULES = [
    *(f"--add-exports={name}=ALL-UNNAMED" for name in _EXPORTS.split()),
    *(f"--add-opens={name}=ALL-UNNAMED" for name in _OPENS.split()),
]
# A single node need not wait for others.
_PROPERTIES = {
    "cassandra.ring_delay_ms": "0",
    "cassandra.skip_wait_for_gossip_to_settle": "0",
    "cassandra.superuser_setup_delay_ms": "0",
    "jdk.attach.allowAttachSelf": "true",
    "io.netty.tryReflectionSetAccessible": "true",
}
_LOGGING = """<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %date %logger{0} %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="OUT"/></root>
</configuration>
"""


class CassandraServer(TemporaryServer):
    """A running node. Use it as a context manager.

    :param heap: the JVM's memory
    """

    def __init__(self, *, heap: str = "256m") -> None:
        java = find_java()
        if java is None:
            raise ServerUnavailableError("Cassandra needs Java 17 or newer")
        artifact = ("org.apache.cassandra", "cassandra-all", CASSANDRA_VERSION)
        jars = maven_jars("cassandra", CASSANDRA_VERSION, [artifact])
        self._command = [str(java / "bin" / "java"), f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseSerialGC"]
        self._command += ["-XX:TieredStopAtLevel=1", *_MODULES, "-cp", str(jars / "*")]
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self.host = "127.0.0.1"
        self.port, self._storage_port = 0, 0

    def execute(self, cql: str, parameters: Any = None) -> Any:
        """Run a statement. Its rows are named tuples."""
        if self._connection is None:
            self._connection = Connection(ClusterBuilder(contact_points=[self.host], port=self.port))
        return self._connection.execute(cql, parameters)

    def kill(self) -> None:
        """Kill the process with SIGKILL. Its data stays for :meth:`resume`."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        end(self._process)
        self._process = None

    def resume(self, *, wait: bool = True) -> None:
        """Start the process again with the same port and data.

        The process ends with the calling thread.
        """
        settings = {
            f"-D{name}={value}"
            for name, value in {
                **_PROPERTIES,
                "cassandra.config": (self.directory / "cassandra.yaml").as_uri(),
                "cassandra.storagedir": self.directory,
                "logback.configurationFile": self.directory / "logback.xml",
            }.items()
        }
        command = [*self._command, *sorted(settings), "org.apache.cassandra.service.CassandraDaemon"]
        self._process = self._launch("cassandra", command)
        if wait:
            self._wait(self._process)

    def _start(self) -> None:
        self.port, self._storage_port = free_ports(2)
        # JSON is YAML.
        (self.directory / "cassandra.yaml").write_text(json.dumps(self._settings()))
        (self.directory / "logback.xml").write_text(_LOGGING)
        self.resume()

    def _stop(self) -> None:
        self.kill()

    def _settings(self) -> dict[str, Any]:
        seeds = {
            "class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
            "parameters": [{"seeds": f"{self.host}:{self._storage_port}"}],
        }
        return {
            "cluster_name": "penstock",
            "num_tokens": 1,
            "auto_bootstrap": False,
            "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
            "endpoint_snitch": "SimpleSnitch",
            "seed_provider": [seeds],
            "listen_address": self.host,
            "storage_port": self._storage_port,
            "rpc_address": self.host,
            "native_transport_port": self.port,
            # An acknowledged write survives SIGKILL.
            "commitlog_sync": "batch",
            "memtable_heap_space": "32MiB",
            "memtable_offheap_space": "32MiB",
            "commitlog_segment_size": "8MiB",
            # A busy machine is slow, but not broken.
            **{f"{kind}request_timeout": "60s" for kind in ("", "read_", "write_", "truncate_")},
            "data_file_directories": [str(self.directory / "data")],
            **{f"{name}_directory": str(self.directory / name) for name in ("commitlog", "saved_caches", "hints")},
        }

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            # The port opens when the node is ready.
            with contextlib.suppress(OSError), socket.create_connection((self.host, self.port), timeout=1):
                return
            if process.poll() is not None or time.monotonic() > deadline:
                said = (self.directory / "cassandra.log").read_text(errors="replace")
                raise ServerUnavailableError(f"Cassandra did not start: {said[-1000:]}")
            time.sleep(0.05)
