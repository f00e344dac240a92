"""Small checks of our own, for what no linter knows."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import penstock

ROOT = Path(__file__).resolve().parents[2]

# Files in src may have this many lines. One idea a file: split rather than add to the list.
MAX_LINES = 500
LONGER_FILES: dict[str, int] = {}

# Put together from parts, so that this file passes its own check.
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.\-/])/(?:wo" + r"rk|ro" + r"ot)/"),
    "a home directory": re.compile(r"(?<![\w.\-/])/(?:home|Us" + r"ers)/\w"),
    "a registry's host name": re.compile(
        "|".join(
            (
                r"pypi\." + "org",
                "python" + r"hosted\.org",
                r"deb\." + "debian",
                r"repo1\." + "maven",
                r"registry\." + "npmjs",
            )
        )
    ),
    "an index address": re.compile("--(?:extra-)?index" + "-url"),
}


def tracked_files():
    """What git has or would add; without git (a source archive) everything that is not generated."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        return [path for path in ROOT.rglob("*") if path.is_file() and not is_generated(path)]
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


def is_generated(path):
    parts = path.relative_to(ROOT).parts
    return any(
        part in {"__pycache__", "build", "dist", "spark-warehouse", "metastore_db", "artifacts"}
        or part.endswith(".egg-info")
        or (part.startswith(".") and part not in {".ci", ".gitignore"})
        for part in parts
    )


def pinned():
    return dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines())


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_names(what):
    found = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
            for number, line in enumerate(text.splitlines(), 1)
            if FORBIDDEN[what].search(line)
        ]
    assert not found, f"{what} in:\n" + "\n".join(found)


@functools.cache
def parsed_sources():
    paths = sorted((ROOT / "src").rglob("*.py"))
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def imports_of_our_own(tree):
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return [node for node in nodes if (node.module or "").startswith("penstock")]


def test_source_files_stay_short():
    too_long = {}
    for path in (ROOT / "src").rglob("*.py"):
        name, lines = str(path.relative_to(ROOT)), len(path.read_text(encoding="utf-8").splitlines())
        if lines > LONGER_FILES.get(name, MAX_LINES):
            too_long[name] = lines
    assert not too_long


def test_a_module_with_many_imports_says_why():
    unexplained = {}
    for path, tree in parsed_sources().items():
        imported = {node.module for node in imports_of_our_own(tree)}
        explained = path.endswith("__init__.py") or " imports " in (ast.get_docstring(tree) or "")
        if len(imported) > 15 and not explained:
            unexplained[path] = len(imported)
    assert not unexplained


def test_modules_import_only_public_names_of_each_other():
    private = [
        f"{path}: {node.module}.{name.name}"
        for path, tree in parsed_sources().items()
        for node in imports_of_our_own(tree)
        for name in node.names
        if re.match("_[a-zA-Z]", name.name)
    ]
    assert not private


def test_allowlist_of_long_files_has_no_stale_entries():
    assert [name for name in LONGER_FILES if not (ROOT / name).is_file()] == []


def test_constraints_are_names_and_versions_only():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.+]*", line)] == []
    assert len(pinned()) == len(lines)


def test_constraints_pin_every_declared_dependency(project):
    declared = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    names = {re.match(r"[A-Za-z0-9._-]+", requirement).group().lower() for requirement in declared}
    assert names - pinned().keys() == set()


def test_version_is_the_same_in_package_and_metadata(project):
    assert penstock.__version__ == project["version"]


@pytest.mark.parametrize(
    "script",
    [".ci/run", "scripts/setup_env.sh", "scripts/update_constraints.sh", "src/penstock/spark/java_shim/bin/java"],
)
def test_script_is_executable_and_parses(script):
    path = ROOT / script
    assert os.access(path, os.X_OK)
    subprocess.run(["bash", "-n", path], check=True)


def test_every_make_target_has_a_description():
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, flags=re.MULTILINE).group(1).split()
    described = re.findall(r"^([a-z-]+):.*## \S", makefile, flags=re.MULTILINE)
    assert sorted(described) == sorted(phony)


def test_the_wheel_has_every_file_that_is_no_module():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["penstock"]
    package = ROOT / "src" / "penstock"
    packed = {path for pattern in settings for path in package.glob(pattern)}
    others = {path for path in package.rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"}}
    assert {str(path.relative_to(package)) for path in others - packed} == set()
