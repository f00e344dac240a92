"""Dependencies of a job besides its functions: Python files, archives, requirements, cached files.

Packages are unpacked on every machine and imported from there, because Python cannot import native code from a zip
file.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib
import importlib.util
import os
import shutil
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from pyspark import SparkContext, SparkFiles

from penstock.common.errors import InvalidProgramError
from penstock.common.requirements import install_requirements
from penstock.graph.settings import JobSettings
from penstock.spark.worker_tuning import ARCHIVES_VARIABLE

__all__ = ["ship_dependencies", "working_directory"]

_ZIPPED = {".zip", ".whl", ".egg"}
_shipped: set[tuple[str, str, str]] = set()
_kept: Path | None = None
_environment = threading.Lock()


def ship_dependencies(context: SparkContext, settings: JobSettings) -> None:
    """Ship the job's files to all workers with Spark's own mechanisms, each once per Spark."""
    for path in settings.python_files:
        _once(context, "module", path, partial(_ship_python, context, path))
    for path, target in settings.python_archives:
        _once(context, f"archive {target}", path, partial(_ship_archive, context, path, target))
    if settings.python_requirements is not None:
        requirements, cache = settings.python_requirements
        content = Path(_existing(requirements, "set_python_requirements")).read_bytes()
        kind = f"requirements {hashlib.sha256(content).hexdigest()}"
        _once(context, kind, requirements, partial(_ship_requirements, context, requirements, cache))
    for path in settings.cached_files.values():
        _once(context, "file", path, partial(_ship_file, context, path))


def _once(context: SparkContext, kind: str, path: str, ship: Callable[[], None]) -> None:
    key = (str(context.applicationId), kind, str(Path(path).resolve()))
    if key not in _shipped:
        ship()
        _shipped.add(key)


def _ship_archive(context: SparkContext, path: str, target: str | None) -> None:
    context.addArchive(_existing(path, "add_python_archive") + (f"#{target}" if target else ""))


def _ship_file(context: SparkContext, path: str) -> None:
    file = Path(_existing(path, "register_cached_file"))
    if file.is_dir():  # Spark sends directories to no other machine
        context.addArchive(f"{_zipped(file)}#{file.name}")
    else:
        context.addFile(path)


@contextlib.contextmanager
def working_directory(context: SparkContext, settings: JobSettings) -> Iterator[None]:
    """Set the working directory for a job that is compiled in the block: its functions run in the directory of their
    archives, as in Flink.

    All functions of a worker share its working directory. A changed environment makes Spark start other workers for
    this job.
    """
    if not settings.python_archives:
        yield
        return
    with _environment:
        context.environment[ARCHIVES_VARIABLE] = "1"
        try:
            yield
        finally:
            del context.environment[ARCHIVES_VARIABLE]


def _existing(path: str, call: str) -> str:
    if not Path(path).exists():
        raise InvalidProgramError(f"{call}({path!r}): there is no such file")
    return path


# -- Python -----------------------------------------------------------------------------------------------------


def _ship_python(context: SparkContext, name: str) -> None:
    path = Path(_existing(name, "add_python_file"))
    if path.is_dir():
        # A package, or a directory with modules and packages.
        _ship_packages(context, _zipped(path, below=path.name if (path / "__init__.py").exists() else ""))
    elif path.suffix.lower() in _ZIPPED:
        if not zipfile.is_zipfile(path):
            raise InvalidProgramError(f"add_python_file({str(path)!r}): this is not a zip file")
        _ship_packages(context, Path(shutil.copyfile(path, _new_directory() / f"{path.stem}.zip")))
    else:
        context.addPyFile(str(path))


def _ship_requirements(context: SparkContext, requirements: str, cache: str | None) -> None:
    """Install packages for machines and a Python like those here."""
    directory = _new_directory() / "packages"
    directory.mkdir()
    install_requirements(requirements, cache, directory)
    _ship_packages(context, _zipped(directory))


def _ship_packages(context: SparkContext, archive: Path) -> None:
    """Unpack an archive on every machine, and add its contents to the path of all workers and of this process."""
    name = f"penstock-{_digest(archive)}"
    includes: list[str] = context._python_includes  # type: ignore[assignment] # never None while Spark runs
    if name in includes:
        return
    context.addArchive(f"{archive}#{name}")
    includes.append(name)
    sys.path.insert(1, str(Path(SparkFiles.getRootDirectory(), name)))
    importlib.invalidate_caches()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


# -- files ------------------------------------------------------------------------------------------------------


def _new_directory() -> Path:
    """Create a directory for files that executors may fetch until this process ends, even those that join late."""
    global _kept  # noqa: PLW0603
    if _kept is None or not _kept.exists():
        _kept = Path(tempfile.mkdtemp(prefix="penstock-dependencies-"))
        atexit.register(shutil.rmtree, _kept, ignore_errors=True)
    return Path(tempfile.mkdtemp(dir=_kept))


def _zipped(directory: Path, below: str = "") -> Path:
    """Zip a directory's files in sorted order, without compression, since most archives stay on this machine."""
    archive = _new_directory() / f"{directory.name or 'files'}.zip"
    with zipfile.ZipFile(archive, "w", strict_timestamps=False) as target:
        for file in _files(directory):
            target.write(file, Path(below, file.relative_to(directory)))
    return archive


def _files(directory: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(directory):
        folders[:] = sorted(folder for folder in folders if folder != "__pycache__")
        for name in sorted(names):
            yield Path(root, name)
