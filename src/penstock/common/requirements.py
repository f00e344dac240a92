"""Installs the packages of a requirements file, separate from those of the environment."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from penstock.common.errors import InvalidProgramError

__all__ = ["install_requirements"]


def install_requirements(requirements: str, cache: str | None, directory: Path) -> None:
    """Install into an empty directory, from the cache of downloaded packages if there is one."""
    if not Path(requirements).exists():
        raise InvalidProgramError(f"set_python_requirements({requirements!r}): the file does not exist")
    command = [*_installer(), "--quiet", "--target", str(directory), "-r", requirements]
    if cache is not None:
        command += ["--no-index", "--find-links", cache]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - the user's own file
    if done.returncode:
        raise InvalidProgramError(f"the requirements in {requirements} cannot be installed: {done.stderr.strip()}")


def _installer() -> list[str]:
    """Return the command for pip, or uv: an environment created by uv has no pip."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install"]
    uv = shutil.which("uv")
    if uv is None:
        raise InvalidProgramError("set_python_requirements() needs pip in this environment, or uv on the PATH")
    return [uv, "pip", "install", "--python", sys.executable]
