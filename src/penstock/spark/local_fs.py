"""Hadoop's local file system without a process per file.

Spark's wheel comes without Hadoop's native library, so Hadoop runs `chmod` for every checkpoint file it makes. The
few lines of Java that avoid it (jvm/PlainLocalFileSystem.java) are compiled on the user's machine, once for each
version, by the compiler that Spark brings for its own generated code: no JDK is needed, no binary is shipped.
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

__all__ = ["cache_directory", "compiled_jar", "settings"]

_SOURCE = Path(__file__).parent / "jvm" / "PlainLocalFileSystem.java"
_CLASS = "penstock.spark.PlainLocalFileSystem"
# What the compiler needs to see; the whole of Spark's jars would take it a second longer.
_COMPILER_JARS = ("commons-compiler-*", "hadoop-client-api-*", "hadoop-client-runtime-*", "janino-*", "slf4j-api-*")


def settings() -> dict[str, str]:
    """Spark settings that put the file system in place; none if it cannot be had, which costs time only."""
    try:
        jar = compiled_jar()
    except Exception:
        return {}
    return {"spark.driver.extraClassPath": str(jar), "spark.hadoop.fs.file.impl": _CLASS}


def compiled_jar() -> Path:
    """The compiled classes, from the cache or made now (about a second, once)."""
    source = _SOURCE.read_text(encoding="utf-8")
    version = hashlib.sha256(f"{pyspark.__version__}\n{source}".encode()).hexdigest()[:12]
    jar = cache_directory() / f"local-fs-{pyspark.__version__}-{version}.jar"
    if not jar.exists():
        jar.parent.mkdir(parents=True, exist_ok=True)
        _write_jar(jar, _compile(source))
    return jar


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


def _compile(source: str) -> dict[str, bytes]:
    """Class names and their code, made by Janino in a small JVM of its own."""
    with _compiler_jvm() as jvm:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(source)
        code = compiler.getBytecodes()
        return {str(name): bytes(code[name]) for name in code}


@contextlib.contextmanager
def _compiler_jvm() -> Iterator[Any]:
    jars = Path(_find_spark_home(), "jars")
    class_path = [str(jar) for pattern in _COMPILER_JARS for jar in jars.glob(pattern + ".jar")]
    java_home = os.environ.get("JAVA_HOME")
    port, secret, process = launch_gateway(
        jarpath=str(next(jars.glob("py4j-*.jar"))),
        classpath=os.pathsep.join(class_path),
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
