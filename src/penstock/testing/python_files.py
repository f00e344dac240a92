"""Python files of a job that runs in this process: its functions can import them, as they can on Spark."""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path

from penstock.common.errors import InvalidProgramError

__all__ = ["add_python_files"]

_ZIPPED = {".zip", ".whl", ".egg"}


def add_python_files(paths: list[str]) -> None:
    """Put files, packages, directories and zip files on this process's import path, each once."""
    for name in paths:
        entry = _import_path(Path(name))
        if entry not in sys.path:
            sys.path.append(entry)
    if paths:
        importlib.invalidate_caches()


def _import_path(path: Path) -> str:
    if not path.exists():
        raise InvalidProgramError(f"add_python_file({str(path)!r}): there is no such file")
    if path.suffix.lower() in _ZIPPED and path.is_file():
        if not zipfile.is_zipfile(path):
            raise InvalidProgramError(f"add_python_file({str(path)!r}): this is no zip file")
        return str(path.resolve())
    if path.is_dir() and not (path / "__init__.py").exists():
        return str(path.resolve())
    return str(path.resolve().parent)
