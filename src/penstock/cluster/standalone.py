"""One Spark for several jobs: a standalone master and workers on this machine, which outlive the service.

Each driver of the service connects to this Spark and gets its own executors. `penstock cluster stop` ends it, unless
jobs keep running.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.common.errors import JobExecutionError
from penstock.spark.java import ensure_java_home
from penstock.spark.launch import spark_home
from penstock.testing.server import free_ports

__all__ = ["StandaloneSpark", "running_spark", "start_spark", "stop_spark"]

_RECORD = "spark.json"
_START_SECONDS = 60.0
_STOP_SECONDS = 15.0
_LOOK_SECONDS = 0.1
_MEMORY_OF_DAEMONS = "256m"
_CORES_OF_A_JOB = 2
"""The cores of a job without `spark.cores.max`; otherwise the first job would take them all."""
_SLOTS_PER_CORE = 4
"""Spark's cores are slots: jobs wait most of the time, and Spark never shares a core between jobs."""


@dataclass(frozen=True, slots=True)
class StandaloneSpark:
    """A running master, and the processes of the cluster: pairs of pid and start time."""

    master: str
    web: str
    processes: list[tuple[int, str]]


def running_spark(directory: Path) -> StandaloneSpark | None:
    """Return the Spark of this directory, if its master is still running."""
    try:
        content = json.loads((directory / _RECORD).read_text(encoding="utf-8"))
        found = StandaloneSpark(content["master"], content["web"], [(pid, born) for pid, born in content["processes"]])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found.processes and _is_alive(*found.processes[0]) else None


def start_spark(directory: Path, workers: int, host: str = "127.0.0.1") -> StandaloneSpark:
    """Start a master and workers, and wait until all are registered. Reuse a running Spark."""
    running = running_spark(directory)
    if running is not None:
        return running
    ensure_java_home()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    port, web_port = free_ports(2)
    web = f"http://{host}:{web_port}"
    address = ["--host", host, "--port", str(port), "--webui-port", str(web_port)]
    started = [_launch(directory, "spark-master", "org.apache.spark.deploy.master.Master", *address)]
    master = f"spark://{host}:{port}"
    try:
        _wait(lambda: _registered(web) is not None, started, directory)
        for number in range(1, workers + 1):
            options = ["--host", host, "--webui-port", "0", "--cores", str(_SLOTS_PER_CORE * (os.cpu_count() or 1))]
            options += ["--work-dir", str(directory / "spark" / f"worker-{number}")]
            worker = "org.apache.spark.deploy.worker.Worker"
            started.append(_launch(directory, f"spark-worker-{number}", worker, *options, master))
        _wait(lambda: (_registered(web) or 0) >= workers, started, directory)
    except BaseException:
        for process in started:
            process.kill()
            process.wait()
        raise
    found = StandaloneSpark(master, web, [(process.pid, _born(process.pid) or "") for process in started])
    (directory / _RECORD).write_text(json.dumps(asdict(found)), encoding="utf-8")
    for process in started:
        process.returncode = 0  # they keep running
    return found


def stop_spark(directory: Path) -> bool:
    """Stop the Spark of this directory. Return whether there was one."""
    found = running_spark(directory)
    (directory / _RECORD).unlink(missing_ok=True)
    if found is None:
        return False
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid, born in reversed(found.processes):
            if _is_alive(pid, born):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        ends = time.monotonic() + _STOP_SECONDS
        while any(_is_alive(*process) for process in found.processes) and time.monotonic() < ends:
            time.sleep(_LOOK_SECONDS)
    return True


def _launch(directory: Path, name: str, *program: str) -> subprocess.Popen[bytes]:
    home = spark_home()
    environment = {
        **os.environ,
        "SPARK_HOME": home,
        "SPARK_DAEMON_MEMORY": _MEMORY_OF_DAEMONS,
        "SPARK_MASTER_OPTS": f"-Dspark.deploy.defaultCores={_CORES_OF_A_JOB} {os.environ.get('SPARK_MASTER_OPTS', '')}",
    }
    with (directory / f"{name}.log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - Spark's own program
            [str(Path(home, "bin", "spark-class")), *program],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=environment,
        )


def _registered(web: str) -> int | None:
    """Return the number of registered workers, or None while the master does not respond."""
    try:
        with urllib.request.urlopen(f"{web}/json/", timeout=10) as answer:  # noqa: S310 - our own master
            status: dict[str, Any] = json.load(answer)
    except (OSError, ValueError):
        return None
    return len([worker for worker in status["workers"] if worker["state"] == "ALIVE"])


def _wait(condition: Callable[[], bool], processes: list[subprocess.Popen[bytes]], directory: Path) -> None:
    ends = time.monotonic() + _START_SECONDS
    while not condition():
        if any(process.poll() is not None for process in processes) or time.monotonic() > ends:
            logs = sorted(directory.glob("spark-*.log"))
            said = "\n".join(f"{log}: {log.read_text(errors='replace')[-1000:]}" for log in logs)
            raise JobExecutionError(f"Spark's master and workers did not start.\n{said}")
        time.sleep(_LOOK_SECONDS)


def _born(pid: int) -> str | None:
    """Return the start time of a process, which distinguishes pids that are reused; None if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def _is_alive(pid: int, born: str) -> bool:
    return _born(pid) == born
