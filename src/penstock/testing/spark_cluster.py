"""A real Spark cluster for tests: a standalone master and its workers, as local processes that end with the tests.

Everything comes from the pyspark package. Workers start executors in separate JVMs, so a job needs everything here that
it needs on another machine (classes, files, this package).

>>> with SparkCluster(workers=2) as cluster:  # doctest: +SKIP
...     env = StreamExecutionEnvironment(spark=build_session(cluster.master, conf=cluster.conf))
...     cluster.kill(cluster.workers[0])
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.common.errors import PenstockError
from penstock.spark.java import ensure_java_home
from penstock.spark.launch import spark_home
from penstock.testing.server import TemporaryServer, end, free_ports

__all__ = ["ClusterUnavailableError", "SparkCluster"]

_START_SECONDS = 120.0
_SILENCE = "600s"
_LOOPBACK = "127.0.0.1"
_QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


class ClusterUnavailableError(PenstockError):
    """The cluster did not start. The message contains the last output of its processes."""


class SparkCluster(TemporaryServer):
    """A running standalone cluster. Use it as a context manager.

    :param workers: the number of workers, each with one executor per job
    :param cores: the cores of each worker
    :param memory: the memory of each executor's JVM
    """

    def __init__(self, *, workers: int = 2, cores: int = 1, memory: str = "512m") -> None:
        self._wanted = workers
        self._cores = cores
        self._memory = memory
        self._master: subprocess.Popen[bytes] | None = None
        self._port = self._web_port = 0
        self.workers: list[subprocess.Popen[bytes]] = []

    @property
    def master(self) -> str:
        """The master's address."""
        return f"spark://{_LOOPBACK}:{self._port}"

    @property
    def conf(self) -> dict[str, str]:
        """Return the configuration of a session on this cluster."""
        return {
            "spark.driver.host": _LOOPBACK,
            "spark.driver.bindAddress": _LOOPBACK,
            "spark.executor.memory": self._memory,
            "spark.executor.cores": str(self._cores),
            "spark.executor.extraJavaOptions": _QUICK,
            # The end of a process is noticed at once. On a busy machine, silence alone means nothing.
            "spark.network.timeout": _SILENCE,
        }

    # -- life cycle ---------------------------------------------------------------------------------------------

    def _start(self) -> None:
        ensure_java_home()
        self._port, self._web_port = free_ports(2)
        address = ["--host", _LOOPBACK, "--port", str(self._port), "--webui-port", str(self._web_port)]
        self._master = self._run("master", "org.apache.spark.deploy.master.Master", *address)
        self._wait(lambda: self._status() is not None, self._master)
        for _ in range(self._wanted):
            self.add_worker(wait=False)
        self._wait(lambda: self.registered >= self._wanted, *self.workers)

    def _stop(self) -> None:
        for worker in list(self.workers):
            self.kill(worker)
        end(self._master)
        self._master = None

    def add_worker(self, *, wait: bool = True) -> subprocess.Popen[bytes]:
        """Start another worker, as an operator would replace a lost one."""
        before = self.registered
        name = f"worker-{len(list(self.directory.glob('worker-*.log')))}"
        options = ["--host", _LOOPBACK, "--cores", str(self._cores), "--memory", "2g", "--webui-port", "0"]
        options += ["--work-dir", str(self.directory / name)]
        worker = self._run(name, "org.apache.spark.deploy.worker.Worker", *options, self.master)
        self.workers.append(worker)
        if wait:
            self._wait(lambda: self.registered > before, worker)
        return worker

    # -- processes of the cluster -------------------------------------------------------------------------------

    @property
    def registered(self) -> int:
        """The number of workers that the master counts."""
        status = self._status()
        return 0 if status is None else sum(worker["state"] == "ALIVE" for worker in status["workers"])

    def executors(self) -> list[int]:
        """Return the process ids of all executors."""
        return [pid for worker in self.workers for pid, command in children(worker.pid) if "ExecutorBackend" in command]

    def python_workers(self) -> list[int]:
        """Return the process ids of all Python workers, which Spark's daemons have forked."""
        daemons = [pid for executor in self.executors() for pid, command in children(executor) if "python" in command]
        return [pid for daemon in daemons for pid, _ in children(daemon)]

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """Kill a worker and its executors, like a machine that loses power."""
        executors = [pid for pid, _ in children(worker.pid)]
        end(worker)
        for pid in executors:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.workers.remove(worker)

    # -- processes ----------------------------------------------------------------------------------------------

    def _run(self, name: str, *program: str) -> subprocess.Popen[bytes]:
        home = spark_home()
        environment = {
            **os.environ,
            "SPARK_HOME": home,
            "SPARK_LOCAL_IP": _LOOPBACK,
            "SPARK_DAEMON_MEMORY": "128m",
            # A master gives up a job whose executors die repeatedly, but here the tests kill them on purpose.
            "SPARK_DAEMON_JAVA_OPTS": f"{_QUICK} -Dspark.deploy.maxExecutorRetries=-1 -Dspark.worker.timeout=600",
        }
        return self._launch(name, [str(Path(home, "bin", "spark-class")), *program], environment)

    def _status(self) -> dict[str, Any] | None:
        """Return the status that the master reports."""
        address = f"http://{_LOOPBACK}:{self._web_port}/json/"
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                status: dict[str, Any] = json.load(answer)
                return status
        except (urllib.error.URLError, ValueError, OSError):
            return None

    def _wait(self, condition: Callable[[], bool], *processes: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not condition():
            if any(process.poll() is not None for process in processes) or time.monotonic() > deadline:
                logs = sorted(self.directory.glob("*.log"))
                said = "\n".join(f"{log.name}: {log.read_text(errors='replace')[-500:]}" for log in logs)
                raise ClusterUnavailableError(f"the Spark cluster did not start.\n{said}")
            time.sleep(0.05)


def children(pid: int) -> list[tuple[int, str]]:
    """Return the processes that a process has started: id and command line (Linux)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                status = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                if int(status[1]) == pid and status[0] != "Z":
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found.append((int(entry.name), command))
    return found
