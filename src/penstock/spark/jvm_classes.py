"""The Java classes that make small batches cheap in an embedded Spark.

- ``PlainLocalFileSystem``: Hadoop's local file system without a `chmod` process for every checkpoint file.
- ``ReportSink``: passes a batch's rows to the job master without planning the batch twice, and applies the session's
  settings in the threads that serve state, too.

They are compiled on the user's machine, once per version, by the compiler that Spark contains for its own generated
code. This needs no JDK and ships no binary. Everything works without them, but more slowly.
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
    """Return Spark settings that install the classes, or none if they are not available, which only costs time."""
    try:
        jar = compiled_jar()
    except Exception:
        return {}
    return {"spark.driver.extraClassPath": str(jar), "spark.hadoop.fs.file.impl": LOCAL_FILE_SYSTEM}


def cluster_settings() -> dict[str, str]:
    """Return the same settings for a Spark with its own executors, which fetch the classes from the driver.

    The file system is not included: executors open files before they fetch anything.
    """
    try:
        jar = compiled_jar()
    except Exception:
        return {}
    return {"spark.driver.extraClassPath": str(jar), "spark.jars": jar.as_uri()}


def compiled_jar() -> Path:
    """Return the compiled classes, from the cache or compiled now (about two seconds, once)."""
    jar = cache_directory() / f"classes-{version()}.jar"
    if not jar.exists():
        jar.parent.mkdir(parents=True, exist_ok=True)
        _write_jar(jar, _compile(_sources()))
    return jar


def version() -> str:
    """Return the version of Spark and of the sources here: classes of another version cannot be used."""
    digest = hashlib.sha256("\n".join([pyspark.__version__, *_sources()]).encode()).hexdigest()[:12]
    return f"{pyspark.__version__}-{digest}"


def _sources() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(_SOURCES.glob("*.java"))]


def cache_directory() -> Path:
    """Return the directory of files created once per machine: ``PENSTOCK_CACHE_DIR`` or the user's cache directory."""
    named = os.environ.get("PENSTOCK_CACHE_DIR")
    if named:
        return Path(named)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "penstock"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"


def _write_jar(jar: Path, classes: dict[str, bytes]) -> None:
    """Write the file atomically: other processes may be doing the same."""
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
    """Return class names and byte code, compiled by Janino in a separate small JVM."""
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
