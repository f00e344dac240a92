"""Jars from Maven's repository, stored in the user's cache directory.

The first call downloads them with ``mvn``. Later calls, even of other processes, use the stored jars.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from penstock.testing.server import ServerUnavailableError

__all__ = ["maven_jars"]

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>penstock.testing</groupId>
  <artifactId>jars</artifactId>
  <version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}"
    "<exclusions>{}</exclusions></dependency>"
)
_CLASSIFIER = "<classifier>{}</classifier>"

Artifact = tuple[str, str, str] | tuple[str, str, str, str]
"""Group, name, version, and optionally a classifier, for example that of the tests."""


def maven_jars(name: str, version: str, artifacts: Sequence[Artifact], *, transitive: bool = True) -> Path:
    """Return a directory in the user's cache with the jars of artifacts and their dependencies."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"
    directory = cache / f"{name}-{version}"
    if (directory / "complete").exists():
        return directory
    maven = shutil.which("mvn")
    if maven is None:
        raise ServerUnavailableError(
            f"the jars of {name} {version} are fetched with Maven, but mvn is not on PATH: "
            "install it, for example with apt-get install maven"
        )
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as lock:  # tests may run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "complete").exists():
            _copy_dependencies(maven, artifacts, directory, transitive=transitive)
            (directory / "complete").touch()
    return directory


def _copy_dependencies(maven: str, artifacts: Sequence[Artifact], directory: Path, *, transitive: bool) -> None:
    everything = "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
    exclusions = "" if transitive else everything
    with tempfile.TemporaryDirectory(prefix="penstock-maven-") as scratch:
        text = "".join(
            _DEPENDENCY.format(*artifact[:3], "".join(map(_CLASSIFIER.format, artifact[3:])), exclusions)
            for artifact in artifacts
        )
        Path(scratch, "pom.xml").write_text(_POM.format(dependencies=text))
        command = [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={directory}"]
        command.append("-DincludeScope=runtime")
        done = subprocess.run(  # noqa: S603
            command, cwd=scratch, capture_output=True, text=True, check=False, timeout=600
        )
        if done.returncode != 0:
            raise ServerUnavailableError(f"Maven could not fetch the jars: {(done.stdout + done.stderr)[-500:]}")
