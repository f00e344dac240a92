"""The few Java classes that make a small batch cheap in an embedded Spark.

- ``PlainLocalFileSystem``: Hadoop's local file system without a `chmod` process for every checkpoint file.
- ``ReportSink``: hands a batch's rows to the job master without planning the batch twice, and makes the session's
  settings hold in the threads that serve state, too.

They are compiled on the user's machine, once for each version, by the compiler that Spark brings for its own generated
code: no JDK is needed, no binary is shipped. Without them everything works, more slowly.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from pyspark.find_spark_home import _find_spark_home

__all__ = [
    "LOCAL_FILE_SYSTEM",
    "REPORT_SINK",
    "cache_directory",
    "cluster_settings",
    "compiled_jar",
    "local_settings",
    "version",
]

LOCAL_FILE_SYSTEM = "penstock.spark.PlainLocalFileSystem"
REPORT_SINK = "penstock.spark.ReportSink"
_SOURCES = Path(__file__).parent / "jvm"


def local_settings() -> dict[str, str]:
    """Spark settings that put the classes in place; none if they cannot be had, which costs time only."""
    try:
        jar = compiled_jar()
    except Exception:
        return {}
    return {"spark.driver.extraClassPath": str(jar), "spark.hadoop.fs.file.impl": LOCAL_FILE_SYSTEM}


def cluster_settings() -> dict[str, str]:
    """The same for a Spark with executors of its own, which fetch the classes from the driver.

    Not the file system: executors open files before they have fetched anything.
    """
    try:
        jar = compiled_jar()
    except Exception:
        return {}
    return {"spark.driver.extraClassPath": str(jar), "spark.jars": jar.as_uri()}


def compiled_jar() -> Path:
    """The compiled classes, from the cache or made now (about two seconds, once)."""
    jar = cache_directory() / f"classes-{version()}.jar"
    if not jar.exists():
        jar.parent.mkdir(parents=True, exist_ok=True)
        _write_jar(jar, _compile(_sources()))
    return jar


def version() -> str:
    """Of Spark and of the sources here: classes of another version are of no use."""
    digest = hashlib.sha256("\n".join([pyspark.__version__, *_sources()]).encode()).hexdigest()[:12]
    return f"{pyspark.__version__}-{digest}"


def _sources() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(_SOURCES.glob("*.java"))]


def cache_directory() -> Path:
    """Where things made once for this machine are kept: ``PENSTOCK_CACHE_DIR``, or the user's cache directory."""
    named = os.environ.get("PENSTOCK_CACHE_DIR")
    if named:
        return Path(named)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "penstock"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"


def _write_jar(jar: Path, classes: dict[str, bytes]) -> None:
    """Whole or not at all: other processes may be about to do the same."""
    handle, temporary = tempfile.mkstemp(dir=jar.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as archive:
            archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n\n")
            for name, code in classes.items():
                archive.writestr(name.replace(".", "/") + ".class", code)
        Path(temporary).replace(jar)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _compile(sources: list[str]) -> dict[str, bytes]:
    """Class names and their byte code, compiled by Janino in a separate small JVM."""
    classes: dict[str, bytes] = {}
    with _compiler_jvm() as jvm:
        for source in sources:
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.cook(source)
            code = compiler.getBytecodes()
            classes |= {str(name): bytes(code[name]) for name in code}
    return classes


@contextlib.contextmanager
def _compiler_jvm() -> Iterator[Any]:
    jars = Path(_find_spark_home(), "jars")
    java_home = os.environ.get("JAVA_HOME")
    port, secret, process = launch_gateway(
        jarpath=str(next(jars.glob("py4j-*.jar"))),
        classpath=str(jars / "*"),
        java_path=str(Path(java_home, "bin", "java")) if java_home else "java",
        javaopts=["-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
        redirect_stdout=subprocess.DEVNULL,
        redirect_stderr=subprocess.DEVNULL,
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
    )
    try:
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret))
        try:
            yield gateway.jvm
        finally:
            gateway.shutdown()
    finally:
        process.stdin.close()
        process.stdout.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
