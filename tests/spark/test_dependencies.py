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
        cache = runtime_context.get_distributed_cache()
        self.words = Path(cache.get_file("words")).read_text(), Path(cache.get_file("folder"), "more.txt").read_text()

    def map(self, value):
        helper = importlib.import_module("penstock_test_helper")
        names = [
            importlib.import_module(f"penstock_test_{name}").NAME for name in ("package", "wheel", "folder", "module")
        ]
        return helper.double(value), *names, *self.words


def test_python_files_requirements_and_cached_files_reach_the_workers(spark, tmp_path):
    (tmp_path / "penstock_test_helper.py").write_text("def double(value):\n    return 2 * value\n")
    (tmp_path / "words.txt").write_text("cached")
    for folder, file, content in (
        ("penstock_test_folder", "__init__.py", "NAME = 'folder'"),
        ("modules", "penstock_test_module.py", "NAME = 'module'"),
        ("cached", "more.txt", "cached, too"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).write_text(content)
    wheel(tmp_path / "packages", "penstock_test_package", "NAME = 'installed'\n")
    wheel(tmp_path / "wheels", "penstock_test_wheel", "NAME = 'wheel'\n")
    (tmp_path / "requirements.txt").write_text("penstock_test_package==1.0\n")
    env = StreamExecutionEnvironment(spark=spark).set_parallelism(2)
    env.add_python_file(str(tmp_path / "penstock_test_helper.py"))
    env.add_python_file(str(tmp_path / "wheels" / "penstock_test_wheel-1.0-py3-none-any.whl"))
    env.add_python_file(str(tmp_path / "penstock_test_folder"))
    env.add_python_file(str(tmp_path / "modules"))
    env.set_python_requirements(str(tmp_path / "requirements.txt"), str(tmp_path / "packages"))
    env.register_cached_file(str(tmp_path / "words.txt"), "words")
    env.register_cached_file(str(tmp_path / "cached"), "folder")
    stream = env.from_collection([1, 2]).rebalance().map(WithDependencies())
    everything = ("installed", "wheel", "folder", "module", "cached", "cached, too")
    assert sorted(stream.execute_and_collect()) == [(2, *everything), (4, *everything)]


def packed(value):
    native = importlib.import_module("msgpack._cmsgpack")
    return native.Packer().pack(value), native.__file__


def test_required_packages_with_native_code_can_be_imported_by_the_workers(spark, tmp_path):
    assert importlib.util.find_spec("msgpack") is None, "another package for this test"
    (tmp_path / "requirements.txt").write_text("msgpack==1.1.2\n")
    env = StreamExecutionEnvironment(spark=spark).set_parallelism(1)
    env.set_python_requirements(str(tmp_path / "requirements.txt"))
    try:
        found = list(env.from_collection([(1, "a")]).map(packed).execute_and_collect())
    except InvalidProgramError as error:
        pytest.skip(f"no package index: {error}")
    ((data, file),) = found
    assert data == b"\x92\x01\xa1a"
    assert file.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES))


@pytest.mark.parametrize(("target", "folder"), [(None, "words.zip"), ("books", "books")])
def test_functions_run_where_the_archives_of_their_job_are_and_those_of_other_jobs_do_not(
    spark, tmp_path, target, folder
):
    with zipfile.ZipFile(tmp_path / "words.zip", "w") as archive:
        archive.writestr("content/words.txt", "unpacked")
    env = StreamExecutionEnvironment(spark=spark).set_parallelism(1)
    env.add_python_archive(str(tmp_path / "words.zip"), target)
    stream = env.from_collection([1]).map(lambda _: Path(folder, "content", "words.txt").read_text())
    assert list(stream.execute_and_collect()) == ["unpacked"]
    other = StreamExecutionEnvironment(spark=spark).set_parallelism(1).from_collection([1])
    assert list(other.map(lambda _: str(Path.cwd())).execute_and_collect()) == [str(Path.cwd())]


def test_a_package_that_is_no_zip_file_is_named(spark, tmp_path):
    (tmp_path / "package.whl").write_text("nonsense")
    env = StreamExecutionEnvironment(spark=spark)
    env.add_python_file(str(tmp_path / "package.whl"))
    env.from_collection([1]).print()
    with pytest.raises(InvalidProgramError, match=r"add_python_file\('.*package.whl'\): this is not a zip file"):
        env.execute()


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
    for _ in range(2):  # what could not be had is asked for again
        env.from_collection([1]).print()
        with pytest.raises(InvalidProgramError, match=r"(?s)requirements.txt cannot be installed: .*no.such.package"):
            env.execute()


def test_without_pip_and_uv_the_error_says_so(monkeypatch):
    from penstock.common.requirements import _installer

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    assert _installer() == ["/bin/uv", "pip", "install", "--python", sys.executable]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InvalidProgramError, match="needs pip in this environment, or uv on the PATH"):
        _installer()
