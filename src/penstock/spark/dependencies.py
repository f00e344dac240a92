"""What a job brings along besides its functions: Python files, archives, requirements, cached files."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark import SparkContext

from penstock.common.errors import InvalidProgramError
from penstock.graph.settings import JobSettings

_shipped: set[str] = set()


def ship_dependencies(context: SparkContext, settings: JobSettings) -> None:
    """Make the job's files known to all workers, through Spark's own means; each once per Spark."""
    for path in settings.python_files:
        if _first(context, path):
            context.addPyFile(_existing(path, "add_python_file"))
    for path, target in settings.python_archives:
        if _first(context, path):
            context.addArchive(_existing(path, "add_python_archive") + (f"#{target}" if target else ""))
    if settings.python_requirements is not None:
        requirements, cache = settings.python_requirements
        if _first(context, requirements):
            context.addPyFile(_installed(_existing(requirements, "set_python_requirements"), cache))
    for path in settings.cached_files.values():
        if _first(context, path):
            context.addFile(_existing(path, "register_cached_file"), recursive=Path(path).is_dir())


def _first(context: SparkContext, path: str) -> bool:
    key = f"{context.applicationId} {Path(path).resolve()}"
    if key in _shipped:
        return False
    _shipped.add(key)
    return True


def _existing(path: str, call: str) -> str:
    if not Path(path).exists():
        raise InvalidProgramError(f"{call}({path!r}): there is no such file")
    return path


def _installer() -> list[str]:
    """pip, or uv: an environment that uv has made has no pip."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install"]
    uv = shutil.which("uv")
    if uv is None:
        raise InvalidProgramError("set_python_requirements() needs pip in this environment, or uv on the PATH")
    return [uv, "pip", "install", "--python", sys.executable]


def _installed(requirements: str, cache: str | None) -> str:
    """The required packages as one zip that Python can import from."""
    directory = Path(tempfile.mkdtemp(prefix="penstock-requirements-"))
    command = [*_installer(), "--quiet", "--target", str(directory / "packages"), "-r", requirements]
    if cache is not None:
        command += ["--no-index", "--find-links", cache]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - the user's own file
    if done.returncode:
        raise InvalidProgramError(f"the requirements in {requirements} cannot be installed: {done.stderr.strip()}")
    return shutil.make_archive(str(directory / "requirements"), "zip", directory / "packages")
