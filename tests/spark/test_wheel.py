"""The wheel: with its declared dependencies and nothing else, the command works and the job of a new project runs."""

import os
import shutil
import subprocess
import sys
import venv
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from penstock import __version__
from penstock.spark.java import find_java

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("pyproject.toml", "README.md", "LICENSE")


def closure(requirements):
    """The installed distributions that some requirements need, without optional ones."""
    found, waiting = {}, [Requirement(each) for each in requirements]
    while waiting:
        requirement = waiting.pop()
        if requirement.name.lower() in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        try:
            found[requirement.name.lower()] = installed = distribution(requirement.name)
        except PackageNotFoundError:  # for another platform
            continue
        waiting += [Requirement(each) for each in installed.requires or ()]
    return found.values()


def link_into(site_packages, distributions):
    """Make installed distributions visible in another environment; pyspark alone would take a minute to copy."""
    for each in distributions:
        for top in {file.parts[0] for file in each.files if file.parts[0] not in ("..", "__pycache__")}:
            source, target = Path(each.locate_file(top)), site_packages / top
            if source.exists() and not target.exists():
                target.symlink_to(source)


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of an environment with the wheel."""
    directory = tmp_path_factory.mktemp("wheel")
    tree = directory / "tree"
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in SOURCES:
        shutil.copy(ROOT / name, tree)
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", directory / "dist", tree]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (directory / "dist").glob("*.whl")
    assert wheel.name == f"penstock-{__version__}-py3-none-any.whl"
    venv.create(directory / "env", with_pip=False)
    (site_packages,) = (directory / "env" / "lib").glob("python*/site-packages")
    interpreter = directory / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", interpreter, "install", "--quiet", "--no-deps", "--no-index", wheel]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (metadata,) = site_packages.glob("penstock-*.dist-info/METADATA")
    declared = [
        line.partition(": ")[2] for line in metadata.read_text("utf-8").splitlines() if "Requires-Dist: " in line
    ]
    link_into(site_packages, closure(declared))
    return interpreter


def run(python, *arguments, cwd):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK"))}
    environment["JAVA_HOME"] = str(find_java())
    command = [python.parent / "penstock", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False, timeout=240)


@pytest.fixture(scope="module")
def project(python, tmp_path_factory):
    """A new project that the command of the wheel has written."""
    directory = tmp_path_factory.mktemp("project")
    made = run(python, "new", "my_job", cwd=directory)
    assert made.returncode == 0, made.stderr
    return directory / "my_job"


def test_the_command_of_the_wheel_works_without_anything_else(python, project):
    assert run(python, "--version", cwd=project).stdout == f"penstock {__version__}\n"
    planned = run(python, "plan", "job.py", cwd=project)
    assert "Window(TumblingEventTimeWindows(60000), Aggregate)" in planned.stdout, planned.stderr


def test_the_job_of_a_new_project_runs(python, project):
    done = run(python, "run", "-p", "1", "--no-progress", "job.py", cwd=project)
    assert done.stdout.splitlines() == ["('kitchen', 21.0)", "('cellar', 11.5)", "('kitchen', 23.5)"], done.stderr
