"""Python files that a job brings along, on the mini cluster."""

import sys
import zipfile
from pathlib import Path

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


def test_a_python_file_of_the_job_comes_before_earlier_ones_and_installed_packages(env, tmp_path):
    for number, place in enumerate(("installed", "earlier", "later")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "mini_three_times.py").write_text(f"ADDED = {number * 10}", encoding="utf-8")
    sys.path.append(str(tmp_path / "installed"))
    env.add_python_file(str(tmp_path / "earlier" / "mini_three_times.py"))
    env.add_python_file(str(tmp_path / "later" / "mini_three_times.py"))
    assert collected(env, "mini_three_times") == [21, 22]


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


def test_functions_run_where_the_archives_of_the_job_are(env, tmp_path):
    with zipfile.ZipFile(tmp_path / "numbers.zip", "w") as archive:
        archive.writestr("added.txt", "30")
    env.add_python_archive(str(tmp_path / "numbers.zip"), "data")
    env.add_python_archive(str(tmp_path / "numbers.zip"))
    before = Path.cwd()

    def add(value):
        return value + int(Path("data/added.txt").read_text()) + int(Path("numbers.zip/added.txt").read_text())

    assert sorted(env.from_collection([1, 2]).map(add).execute_and_collect(limit=9)) == [61, 62]
    assert Path.cwd() == before


def test_a_missing_archive_is_an_error_that_names_it(env, tmp_path):
    env.add_python_archive(str(tmp_path / "missing.zip"))
    with pytest.raises(InvalidProgramError, match=r"add_python_archive\(.*missing.zip.*there is no such file"):
        env.from_collection([1]).execute_and_collect(limit=1)


def test_functions_import_the_requirements_of_the_job(env, tmp_path):
    project = tmp_path / "wheels"
    project.mkdir()
    with zipfile.ZipFile(project / "mini_required-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("mini_required.py", "ADDED = 40")
        wheel.writestr(
            "mini_required-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: mini-required\nVersion: 1.0\n"
        )
        wheel.writestr(
            "mini_required-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("mini_required-1.0.dist-info/RECORD", "")
    (tmp_path / "requirements.txt").write_text("mini-required==1.0", encoding="utf-8")
    env.set_python_requirements(str(tmp_path / "requirements.txt"), str(project))
    assert collected(env, "mini_required") == [41, 42]


def test_what_lies_beside_a_python_file_does_not_hide_the_standard_library(env, tmp_path):
    (tmp_path / "mini_beside.py").write_text(
        "import this_is_standard\nADDED = this_is_standard.VALUE", encoding="utf-8"
    )
    (tmp_path / "this_is_standard.py").write_text("VALUE = 20", encoding="utf-8")
    standard = tmp_path / "standard"
    standard.mkdir()
    (standard / "this_is_standard.py").write_text("VALUE = 10", encoding="utf-8")
    sys.path.insert(1, str(standard))
    env.add_python_file(str(tmp_path / "mini_beside.py"))
    assert collected(env, "mini_beside") == [11, 12]
