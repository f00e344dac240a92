"""A Spark session for Penstock jobs: embedded on this machine, or derived from one that the user provides.

Only `build_session` starts a JVM, and only `stop_session` ends it. When it returns, no JVM and no Python worker is
left, whether the program calls it, or it runs after Ctrl-C or at exit.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import penstock
from penstock.common.errors import JobExecutionError, PenstockError
from penstock.spark import jvm_classes
from penstock.spark.failures import decode_failure
from penstock.spark.gateway import JvmProcess, debugging
from penstock.spark.java import ensure_java_home
from penstock.spark.session_conf import cluster_settings, local_settings, runtime_settings, static_settings

__all__ = ["SparkEndedError", "build_session", "failure_of", "running_session", "session_for", "stop_session"]

_LOG_SETTINGS = Path(__file__).parent / "jvm" / "log4j2.properties"
_STOP_SECONDS = 30.0
# A socket path is limited to 104 characters (macOS), and Spark appends a file name of 42.
_MAX_SOCKET_DIRECTORY = 60


class SparkEndedError(JobExecutionError):
    """Spark has ended, and all jobs of this process with it."""


@dataclass(slots=True)
class _Embedded:
    """A Spark that this module has started."""

    session: SparkSession
    jvm: JvmProcess
    directory: Path


_lock = threading.RLock()
_embedded: _Embedded | None = None


def build_session(
    master: str = "local[*]",
    app_name: str = "penstock",
    parallelism: int | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark, tuned for small micro-batches. ``conf`` overrides every setting made here.

    A Spark that already runs in this process is used, because there can be only one.
    """
    global _embedded  # noqa: PLW0603 - one JVM per process, as in pyspark
    with _lock:
        _choose_python(master, conf or {})
        settings = static_settings() | runtime_settings(parallelism)
        submitted = "PYSPARK_GATEWAY_PORT" in os.environ
        if SparkContext._active_spark_context is not None or submitted:
            # Penstock did not start this JVM (a notebook or spark-submit did): keep its master and startup settings.
            settings |= cluster_settings() if submitted else {}
            everything: dict[str, Any] = {**settings, **(conf or {}), "spark.app.name": app_name}
            return SparkSession.builder.config(map=everything).getOrCreate()
        _hush_py4j()
        with quiet_interrupts():
            _embedded = _start(master, app_name, settings, dict(conf or {}))
        atexit.register(stop_session, _embedded.session)
        return _embedded.session


def _hush_py4j() -> None:
    """Hide py4j's messages about its connections from programs that log at INFO (``logging.basicConfig``).

    A call that finds no JVM is logged on the root logger, with a traceback, and then also raised.
    """
    logger = logging.getLogger("py4j")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)
    root = logging.getLogger()
    root.removeFilter(_is_no_broken_call)  # avoids a second filter
    root.addFilter(_is_no_broken_call)


def _is_no_broken_call(record: logging.LogRecord) -> bool:
    return record.getMessage() != "Exception while sending command."


def running_session() -> SparkSession | None:
    """Return the Spark that this module has started, if it still runs. Clean up if it was killed."""
    with _lock:
        if _embedded is not None and not _embedded.jvm.running:
            stop_session(_embedded.session)
        return None if _embedded is None else _embedded.session


def failure_of(spark: SparkSession, error: Exception) -> PenstockError:
    """Translate an error of a call to Spark: to the job's failure, or to the end of Spark."""
    embedded = _embedded
    if isinstance(error, (Py4JError, ConnectionError)) and not isinstance(error, Py4JJavaError):
        if embedded is not None and embedded.session.sparkContext is spark.sparkContext:
            end = embedded.jvm.end_of()
            if end is not None:
                return SparkEndedError(f"{end}\nRestart the program: it resumes from its last checkpoint")
        if isinstance(error, (Py4JNetworkError, ConnectionError)):
            return SparkEndedError(f"Spark does not respond: {error}")
    return decode_failure(str(error))


def session_for(existing: SparkSession, shuffle_partitions: int, conf: Mapping[str, str] | None = None) -> SparkSession:
    """Return a session for one job, derived from ``existing``, whose own settings do not change."""
    session = existing.newSession()
    for key, value in {**runtime_settings(shuffle_partitions), **(conf or {})}.items():
        # Managed Sparks lock some settings, and other versions lack some. A slower job is better than none.
        with contextlib.suppress(PySparkException):
            session.conf.set(key, value)
    return session


def stop_session(spark: SparkSession) -> None:
    """Stop a Spark that `build_session` has started, and wait until its processes have ended.

    A Spark that Penstock did not start is left alone. Further calls have no effect.
    """
    global _embedded  # noqa: PLW0603
    with _lock:
        embedded = _embedded
        if embedded is None or embedded.session.sparkContext is not spark.sparkContext:
            return
        _embedded = None
        atexit.unregister(stop_session)
        with _quiet_py4j(), quiet_interrupts(), _without_interrupts():
            _stop_spark(embedded.session)
            embedded.jvm.close()
            SparkContext._gateway = None
            SparkContext._jvm = None
            shutil.rmtree(embedded.directory, ignore_errors=True)


def _is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")  # not local-cluster, which has its own executors


def _choose_python(master: str, conf: Mapping[str, str]) -> None:
    """Let workers use this process's Python. On other machines, only the user knows its path."""
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    default = sys.executable if _is_local(master) else os.environ.get("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_PYTHON"] = conf.get("spark.pyspark.python") or default


# -- start ------------------------------------------------------------------------------------------------------


def _start(master: str, app_name: str, settings: dict[str, str], wanted: dict[str, str]) -> _Embedded:
    ensure_java_home()
    directory = Path(tempfile.mkdtemp(prefix="penstock-spark-"))
    jvm = None
    try:
        if _is_local(master):
            settings |= local_settings(directory)
            settings |= jvm_classes.local_settings()
            sockets = directory if len(str(directory)) <= _MAX_SOCKET_DIRECTORY else Path("/tmp")  # noqa: S108
            settings["spark.python.unix.domain.socket.dir"] = str(sockets)
        else:
            settings |= cluster_settings()
            settings |= jvm_classes.cluster_settings()
        settings["spark.driver.extraJavaOptions"] = " ".join(_java_options(wanted, directory))
        for key, value in wanted.items():
            settings[key] = _joined(key, settings.get(key), value)
        settings |= {"spark.master": master, "spark.app.name": app_name}
        jvm = JvmProcess(settings, {} if _is_local(master) else _planning_environment())
        session = _connect(jvm, settings)
        jvm.calm_compiler()
    except BaseException:
        if jvm is not None:
            jvm.close()
            SparkContext._gateway = None
            SparkContext._jvm = None
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return _Embedded(session, jvm, directory)


def _planning_environment() -> dict[str, str]:
    """Return the environment of Spark's planning process, which uses the executors' Python and may lack Penstock."""
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    places = {str(Path(str(module.__file__)).parent.parent): None for module in (penstock, cloudpickle)}
    return {"PYTHONPATH": os.pathsep.join([*filter(None, inherited), *places])}


def _java_options(wanted: Mapping[str, str], directory: Path) -> Iterator[str]:
    # Files that native libraries unpack are deleted with the session, too.
    yield f"-Djava.io.tmpdir={directory}"
    if not debugging():
        yield f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
    # The JVM plans batches and moves frames, and has few cores. The user's options win.
    if "-XX:+Use" not in wanted.get("spark.driver.extraJavaOptions", ""):
        yield "-XX:+UseSerialGC"
        # Nearly everything that a batch allocates is dead at its end. With the few MB that Java starts with, young
        # objects are collected twice per second, some 15 ms each time.
        yield "-Xmn256m"


def _joined(key: str, ours: str | None, wanted: str) -> str:
    """Append options and class paths to the user's. For other settings, the user's value wins."""
    if ours and key.endswith("JavaOptions"):
        return f"{ours} {wanted}"
    if ours and key.endswith("ClassPath"):
        return f"{wanted}{os.pathsep}{ours}"
    if ours and key == "spark.jars":
        return f"{wanted},{ours}"
    return wanted


def _connect(jvm: JvmProcess, settings: Mapping[str, str]) -> SparkSession:
    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, value)
    with _signal_handler_kept():
        context = SparkContext(conf=conf, gateway=jvm.gateway)
    # It prints a traceback if the JVM ends during a call. The waiting caller gets an error anyway.
    accumulators: Any = context._accumulatorServer
    accumulators.handle_error = lambda request, address: None
    return SparkSession(context)


@contextlib.contextmanager
def _signal_handler_kept() -> Iterator[None]:
    """Keep the signal handler: SparkContext's makes Ctrl-C cancel running jobs, which fails a streaming query."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# -- stop -------------------------------------------------------------------------------------------------------


def _stop_spark(session: SparkSession) -> None:
    """Let Spark stop in an orderly way, if it does so in time. Its JVM ends in any case."""
    stopping = threading.Thread(target=_stop_quietly, args=(session,), name="penstock-spark-stop", daemon=True)
    stopping.start()
    stopping.join(_STOP_SECONDS)


def _stop_quietly(session: SparkSession) -> None:
    with contextlib.suppress(Exception):
        for query in session.streams.active:
            query.stop()
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a JVM that is already gone
        session.stop()


@contextlib.contextmanager
def _quiet_py4j() -> Iterator[None]:
    """Silence py4j: other threads may still use the ending JVM, and py4j logs each broken connection as an error."""
    logger: Any = logging.getLogger("py4j")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextlib.contextmanager
def quiet_interrupts() -> Iterator[None]:
    """Drop py4j's log of a Ctrl-C during a call to the JVM: it is not an error."""

    def is_news(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("KeyboardInterrupt while sending command")

    root = logging.getLogger()
    root.addFilter(is_news)
    try:
        yield
    finally:
        root.removeFilter(is_news)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Defer a second Ctrl-C until all processes have ended: it would leave some of them running."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    try:
        before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    except ValueError:  # not in the main interpreter
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed and callable(before):
        before(pressed[0], None)
