"""``penstock plan``: a job as text and as pictures, without running it."""

import json
from xml.etree import ElementTree as ET

import pytest

from penstock.cli.main import main

JOB = """
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_collection(range(10)).map(lambda x: x / 0).set_parallelism(1).name('<numbers> & "more"')
numbers.key_by(lambda x: x % 2).reduce(lambda a, b: a + b).name("sums").print()
try:
    env.execute("sums of numbers")
except Exception:
    print("never")
print("never")
"""

PATTERN = """
from penstock.cep import CEP, Pattern
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
pattern = Pattern.begin("small").followed_by("large").one_or_more().within(60_000)
CEP.pattern(env.from_collection(range(10)).key_by(lambda x: x % 2), pattern).select(str).name("fraud").print()
env.execute("patterns")
"""


@pytest.fixture
def job(program):
    return str(program(JOB))


def test_the_program_stops_at_execute_and_the_job_is_shown(job, capsys):
    assert main(["plan", "-p", "2", job]) == 0
    printed = capsys.readouterr().out
    assert "never" not in printed
    assert printed.startswith("sums of numbers: 2 tasks in 2 stages, 2 channels, micro-batch\nstage 0 (sources)\n")
    assert "sums -> Sink: Print to Std. Out  x2\n        <- [0] hash" in printed


def test_o143_a_file_of_settings_is_below_the_command_line(job, capsys, tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text("parallelism:\n  default: 3\n", encoding="utf-8")
    monkeypatch.setenv("PENSTOCK_CONF_DIR", str(tmp_path))
    assert main(["plan", job]) == 0
    assert "sums -> Sink: Print to Std. Out  x3" in capsys.readouterr().out
    assert main(["plan", "-p", "2", job]) == 0
    assert "sums -> Sink: Print to Std. Out  x2" in capsys.readouterr().out


def test_as_json(job, capsys):
    assert main(["plan", "-f", "json", job]) == 0
    assert json.loads(capsys.readouterr().out)["stages"] == 1


def test_as_svg_every_task_is_a_box_and_every_exchange_an_arrow(job, tmp_path, capsys):
    picture = tmp_path / "job.svg"
    assert main(["plan", "-o", str(picture), job]) == 0
    assert capsys.readouterr().out == f"wrote {picture}\n"
    root = ET.fromstring(picture.read_text(encoding="utf-8"))
    space = {"": "http://www.w3.org/2000/svg"}
    texts = [text.text for text in root.findall("text", space)]
    assert {"sums of numbers", '<numbers> & "more"', "sums", "hash", "stage 1"} <= set(texts)
    boxes = [rect for rect in root.findall("rect", space) if rect.get("x")]
    assert len(boxes) == 2
    right = [int(box.get("x")) + int(box.get("width")) for box in boxes]
    assert right[0] < int(boxes[1].get("x"))  # columns do not overlap
    assert max(right) <= int(root.get("width"))
    assert len(root.findall("path", space)) == 1


def test_as_mermaid_and_as_dot_names_are_escaped(job, capsys):
    assert main(["plan", "-f", "mermaid", job]) == 0
    mermaid = capsys.readouterr().out
    assert "&lt;numbers&gt; &amp; &quot;more&quot;" in mermaid
    assert 'v0 -->|"hash"| v1' in mermaid
    assert main(["plan", "-f", "dot", job]) == 0
    dot = capsys.readouterr().out
    assert '<numbers> & \\"more\\"' in dot
    assert 'v0 -> v1 [label="hash"];' in dot


def test_a_pattern_is_shown_on_one_line(program, capsys):
    file = str(program(PATTERN))
    assert main(["plan", file]) == 0
    assert "  x1\n        pattern small -> large+ within 1 min\n" in capsys.readouterr().out.replace("x2", "x1")
    assert main(["plan", "-f", "json", file]) == 0
    nodes = json.loads(capsys.readouterr().out)["nodes"]
    assert [node["pattern"] for node in nodes if "pattern" in node] == ["small -> large+ within 1 min"]
    assert main(["plan", "-f", "mermaid", file]) == 0
    assert "small -&gt; large+ within 1 min" in capsys.readouterr().out


def test_as_svg_the_states_of_a_pattern_are_drawn_below_the_plan(program, tmp_path):
    picture = tmp_path / "job.svg"
    assert main(["plan", "-o", str(picture), str(program(PATTERN))]) == 0
    root = ET.fromstring(picture.read_text(encoding="utf-8"))
    space = {"": "http://www.w3.org/2000/svg"}
    assert "fraud: the states of its pattern" in [text.text for text in root.findall("text", space)]
    (states,) = root.findall("svg", space)
    assert {"small", "large", "match"} <= {text.text for text in states.findall("text", space)}
    assert int(states.get("y")) + int(states.get("height")) <= int(root.get("height"))
    assert int(states.get("width")) <= int(root.get("width"))


def test_what_cannot_be_shown_is_said(program, job, tmp_path, capsys):
    assert main(["plan", str(program("print('no job')"))]) == 1
    assert "without calling execute()" in capsys.readouterr().err
    assert main(["plan", "-o", "plan.png", job]) == 1
    assert "cannot derive the format from plan.png" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_said(job, tmp_path, capsys):
    assert main(["plan", "-o", str(tmp_path / "none" / "plan.svg"), job]) == 1
    assert capsys.readouterr().err.startswith("error: cannot write the plan: ")


def test_a_program_that_fails_gives_its_exit_code(program, capsys):
    assert main(["plan", str(program("raise SystemExit(7)"))]) == 7
