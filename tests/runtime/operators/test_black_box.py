"""The black box: when a process has died, a file says which operator it was running."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.runtime.operators.black_box import BLACK_BOX, BlackBox, note_of, notes_in
from penstock.testing import MiniCluster

SEEN = {}


@pytest.fixture
def box(tmp_path):
    path = tmp_path / "notes"
    path.touch()
    box = BlackBox()
    box.write_to(str(path))
    return box, path


def test_a_note_lasts_until_the_one_before_is_written_again(box):
    box, path = box
    before = box.enter(note_of("map", 0, 2))
    inner = box.enter(note_of("count", 1, 2))
    assert notes_in(path.read_text()) == ["'count' (subtask 2 of 2)"]
    box.enter(inner)
    assert notes_in(path.read_text()) == ["'map' (subtask 1 of 2)"]
    box.enter(before)
    assert notes_in(path.read_text()) == []


def test_a_name_of_any_length_in_any_language_is_one_line(box):
    box, path = box
    box.enter(note_of("größe\n" + "x" * 1_000, 0, 1))
    (note,) = notes_in(path.read_text())
    assert note.startswith("'gr\\xf6\\xdfe xxx")
    assert len(note) < 250


def test_nothing_is_noted_without_a_file():
    assert BlackBox().enter(note_of("map", 0, 1)) == BlackBox().enter(note_of("map", 0, 1))


def noting(value, name):
    SEEN.setdefault(name, notes_in(Path(os.environ["BLACK_BOX"]).read_text()))
    return value


def first(value):
    return noting(value, "first")


def second(value):
    return noting(value, "second")


def third(value):
    return noting(value, "third")


def fourth(value):
    return noting(value, "fourth")


def test_each_operator_of_a_chain_is_noted_while_its_function_runs(tmp_path, monkeypatch):
    path = tmp_path / "notes"
    path.touch()
    monkeypatch.setattr(BLACK_BOX, "_map", None)
    BLACK_BOX.write_to(str(path))
    SEEN.clear()
    monkeypatch.setenv("BLACK_BOX", str(path))
    env = StreamExecutionEnvironment(executor=MiniCluster()).set_parallelism(1)
    stream = env.from_collection([1, 2, 3]).map(first).name("first").filter(second).name("second")
    keyed = stream.key_by(lambda value: value).map(third).name("third").map(fourth).name("fourth")
    assert list(keyed.execute_and_collect()) == [1, 2, 3]
    assert {name: [f"'{name}'"] for name in ("first", "second", "third", "fourth")} == SEEN
    assert notes_in(path.read_text()) == []


DYING = """
import faulthandler, os, signal, sys
from penstock.runtime.operators.black_box import BlackBox, note_of
path = sys.argv[1]
box = BlackBox()
box.write_to(path)
file = open(path, "ab")
faulthandler.enable(file)
box.enter(note_of("dangerous", 1, 2))
def crash(): {how}
crash()
"""


@pytest.mark.parametrize(
    ("how", "stack"),
    [("os._exit(0)", ""), ("os.kill(os.getpid(), signal.SIGKILL)", ""), ("faulthandler._sigsegv()", "in crash")],
)
def test_the_note_outlives_the_process_and_a_stack_comes_behind_it(tmp_path, how, stack):
    path = tmp_path / "notes"
    path.touch()
    environment = {**os.environ, "PYTHONFAULTHANDLER": ""}
    subprocess.run([sys.executable, "-c", DYING.format(how=how), str(path)], check=False, env=environment)
    text = path.read_text()
    assert notes_in(text) == ["'dangerous' (subtask 2 of 2)"]
    assert stack in text
