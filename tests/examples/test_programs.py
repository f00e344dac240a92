"""Every program as a whole: its command line, what it prints, and some of them on Spark."""

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from showcase import collect, render

import sensor_average
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAMS = sorted(path.stem for path in (EXAMPLES / "book").glob("*.py") if path.stem not in {"sensors", "showcase"})


UNORDERED = {"E08", "E16"}  # the order of their records is not defined


def mini_environment():
    return StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(2)


def test_every_example_of_the_book_is_there_once():
    numbers = [number for name in PROGRAMS for number in import_module(name).book.examples]
    chapters_1_to_6 = sorted(["E01", *(number for number in numbers if number.startswith("E"))])
    assert chapters_1_to_6 == [f"E{number:02}" for number in range(1, 48)]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("name", PROGRAMS)
def test_help_lists_the_examples(name, capsys):
    book = import_module(name).book
    with pytest.raises(SystemExit, match="0"):
        book.main(["--help"])
    printed = capsys.readouterr().out
    assert all(f"{example.number}  {example.title}" in printed for example in book.examples.values())


def test_sensor_average_explains_how_to_survive_a_kill(capsys):
    with pytest.raises(SystemExit, match="0"):
        sensor_average.main(["--help"])
    assert "kill -9" in capsys.readouterr().out


def test_a_program_prints_title_explanation_and_results(monkeypatch, capsys):
    monkeypatch.setattr(StreamExecutionEnvironment, "get_execution_environment", staticmethod(mini_environment))
    assert import_module("joins").book.main(["--example", "E40"]) == 0
    assert capsys.readouterr().out == (
        "\n"
        "E40  Interval join\n"
        "==================\n"
        "Events of A with those of B that are at most an hour older or 15 minutes younger; both bounds count.\n"
        "\n"
        "The last column is the time of the result.\n"
        "\n"
        "  x   A 09:00:00   B 08:00:00   09:00:00\n"
        "  x   A 09:00:00   B 09:15:00   09:15:00\n"
        "  y   A 09:30:00   B 09:00:00   09:30:00\n"
    )


def test_the_readme_names_every_program_and_example():
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for name in PROGRAMS:
        (row,) = [line for line in readme.splitlines() if f"book/{name}.py" in line and line.startswith("|")]
        assert set(re.findall(r"\b(?:E\d\d|[78]-\d+)\b", row)) == set(import_module(name).book.examples), name
    assert "sensor_average.py" in readme
    for path in (EXAMPLES / "taxi").glob("*.py"):
        assert f"(taxi/{path.name})" in readme


def run_on_spark(script, *arguments, mode=None):
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent / "src")}
    start = ["-m", "penstock.cli", "run", "--mode", mode] if mode else []
    command = [sys.executable, *start, str(EXAMPLES / script), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "mode"),
    [("custom_windows", None), ("late_data", None), ("multistream", None), ("custom_windows", "continuous")],
)
def test_on_spark_a_program_prints_what_it_prints_in_process(name, mode):
    printed = run_on_spark(f"book/{name}.py", mode=mode)
    for example in import_module(name).book.examples.values():
        if example.number in UNORDERED:
            continue
        assert render(example, collect(mini_environment(), [example])[example.number]) in printed


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", [None, "continuous"])
def test_on_spark_a_crashed_job_recovers(mode):
    printed = run_on_spark("book/fault_tolerance.py", mode=mode)
    even = ["2   2", "4   6", "6   12", "8   20", "10   30"]
    odd = ["1   1", "3   4", "5   9", "7   16", "9   25"]
    found = re.findall(r"^  (even|odd) +(\d+) +(\d+)$", printed, flags=re.MULTILINE)
    assert [f"{number}   {total}" for _, number, total in found] == even + odd


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_on_spark_hourly_tips_are_the_published_ones():
    printed = run_on_spark("taxi/hourly_tips.py", "--rides", "1259")
    found = re.findall(r"^01 Jan (\d\d):00:00 +(\d+) +(\d+)\.00 +\*+$", printed, flags=re.MULTILINE)
    assert found == [
        ("13", "2013000089", "76"),
        ("14", "2013000197", "71"),
        ("15", "2013000118", "83"),
        ("16", "2013000119", "81"),
        ("17", "2013000195", "73"),
        ("18", "2013000072", "123"),
        ("19", "2013000058", "84"),
    ]


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_on_spark_the_demo_ends_by_itself():
    printed = run_on_spark("sensor_average.py", "--seconds", "3", "--sensors", "4")
    lines = re.findall(r"^\d\d:\d\d:\d\d(?: +-?\d+\.\d){5}$", printed, flags=re.MULTILINE)
    assert 3 <= len(lines) <= 5, printed
    assert "Done: 120 readings of 4 sensors" in printed
