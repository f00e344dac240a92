"""PyFlink's own examples, with the import swapped. They come with its wheel, which is downloaded and not installed."""

import re
import runpy
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from penstock.common import Configuration
from penstock.datastream.execution_defaults import ExecutionDefaults, execution_defaults
from penstock.testing import MiniCluster

VERSION = "2.3.0"
FOLDER = "pyflink/examples/datastream"
CACHE = Path(tempfile.gettempdir()) / f"penstock-pyflink-{VERSION}"

LINES = {
    "word_count.py": {"(all,1)", "(sins,1)", "(remember'd.,1)", "(For,2)"},
    "basic_operations.py": {"('USA', 124)", "('China', 135)", "('Germany', 123)", "('China', 167)"},
    "process_json_data.py": {
        "(2, {'name': 'hello', 'tel': 136, 'addr': {'country': 'China', 'city': 'Shanghai'}})",
        "(4, {'name': 'PyFlink', 'tel': 33, 'addr': {'country': 'China', 'city': 'Hangzhou'}})",
    },
    "state_access.py": {"('Alice', 110.0999984741211)", "('Alice', 163.29999923706055)"},
    "event_time_timer.py": {"('Alice', 163.29999923706055)"},
    "windowing/tumbling_time_window.py": {"(hi,0,5,4)", "(hi,5,10,3)", "(hi,15,20,1)"},
    "windowing/sliding_time_window.py": {"(hi,6,11,2)", "(hi,8,13,2)", "(hi,12,17,1)", "(hi,14,19,1)"},
    "windowing/session_with_gap_window.py": {"(hi,1,14,6)", "(hi,15,20,1)"},
    "windowing/session_with_dynamic_gap_window.py": {"(hi,1,30,7)"},
    "windowing/tumbling_count_window.py": {"(hi,4)", "(hello,6)", "(hello,12)"},
}
"""Lines that each example prints, among others."""


@pytest.fixture(scope="session")
def examples():
    """The folder with PyFlink's examples."""
    found = sorted(CACHE.glob("*.whl"))
    if not found:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        command += ["--dest", str(CACHE), f"apache-flink=={VERSION}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        found = sorted(CACHE.glob("*.whl"))
        if done.returncode or not found:
            pytest.skip(f"PyFlink's wheel cannot be downloaded: {done.stderr.strip()[-200:]}")
    with zipfile.ZipFile(found[0]) as wheel:
        return {name: wheel.read(f"{FOLDER}/{name}").decode() for name in LINES}


@pytest.mark.parametrize("name", LINES)
def test_an_example_of_pyflink_runs_with_the_import_swapped(examples, name, tmp_path, monkeypatch, capsys):
    program = tmp_path / Path(name).name
    program.write_text(re.sub(r"\bpyflink\b", "penstock", examples[name]), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", [str(program)])
    one = Configuration().set_integer("parallelism.default", 1)
    with execution_defaults(ExecutionDefaults(one, executor=MiniCluster())):
        runpy.run_path(str(program), run_name="__main__")
    printed = set(capsys.readouterr().out.splitlines())
    assert printed >= LINES[name]
