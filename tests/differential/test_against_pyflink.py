"""The same programs in real PyFlink and in Penstock, by swapping the import: the same results.

PyFlink gets an environment of its own, the one the benchmarks use. Where it cannot be installed the test is skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.systems.environment import PYFLINK

from penstock.spark.java import ensure_java_home

pytestmark = pytest.mark.spark

PROGRAMS = Path(__file__).with_name("programs.py")
ROOT = Path(__file__).parents[2]

# PyFlink assigns records to sliding count windows itself and leaves out the windows before the first full one. Flink
# fires every `slide` records from the first on, with fewer than `size` records at the beginning (rule 6.4).
EARLY_RESULTS = {"sliding_count": ["('s0', 0, 3)", "('s1', 370, 5)", "('s2', 740, 7)"]}


def run(python: str, package: str, output: Path, path: str) -> dict[str, list[str]]:
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src") if package == "penstock" else ""}
    command = [python, str(PROGRAMS), package, str(output)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    results: dict[str, list[str]] = json.loads(output.read_text())
    return results


@pytest.fixture(scope="module")
def pyflink() -> str:
    try:
        PYFLINK.ensure()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"PyFlink cannot be installed here: {error}")
    return PYFLINK.python


@pytest.mark.timeout(1800)
def test_window_programs_give_the_same_results_in_pyflink_and_in_penstock(pyflink: str, tmp_path: Path) -> None:
    ensure_java_home()
    java = Path(os.environ["JAVA_HOME"], "bin") if "JAVA_HOME" in os.environ else None
    path = os.pathsep.join(str(part) for part in (Path(pyflink).parent, java, os.environ["PATH"]) if part)
    expected = run(pyflink, "pyflink", tmp_path / "pyflink.json", path)
    actual = run(sys.executable, "penstock", tmp_path / "penstock.json", os.environ["PATH"])
    assert list(actual) == list(expected)
    assert all(expected.values())
    for program, results in actual.items():
        early = Counter(EARLY_RESULTS.get(program, ()))
        assert Counter(results) - early == Counter(expected[program]), program
        assert Counter(results) - Counter(expected[program]) == early, program
