"""Penstock itself on remote executors: shipped with the job, so that the machines of a cluster need only pyarrow."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from pathlib import Path

import cloudpickle
from pyspark import SparkContext

import penstock

__all__ = ["ship_package", "write_package"]

_shipped: set[str] = set()


def ship_package(context: SparkContext) -> None:
    """Send this package to the workers of a cluster, once. Local workers import it from its installed location."""
    if str(context.master).startswith("local") or context.applicationId in _shipped:
        return
    _shipped.add(str(context.applicationId))
    directory = tempfile.mkdtemp(prefix="penstock-package-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)  # executors that join late also fetch it
    context.addPyFile(str(write_package(Path(directory))))


def write_package(directory: Path) -> Path:
    """Write this package and cloudpickle as a zip file into a directory."""
    archive = directory / "penstock.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for module in (penstock, cloudpickle):
            root = Path(str(module.__file__)).parent
            for path in root.rglob("*"):
                if path.is_file() and "__pycache__" not in path.parts:
                    target.write(path, path.relative_to(root.parent))
    return archive
