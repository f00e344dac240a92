"""The fixtures mini_cluster and harness, in a test run of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src"

JOB = """
import penstock as ps

def main():
    env = ps.StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.from_collection([1, 2]).map(lambda n: 2 * n).print()
    env.execute()
"""

TESTS = """
import job
import penstock as ps

class Double(ps.MapFunction):
    def map(self, value):
        return 2 * value

def test_a_program_runs_on_the_mini_cluster(mini_cluster, capsys):
    job.main()
    assert capsys.readouterr().out == "2\\n4\\n"

def test_a_function_runs_in_a_harness(harness):
    assert harness(Double()).receive(1, 2).results() == [2, 4]
"""


def test_pytest_has_the_fixtures(tmp_path):
    (tmp_path / "job.py").write_text(JOB, encoding="utf-8")
    (tmp_path / "test_job.py").write_text(TESTS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", "-c", os.devnull]
    installed = subprocess.run([*command, "--fixtures"], capture_output=True, text=True, cwd=tmp_path, check=False)
    if "mini_cluster" not in installed.stdout:  # in an environment from before there was an entry point
        command += ["-p", "penstock.testing.plugin"]
    environment = {**os.environ, "PYTHONPATH": f"{SRC}{os.pathsep}{tmp_path}"}
    done = subprocess.run(
        [*command, "--rootdir", tmp_path, tmp_path],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_the_entry_point_is_declared():
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((SRC.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"penstock": "penstock.testing.plugin"}


def test_the_plugin_imports_nothing_large():
    code = "import sys, penstock.testing.plugin; print(sorted(m for m in sys.modules if 'mini' in m or 'pyspark' in m))"
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"
