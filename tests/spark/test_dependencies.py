"""What a job brings along: Python files, packages, archives and cached files reach the workers."""

import importlib
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from penstock.common.errors import InvalidProgramError
from penstock.datastream import MapFunction, StreamExecutionEnvironment

pytestmark = pytest.mark.spark


def wheel(directory, name, source):
    """A package of one module, as a package index has them."""
    info = f"{name}-1.0.dist-info"
    directory.mkdir(exist_ok=True)
    with zipfile.ZipFile(directory / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", source)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


class WithDependencies(MapFunction):
    def open(self, runtime_context):
        self.words = Path(runtime_context.get_distributed_cache().get_file("words")).read_text()

    def map(self, value):
        helper = importlib.import_module("penstock_test_helper")
        package = importlib.import_module("penstock_test_package")
        return helper.double(value), package.NAME, self.words


def test_python_files_requirements_and_cached_files_reach_the_workers(spark, tmp_path):
    (tmp_path / "penstock_test_helper.py").write_text("def double(value):\n    return 2 * value\n")
    (tmp_path / "words.txt").write_text("cached")
    wheel(tmp_path / "packages", "penstock_test_package", "NAME = 'installed'\n")
    (tmp_path / "requirements.txt").write_text("penstock_test_package==1.0\n")
    env = StreamExecutionEnvironment(spark=spark).set_parallelism(2)
    env.add_python_file(str(tmp_path / "penstock_test_helper.py"))
    env.set_python_requirements(str(tmp_path / "requirements.txt"), str(tmp_path / "packages"))
    env.register_cached_file(str(tmp_path / "words.txt"), "words")
    stream = env.from_collection([1, 2]).rebalance().map(WithDependencies())
    assert sorted(stream.execute_and_collect()) == [(2, "installed", "cached"), (4, "installed", "cached")]


def test_a_file_that_is_missing_is_named(spark, tmp_path):
    env = StreamExecutionEnvironment(spark=spark)
    env.add_python_file(str(tmp_path / "nothing.py"))
    env.from_collection([1]).print()
    with pytest.raises(InvalidProgramError, match=r"add_python_file\('.*nothing.py'\): there is no such file"):
        env.execute()


def test_requirements_that_cannot_be_had_say_why(spark, tmp_path, monkeypatch):
    (tmp_path / "requirements.txt").write_text("penstock_no_such_package\n")
    (tmp_path / "packages").mkdir()
    env = StreamExecutionEnvironment(spark=spark)
    env.set_python_requirements(str(tmp_path / "requirements.txt"), str(tmp_path / "packages"))
    env.from_collection([1]).print()
    with pytest.raises(InvalidProgramError, match=r"(?s)requirements.txt cannot be installed: .*no.such.package"):
        env.execute()


def test_without_pip_and_uv_the_error_says_so(monkeypatch):
    from penstock.spark.dependencies import _installer

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    assert _installer() == ["/bin/uv", "pip", "install", "--python", sys.executable]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InvalidProgramError, match="needs pip in this environment, or uv on the PATH"):
        _installer()
