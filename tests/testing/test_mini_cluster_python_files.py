"""Python files that a job brings along, on the mini cluster."""

import sys
import zipfile

import pytest

from penstock.common.errors import InvalidProgramError, TypeMismatchError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import KeyedProcessFunction
from penstock.testing import MiniCluster


@pytest.fixture
def env(monkeypatch):
    """An environment whose changes of the import path end with the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    return StreamExecutionEnvironment(executor=MiniCluster())


def answer(module):
    """Asks a module that only the job brings along."""
    return lambda value: value + __import__(module).ADDED


def collected(env, module):
    return sorted(env.from_collection([1, 2]).map(answer(module)).execute_and_collect(limit=9))


def test_functions_import_a_python_file_of_the_job(env, tmp_path):
    (tmp_path / "mini_single_file.py").write_text("ADDED = 10", encoding="utf-8")
    env.add_python_file(str(tmp_path / "mini_single_file.py"))
    assert collected(env, "mini_single_file") == [11, 12]


def test_functions_import_a_package_of_the_job(env, tmp_path):
    (tmp_path / "mini_package").mkdir()
    (tmp_path / "mini_package" / "__init__.py").write_text("ADDED = 20", encoding="utf-8")
    env.add_python_file(str(tmp_path / "mini_package"))
    assert collected(env, "mini_package") == [21, 22]


def test_functions_import_modules_from_a_directory_of_the_job(env, tmp_path):
    (tmp_path / "mini_in_directory.py").write_text("ADDED = 30", encoding="utf-8")
    env.add_python_file(str(tmp_path))
    assert collected(env, "mini_in_directory") == [31, 32]


def test_functions_import_modules_from_a_zip_file_of_the_job(env, tmp_path):
    with zipfile.ZipFile(tmp_path / "code.zip", "w") as archive:
        archive.writestr("mini_in_zip.py", "ADDED = 40")
    env.add_python_file(str(tmp_path / "code.zip"))
    assert collected(env, "mini_in_zip") == [41, 42]


def test_a_missing_python_file_is_an_error_that_names_it(env, tmp_path):
    env.add_python_file(str(tmp_path / "missing.py"))
    with pytest.raises(InvalidProgramError, match=r"missing\.py.*no such file"):
        collected(env, "missing")


class Pass(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


def test_an_output_type_of_a_keyed_process_that_is_no_type_information_is_an_error(env):
    stream = env.from_collection([1, 2]).key_by(lambda value: value)
    with pytest.raises((InvalidProgramError, TypeMismatchError), match="Types"):
        stream.process(Pass(), output_type=int)
