"""Type checkers infer the types of records from a program, and find wrong ones."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.exhaustive

HERE = Path(__file__).parent
PROGRAM = HERE / "programs.py"
SRC = HERE.parents[1] / "src"
EXAMPLES = HERE.parents[1] / "examples"
STYLES = [EXAMPLES / "styles" / "short_forms.py", EXAMPLES / "styles" / "flink_names.py"]


def expected():
    """Line -> the type it must have, or None for an error."""
    found = {}
    for number, line in enumerate(PROGRAM.read_text().splitlines(), 1):
        if "# expect: " in line:
            found[number] = line.partition("# expect: ")[2]
        elif line.endswith("# expect an error"):
            found[number] = None
    return found


def simplified(type_text):
    """A type without the modules that mypy writes before every name."""
    type_text = re.sub(r"tuple\[int, int, fallback=[\w.]*\.(\w+)\]", r"\1", type_text)
    return re.sub(r"\b\w+(?:\.\w+)*\.(\w+)", r"\1", type_text)


def check(output, pattern_of_type):
    revealed, errors = {}, set()
    for line in output.splitlines():
        assert not re.search(r"(short_forms|flink_names)\.py:\d+.*error", line), line
        number = re.search(r"programs\.py:(\d+)", line)
        if not number:
            continue
        told = re.search(pattern_of_type, line)
        if told:
            revealed[int(number[1])] = simplified(told[1])
        elif "error" in line:
            errors.add(int(number[1]))
    wanted = expected()
    assert revealed == {line: told for line, told in wanted.items() if told is not None}
    assert errors == {line for line, told in wanted.items() if told is None}


@pytest.mark.timeout(600)
def test_mypy_infers_the_types_of_records(tmp_path):
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", f"--cache-dir={tmp_path}", PROGRAM]
    environment = {"MYPYPATH": f"{SRC}:{EXAMPLES}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert not done.stderr
    check(done.stdout, r'Revealed type is "(.*)"')


@pytest.mark.timeout(600)
def test_pyright_infers_the_types_of_records(tmp_path):
    pyright = shutil.which("basedpyright", path=Path(sys.executable).parent)
    assert pyright is not None, "install the development dependencies"
    settings = tmp_path / "pyrightconfig.json"
    included = json.dumps([str(path) for path in (PROGRAM, *STYLES)])
    settings.write_text(
        f'{{"extraPaths": ["{SRC}", "{EXAMPLES}"], "typeCheckingMode": "standard", "include": {included}}}'
    )
    command = [pyright, "--pythonpath", sys.executable, "--project", settings]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    check(done.stdout, r'Type of ".*" is "(.*)"')
