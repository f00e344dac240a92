"""The JVM of an embedded Spark: starts it quietly, monitors it, and stops it on request.

Spark's own launcher lets the JVM write to our process's output, and ends the JVM only with our process. Here a filter
reads everything that the JVM and its Python workers write. Output of the user's functions is printed, and the rest is
kept for the error if the JVM fails.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.java_gateway import launch_gateway

from penstock.common.errors import PenstockError
from penstock.spark import class_archive
from penstock.spark.launch import launch_command
from penstock.spark.worker_tuning import RELAY_VARIABLE, parse_relayed

__all__ = ["JvmProcess", "SparkStartError", "debugging", "session_members"]

_START_SECONDS = 120.0
# On a busy machine, the JVM may get little CPU time. It needs about five seconds of a core.
_STARVED_SECONDS = 900.0
_START_CPU_SECONDS = 30.0
_EXIT_SECONDS = 20.0
_DYING_SECONDS = 2.0  # between the end of the connections and the end of the process
_ARCHIVE_SECONDS = 300.0
_KEPT_LINES = 200


class SparkStartError(PenstockError):
    """Spark's JVM did not start."""


def debugging() -> bool:
    """Whether the user wants to see Spark's output: ``PENSTOCK_DEBUG=1``."""
    return os.environ.get("PENSTOCK_DEBUG", "") not in {"", "0"}


class JvmProcess:
    """A running JVM with Spark's gateway in it."""

    def __init__(self, conf: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self.output_tail: deque[str] = deque(maxlen=_KEPT_LINES)
        self._drain: threading.Thread | None = None
        self._gateway: Any = None
        self._process = self._start(conf, environment)

    @property
    def pid(self) -> int:
        """The JVM's process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the JVM is running."""
        return self._process.poll() is None

    @property
    def gateway(self) -> Any:
        """The py4j gateway, for ``SparkContext(gateway=...)``."""
        return self._gateway

    # -- start --------------------------------------------------------------------------------------------------

    def _start(self, conf: Mapping[str, str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        launch = launch_command(conf)
        directory = tempfile.mkdtemp(prefix="penstock-gateway-")
        connection = Path(directory, "connection")
        variables = {
            **launch.environment,
            **environment,
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection),
        }
        quiet = not debugging()
        if quiet:
            variables[RELAY_VARIABLE] = "1"
        process: subprocess.Popen[bytes] | None = None
        try:
            process = subprocess.Popen(  # noqa: S603 - Spark's own launcher
                launch.arguments,
                env=variables,
                stdin=subprocess.PIPE,  # the JVM ends with this pipe, however our process ends
                stdout=subprocess.PIPE if quiet else None,
                stderr=subprocess.STDOUT if quiet else None,
                # A separate session: our process handles Ctrl-C and a closed terminal, and processes that the JVM
                # leaves behind can be found by the session id.
                start_new_session=True,
            )
            if quiet:
                self._drain = threading.Thread(
                    target=self._relay, args=(process,), name="penstock-jvm-output", daemon=True
                )
                self._drain.start()
            self._connect(*self._connection_info(process, connection))
        except BaseException:
            # Kill it now, before a second Ctrl-C: a JVM whose directory is gone never ends by itself, and one that has
            # not started has nothing to lose.
            if process is not None:
                process.kill()
                process.wait()
            raise
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        return process

    def _connection_info(self, process: subprocess.Popen[bytes], connection: Path) -> tuple[int, str]:
        started = time.monotonic()
        while True:
            # Spark writes a temporary file and renames it, so an existing file is complete.
            if connection.exists():
                data = connection.read_bytes()
                port, length = struct.unpack_from(">ii", data)
                return port, data[8 : 8 + length].decode()
            if process.poll() is not None:
                raise SparkStartError(
                    f"Spark's JVM ended with code {process.returncode} while starting.{self._last_output()}"
                )
            waited = time.monotonic() - started
            if waited > _START_SECONDS and (waited > _STARVED_SECONDS or not is_starved(process.pid)):
                raise SparkStartError(f"Spark's JVM did not answer within {waited:.0f} s.{self._last_output()}")
            time.sleep(0.01)

    def _connect(self, port: int, secret: str) -> None:
        # These two variables tell pyspark to use a running JVM.
        with _environment(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret):
            self._gateway = launch_gateway()  # type: ignore[no-untyped-call]

    def end_of(self) -> str | None:
        """Describe how the JVM ended, or return None if it is running. Call this when it does not respond."""
        try:
            code = self._process.wait(_DYING_SECONDS)
        except subprocess.TimeoutExpired:
            return None
        if -code == signal.SIGKILL:  # it could not report anything, and the output of its workers does not help
            return "Spark's JVM was killed (SIGKILL), as the system does when memory runs out."
        how = f"with code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
        return f"Spark's JVM has ended, {how}.{self._last_output()}"

    def _last_output(self) -> str:
        if self._drain is not None:
            self._drain.join(timeout=1)
        noise = () if debugging() else ("\tat ", "\t... ", "WARNING: Using incubator modules")
        words = [line for line in self.output_tail if line.strip() and not line.startswith(noise)]
        return " Its last output:\n" + "\n".join(words[-20:]) if words else ""

    def calm_compiler(self) -> None:
        """Let the JVM's optimizing compiler run only on otherwise idle cores.

        A young JVM spends more time on compiling than on batches: with few cores, the first thousand batches take twice
        as long. Without this compiler, all later batches would take twice as long.
        """
        with contextlib.suppress(OSError):  # not on Linux
            for thread in Path(f"/proc/{self.pid}/task").iterdir():
                if (thread / "comm").read_text().startswith("C2 "):
                    os.setpriority(os.PRIO_PROCESS, int(thread.name), 19)

    # -- output -------------------------------------------------------------------------------------------------

    def _relay(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout as lines, contextlib.suppress(ValueError, OSError):
            for line in lines:
                relayed = parse_relayed(line)
                if relayed is None:
                    self.output_tail.append(line.decode(errors="replace").rstrip())
                    continue
                stream, text = relayed
                target = sys.stderr if stream == 2 else sys.stdout
                # The program may have closed or replaced its streams. The job continues.
                with contextlib.suppress(ValueError, OSError, AttributeError):
                    target.write(text)
                    target.flush()

    # -- end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the JVM and everything that it has started, and wait until they are gone."""
        gateway, self._gateway = self._gateway, None
        if gateway is not None:
            with contextlib.suppress(Exception):  # the JVM may already be gone
                gateway.shutdown()
        _end(self._process)
        _end_session(self._process.pid)
        if self._drain is not None:
            self._drain.join(timeout=5)


@contextlib.contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    for ask in (None, process.terminate, process.kill):
        if ask is not None:
            ask()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_ARCHIVE_SECONDS if class_archive.is_making() else _EXIT_SECONDS)
            return


def _end_session(session: int) -> None:
    """End the remaining processes of a JVM's session: workers notice the end of the JVM only after a while."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + 3
        while left := session_members(session):
            if time.monotonic() > deadline:
                break
            time.sleep(0.01)
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, sent)


def session_members(session: int) -> list[int]:
    """Return the live processes of a session, if the system tells (Linux)."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:  # noqa: PTH112, PTH208 - a hot loop
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.getsid(int(name)) == session and not _is_zombie(int(name)):
                    found.append(int(name))
    return found


def is_starved(pid: int) -> bool:
    """Whether a process has had too little CPU time to start, if the system tells (Linux)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") < _START_CPU_SECONDS
    except OSError:
        return False


def _is_zombie(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return status.rpartition(")")[2].split()[0] == "Z"
