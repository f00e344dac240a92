"""Tests the continuous mode on several versions of Spark, each in an environment of its own: ``make test-versions``.

Without arguments: all versions below. The environments are kept in ``.versions`` (or in the directory that
``PENSTOCK_VERSIONS_HOME`` names), some 500 MB each. A version that does not pass does not keep the others from being
tested; the exit code tells whether all have passed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
PACKAGES = (
    "pyarrow",
    "protobuf",
    "cloudpickle",
    "numpy",
    "pandas",
    "cryptography",
    "hypothesis",
    "pytest",
    "pytest-timeout",
)
# A job, a worker and a driver that are killed, savepoints, cancelling: what runs on every Spark.
# Older versions leave sockets for the garbage collector to close, and pytest would fail the test in which it does so.
WARNINGS = ("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
TESTS = ("tests/spark/continuous",)

# A batch job, where Spark has what that needs.
BATCH_JOB = """
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.spark.features import SparkMode, missing_for
if not missing_for(SparkMode.BATCH):
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    sums = env.from_sequence(1, 100).key_by(lambda n: n % 2).reduce(lambda a, b: a + b)
    assert sorted(sums.execute_and_collect()) == [2500, 2550]
    print("a batch job gives its results")
"""


def main() -> int:
    """Test each version, and print what has passed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("versions", nargs="*", default=VERSIONS, help=f"versions of pyspark ({' '.join(VERSIONS)})")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to test with")
    parser.add_argument("-k", dest="only", help="only the tests that match, as pytest's -k")
    options = parser.parse_args()
    results = {version: run_tests(environment(version, options.python), options.only) for version in options.versions}
    for version, (passed, seconds, modes) in results.items():
        print(f"Spark {version}: {'passed' if passed else 'FAILED'} in {seconds:.0f} s; {modes}")
    return 0 if all(passed for passed, _, _ in results.values()) else 1


def environment(version: str, python: str) -> Path:
    """The interpreter of an environment with this Spark; made if there is none."""
    home = Path(os.environ.get("PENSTOCK_VERSIONS_HOME") or ROOT / ".versions")
    directory = home / (version if python == sys.executable else f"{version}-{Path(python).name}")
    interpreter = directory / "bin" / "python"
    if not (directory / "complete").exists():
        print(f"making {directory}", flush=True)
        if python == sys.executable:
            venv.create(directory, with_pip=True)
        else:
            subprocess.run([python, "-m", "venv", str(directory)], check=True)
        subprocess.run(
            [interpreter, "-m", "pip", "install", "--quiet", f"pyspark=={version}", *pinned(PACKAGES)], check=True
        )
        (directory / "complete").touch()
    return interpreter


def pinned(packages: tuple[str, ...]) -> list[str]:
    """Packages as in constraints.txt."""
    known = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE))
    return [f"{package}=={known[package]}" for package in packages]


def run_tests(interpreter: Path, only: str | None) -> tuple[bool, float, str]:
    """Whether the tests pass, how long they take, and which modes this Spark runs."""
    surroundings = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "PENSTOCK_CACHE_DIR": str(interpreter.parent.parent / "cache"),
    }
    started = time.monotonic()
    selection = ["-k", only] if only else []
    selection += [part for warning in WARNINGS for part in ("-W", warning)]
    tested = subprocess.run(
        [interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, *selection],
        cwd=ROOT,
        env=surroundings,
        check=False,
    )
    script = (
        "from penstock.spark.features import SparkMode, missing_for; "
        "print(*(f'{mode.value}: ' + (' and '.join(missing_for(mode)) or 'works') for mode in SparkMode), sep='; ')"
    )
    batch = subprocess.run([interpreter, "-c", BATCH_JOB], env=surroundings, check=False)
    modes = subprocess.run([interpreter, "-c", script], env=surroundings, capture_output=True, text=True, check=False)
    return tested.returncode == batch.returncode == 0, time.monotonic() - started, modes.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
