"""Makes the Python files of a job available in this process, as on Spark."""

from __future__ import annotations

import atexit
import importlib
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from penstock.common.errors import InvalidProgramError
from penstock.common.requirements import install_requirements

__all__ = ["add_python_files", "add_requirements", "unpack_archives"]

_ZIPPED = {".zip", ".whl", ".egg"}


def add_python_files(paths: list[str]) -> None:
    """Put files, packages, directories and zip files on this process's import path, each once."""
    for name in paths:
        entry = _import_path(Path(name))
        if entry not in sys.path:
            sys.path.insert(_position(), entry)
            _added.add(entry)
    if paths:
        importlib.invalidate_caches()


_added: set[str] = set()


def _position() -> int:
    """Return the place before installed packages, the last entry first, as on Spark.

    The standard library stays before it: the entry of a single file is its directory, with whatever else is there.
    """
    installed = ("site-packages", "dist-packages")
    places = (number for number, entry in enumerate(sys.path) if entry in _added or entry.endswith(installed))
    return next(places, len(sys.path))


def _import_path(path: Path) -> str:
    if not path.exists():
        raise InvalidProgramError(f"add_python_file({str(path)!r}): there is no such file")
    if path.suffix.lower() in _ZIPPED and path.is_file():
        if not zipfile.is_zipfile(path):
            raise InvalidProgramError(f"add_python_file({str(path)!r}): this is not a zip file")
        return str(path.resolve())
    if path.is_dir() and not (path / "__init__.py").exists():
        return str(path.resolve())
    return str(path.resolve().parent)


_installed: dict[tuple[str, bytes, str | None], str] = {}


def add_requirements(requirements: tuple[str, str | None] | None) -> None:
    """Install the packages of a requirements file, once in this process, and put them on its import path."""
    if requirements is None:
        return
    path, cache = requirements
    file = Path(path)
    key = (str(file.resolve()), file.read_bytes() if file.exists() else b"", cache)
    if key not in _installed:
        directory = _new_directory()
        install_requirements(path, cache, directory)
        _installed[key] = str(directory)
    if _installed[key] not in sys.path:
        sys.path.append(_installed[key])
        importlib.invalidate_caches()


def unpack_archives(archives: list[tuple[str, str | None]]) -> str | None:
    """Unpack a job's archives into one directory, in which its functions run. Return None if it has no archives."""
    if not archives:
        return None
    directory = _new_directory()
    for name, target in archives:
        path = Path(name)
        if not path.is_file():
            raise InvalidProgramError(f"add_python_archive({name!r}): there is no such file")
        zipped = path.suffix.lower() in _ZIPPED | {".jar"}
        try:
            shutil.unpack_archive(path, directory / (target or path.name), "zip" if zipped else None)
        except shutil.ReadError as error:
            raise InvalidProgramError(f"add_python_archive({name!r}): {error}") from None
    return str(directory)


def _new_directory() -> Path:
    """Create a directory that lives as long as this process: a job may be restarted at any time."""
    directory = Path(tempfile.mkdtemp(prefix="penstock-mini-cluster-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory
