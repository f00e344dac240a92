"""Each system's own Python environment, made on demand from pinned versions.

They lie under `.bench/`, or wherever the variable PENSTOCK_BENCH_HOME says, so that several clones can share them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / ".bench"
HOME = Path(os.environ.get("PENSTOCK_BENCH_HOME") or CACHE).absolute()
_PYTHON = "3.11"  # apache-flink 2.3 runs on 3.9 to 3.12


@dataclass(slots=True, frozen=True)
class Environment:
    """A virtual environment holding some requirements at the versions of its constraints file."""

    name: str
    requirements: tuple[str, ...]

    @property
    def directory(self) -> Path:
        """Where it is."""
        return HOME / f"venv-{self.name}"

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.directory / "bin" / "python")

    @property
    def site_packages(self) -> str:
        """Its packages, for interpreters embedded in a JVM, which do not find them by themselves."""
        return str(next((self.directory / "lib").glob("python*/site-packages")))

    def ensure(self) -> None:
        """Make it unless it is there with these very versions."""
        constraints = ROOT / "benchmarks" / f"constraints-{self.name}.txt"
        stamp = self.directory / "installed.txt"
        wanted = "\n".join((*self.requirements, constraints.read_text()))
        if stamp.exists() and stamp.read_text() == wanted:
            return
        print(f"making the {self.name} environment ...", flush=True)
        install = [*self.requirements, "-c", str(constraints)]
        if shutil.which("uv"):
            _run("uv", "venv", "--quiet", "--clear", "--python", _PYTHON, str(self.directory))
            _run("uv", "pip", "install", "--quiet", "--python", self.python, *install)
        else:
            _run(sys.executable, "-m", "venv", "--clear", str(self.directory))
            _run(self.python, "-m", "pip", "install", "--quiet", *install)
        stamp.write_text(wanted)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


PYFLINK = Environment("pyflink", ("apache-flink",))
QUIX = Environment("quix", ("quixstreams",))
BYTEWAX = Environment("bytewax", ("bytewax[kafka]", "pyarrow"))
PATHWAY = Environment("pathway", ("pathway",))
SPARK = Environment("spark", ("pyspark", "pandas", "pyarrow", "protobuf"))
