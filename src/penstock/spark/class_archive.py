"""An archive of Spark's classes, which makes an embedded Spark start some seconds faster.

A JVM reads, checks and links some fifteen thousand classes before Spark's first batch is done. Java can write them to a
file in their memory layout, and map this file at the next start (class data sharing). ``python -m
penstock.cli.fast_start`` creates the file in about a minute, once per version of Spark and Java. It takes some 170 MB
in the cache directory. Everything works without it, but starts more slowly.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyspark

from penstock.spark import jvm_classes
from penstock.spark.java import ensure_java_home

__all__ = ["archive_path", "is_making", "java_options", "make_archive"]

_MAKING = "PENSTOCK_MAKING_CLASS_ARCHIVE"


def archive_path() -> Path:
    """Return the path of the archive for this Spark, Java and environment, even if it does not exist."""
    runtime = os.environ.get("PENSTOCK_JAVA_RUNTIME") or os.environ.get("JAVA_HOME") or ""
    what = f"{pyspark.__file__} {runtime} {_release(runtime)} {jvm_classes.version()}"
    name = hashlib.sha256(what.encode()).hexdigest()[:12]
    return jvm_classes.cache_directory() / f"archive-{pyspark.__version__}-{name}.jsa"


def _release(runtime: str) -> str:
    try:
        return Path(runtime, "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def java_options() -> list[str]:
    """Return options for the JVM, which silently ignores an archive that does not match."""
    if _MAKING in os.environ:
        return [f"-XX:ArchiveClassesAtExit={os.environ[_MAKING]}"]
    archive = archive_path()
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:disable", "-Xlog:all=error:stderr"] if archive.exists() else []


def is_making() -> bool:
    """Whether this process is creating an archive: its JVM takes long to end."""
    return _MAKING in os.environ


def make_archive(run: Callable[[], None]) -> Path:
    """Archive the classes that Spark uses while ``run`` starts it, uses it and stops it."""
    ensure_java_home()
    archive = archive_path()
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="archive-", dir=archive.parent) as directory:
        made = Path(directory, archive.name)
        os.environ[_MAKING] = str(made)
        try:
            run()
        finally:
            del os.environ[_MAKING]
        made.replace(archive)
    return archive
