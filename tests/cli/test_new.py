"""``penstock new``: the tests of a new project pass, and its job runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
FILES = ["Dockerfile", "README.md", "job.py", "requirements.txt", "test_job.py"]


@pytest.fixture
def project(tmp_path, capsys):
    assert main(["new", str(tmp_path / "my_job")]) == 0
    assert "penstock run job.py" in capsys.readouterr().out
    return tmp_path / "my_job"


def test_a_project_has_a_job_tests_a_readme_and_a_dockerfile(project):
    assert sorted(path.name for path in project.iterdir()) == FILES
    texts = [path.read_text(encoding="utf-8") for path in project.iterdir()]
    assert not any("NAME" in text or "VERSION" in text for text in texts)
    assert "my_job" in (project / "README.md").read_text(encoding="utf-8")


def test_its_job_runs(project, in_process, capsys):
    assert main(["run", "-p", "1", "--no-progress", str(project / "job.py")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["('kitchen', 21.0)", "('cellar', 11.5)", "('kitchen', 23.5)"]


def test_its_tests_pass(project):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", project]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    plugins = subprocess.run([*command, "--fixtures"], capture_output=True, text=True, cwd=project, check=False).stdout
    if "mini_cluster" not in plugins:  # in an environment from before there was an entry point
        command += ["-p", "penstock.testing.plugin"]
    done = subprocess.run(
        [*command, project], capture_output=True, text=True, cwd=project, env=environment, check=False
    )
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_its_files_are_in_good_style(project):
    ruff = Path(sys.executable).parent / "ruff"
    rules = [
        "--isolated",
        "--select",
        "E,F,W,I,B,UP,D",
        "--ignore",
        "D1,D203,D213,D205,D400,D415,D401",
        "--line-length",
        "120",
    ]
    command = [ruff, "check", *rules, project]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_nothing_is_overwritten_and_names_are_checked(project, capsys):
    assert main(["new", str(project)]) == 1
    assert "exists and is not empty: choose another name" in capsys.readouterr().err
    assert main(["new", str(project.parent / "5 jobs")]) == 1
    assert "'5 jobs' is not a valid project name" in capsys.readouterr().err
