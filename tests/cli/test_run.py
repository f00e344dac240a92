"""``penstock run``: programs, their arguments, settings, errors; detached ones."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from penstock.cli.job_records import JobRecords, default_directory
from penstock.cli.main import main
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.execution_defaults import current_defaults

SOURCE = Path(__file__).resolve().parents[2] / "src"

PRINT_SETTINGS = """
import sys
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
print(sys.argv[1:], __name__, env.get_parallelism(), env.get_configuration().get_string("a.b"))
env.set_parallelism(3)
print(env.get_parallelism())
"""

SUM = """
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2, 3]).map(lambda x: x * x).set_parallelism(1).print().set_parallelism(1)
env.execute("squares")
"""


def test_a_program_runs_as_main_with_its_own_arguments_and_its_own_settings_win(program, capsys):
    path = program(PRINT_SETTINGS)
    assert main(["run", "-p", "5", "-D", "a.b=c=d", str(path), "--input", "-p", "7"]) == 0
    assert capsys.readouterr().out.splitlines() == ["['--input', '-p', '7'] __main__ 5 c=d", "3"]


def test_nothing_of_it_stays_behind(program, capsys):
    before = sys.argv[:], sys.path[:]
    main(["run", "-p", "5", str(program(PRINT_SETTINGS))])
    assert (sys.argv, sys.path) == before
    assert current_defaults().configuration.to_dict() == {}
    assert StreamExecutionEnvironment().get_configuration().to_dict() == {}


def test_modules_beside_the_program_are_found(program, capsys):
    program("answer = 42", "beside_the_program.py")
    assert main(["run", str(program("import beside_the_program as m; print(m.answer)"))]) == 0
    assert capsys.readouterr().out == "42\n"


@pytest.mark.usefixtures("in_process")
def test_a_job_runs_and_no_progress_is_shown_without_a_terminal(program, capsys):
    assert main(["run", str(program(SUM))]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == ["1", "4", "9"]
    assert printed.err == ""
    assert JobRecords().all()[-1].name == "squares"


def test_the_tests_themselves_are_not_in_the_users_list_of_jobs(monkeypatch):
    of_tests = default_directory()
    monkeypatch.delenv("PENSTOCK_JOBS")
    assert of_tests != default_directory()


@pytest.mark.usefixtures("in_process")
def test_an_error_of_a_function_is_one_message_without_a_traceback_of_ours(program, capsys):
    failing = SUM.replace("x * x", "1 / (x - 2)")
    assert main(["run", str(program(failing))]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: User function failed in operator 'Map'")
    assert "ZeroDivisionError" in error
    assert "runpy" not in error


def test_an_error_of_the_program_is_shown_with_its_own_frames(program, capsys):
    assert main(["run", str(program("def f():\n    return {}['key']\n\nf()\n"))]) == 1
    error = capsys.readouterr().err
    assert "line 4, in <module>" in error
    assert "KeyError: 'key'" in error
    assert "runpy" not in error
    assert "cli/" not in error


@pytest.mark.parametrize(
    ("text", "code"), [("raise SystemExit(3)", 3), ("raise SystemExit", 0), ("raise SystemExit('sorry')", 1)]
)
def test_the_exit_code_is_the_programs(program, text, code, capsys):
    assert main(["run", str(program(text))]) == code


def test_a_missing_file_and_a_wrong_setting_are_said(program, capsys):
    assert main(["run", "no_such_job.py"]) == 1
    assert capsys.readouterr().err == "error: the file 'no_such_job.py' does not exist\n"
    assert main(["run", "-D", "nonsense", str(program(SUM))]) == 1
    assert capsys.readouterr().err == "error: -D needs KEY=VALUE, got 'nonsense'\n"


FORGETFUL = SUM.replace('env.execute("squares")', "")


def test_a_program_that_forgets_to_execute_is_told(program, capsys):
    path = program(FORGETFUL)
    assert main(["run", str(path)]) == 1
    assert capsys.readouterr().err == f"error: {path} ended without calling execute(): its job was not run\n"


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    "text",
    [
        SUM + "env.from_collection([4]).print()",  # a job has run
        FORGETFUL + "env.close()",  # on purpose
        FORGETFUL.replace(".print().set_parallelism(1)", ""),
        "print('nothing to do with streams')",
    ],
)
def test_what_ends_without_execute_for_a_reason_is_no_mistake(program, text, capsys):
    assert main(["run", str(program(text))]) == 0
    assert capsys.readouterr().err == ""


SHOW_KEYS = """
from penstock.datastream import StreamExecutionEnvironment

settings = StreamExecutionEnvironment.get_execution_environment().get_configuration()
for key in ("spark.master", "execution.savepoint.path", "execution.savepoint.ignore-unclaimed-state", "python.files"):
    print(key, settings.get_string(key))
"""


def test_options_are_settings_by_key(program, capsys, monkeypatch):
    monkeypatch.setattr("penstock.cli.run.read_manifest", lambda location: None)
    options = ["--master", "local[1]", "-s", "file:///savepoint-1", "-n", "--py-files", "a.py,b.py"]
    assert main(["run", *options, str(program(SHOW_KEYS))]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "spark.master local[1]",
        "execution.savepoint.path file:///savepoint-1",
        "execution.savepoint.ignore-unclaimed-state true",
        "python.files a.py,b.py",
    ]


def test_a_wrong_path_of_a_savepoint_is_said_before_anything_runs(program, tmp_path, capsys):
    assert main(["run", "-s", str(tmp_path / "none"), str(program("print('never')"))]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"error: there is no complete savepoint in {tmp_path / 'none'}")


def test_a_mistake_in_the_program_is_said_with_its_line(program, capsys):
    path = program("x = 1\nfrom penstock.datastream.connectors.pulsar import PulsarSource\n")
    assert main(["run", str(path)]) == 1
    assert capsys.readouterr().err.endswith(f"\nin {path}, line 2\n")


def test_a_file_that_is_not_python_is_shown_without_our_frames(program, capsys):
    path = program("def f(:\n")
    assert main(["run", str(path)]) == 1
    assert capsys.readouterr().err.startswith(f'  File "{path}", line 1\n    def f(:\n')


def test_a_directory_is_no_program(tmp_path, capsys):
    assert main(["run", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"error: '{tmp_path}' is a directory: name a Python file in it\n"


@pytest.mark.parametrize(
    "options", [["run", "-p", "0", "job.py"], ["run", "-p", "x", "job.py"], ["run", "--nonsense", "j.py"]]
)
def test_a_wrong_option_is_exit_code_2(options, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(options)
    assert "penstock run: error: " in capsys.readouterr().err


def test_without_a_program_nothing_else_is_asked_for(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["run"])
    assert capsys.readouterr().err.endswith("error: the following arguments are required: program\n")


def test_it_is_a_module_too():
    done = subprocess.run([sys.executable, "-m", "penstock", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("penstock ")


def test_without_a_command_there_is_help(capsys):
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert all(f"penstock {command}" in printed for command in ("run", "plan", "doctor", "list", "stop"))
    assert re.search(r"^ +savepoint +take a savepoint$", printed, re.MULTILINE)


# -- detached ---------------------------------------------------------------------------------------------------------

WAITING = """
import threading
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import MiniCluster

env = StreamExecutionEnvironment(executor=MiniCluster())
env.from_collection([1]).print()
env.execute("short")
print("waiting", flush=True)
threading.Event().wait()
"""


def command(*arguments, cwd):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PENSTOCK_JOBS": str(cwd / "jobs")}
    whole = [sys.executable, "-m", "penstock", *arguments]
    return subprocess.run(whole, cwd=cwd, env=environment, capture_output=True, text=True, timeout=280, check=False)


@pytest.mark.parametrize("background", [False, True])
def test_detached_the_command_returns_and_the_program_goes_on_until_it_is_killed(program, tmp_path, background):
    """Also if it was started in the background of a script, where programs are made to ignore Ctrl-C."""
    path = program(WAITING)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if background else None
    try:
        done = command("run", "-d", "--log", "job.log", str(path), cwd=tmp_path)
    finally:
        if background:
            signal.signal(signal.SIGINT, before)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    job_id, pid = re.fullmatch(r"Job ([0-9a-f]{32}) runs in process (\d+)\.", lines[0]).groups()
    assert lines[1] == "Output: job.log"
    os.kill(int(pid), signal.SIGTERM)
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
        threading.Event().wait(0.01)
    assert "1\n" in (tmp_path / "job.log").read_text()
    (listed,) = [line for line in command("list", "-a", cwd=tmp_path).stdout.splitlines() if line.startswith(job_id)]
    assert re.fullmatch(rf"{job_id}  FINISHED  \d{{4}}-\d\d-\d\d [\d:]+  {pid} +short", listed)


def test_detached_a_program_that_fails_is_told_about(program, tmp_path):
    done = command("run", "-d", "--log", "job.log", str(program("raise RuntimeError('no way')")), cwd=tmp_path)
    assert done.returncode == 1
    assert "RuntimeError: no way" in done.stderr


def test_detached_a_place_for_the_output_that_is_none_is_said(program, tmp_path, capsys):
    assert main(["run", "-d", "--log", str(tmp_path / "none" / "job.log"), str(program(SUM))]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: cannot write the program's output: ")
    assert error.endswith("use --log FILE for another place\n")


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_on_spark_a_program_runs_with_functions_and_classes_of_its_own(program, tmp_path):
    text = """
from typing import NamedTuple
from penstock.datastream import StreamExecutionEnvironment

class Pair(NamedTuple):
    key: str
    value: int

def swap(pair):
    return Pair(pair.key, -pair.value)

env = StreamExecutionEnvironment.get_execution_environment()
pairs = env.from_collection([Pair("a", 1), Pair("b", 2)]).map(swap).key_by("key").map(lambda pair: pair)
print(sorted(pairs.execute_and_collect()))
"""
    done = command("run", "-p", "1", str(program(text)), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[Pair(key='a', value=-1), Pair(key='b', value=-2)]\n"


COUNTING = """
from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.connectors import DataGeneratorSource
from penstock.common import WatermarkStrategy

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
numbers = env.from_source(DataGeneratorSource(lambda n: n, 10**9, 50), WatermarkStrategy.no_watermarks(), "numbers")
numbers.key_by(lambda n: 0).map(lambda n: n).uid("one key").print()
env.execute("counting forever")
"""


@pytest.fixture
def ended_jobs(tmp_path):
    """Ends what a test has left running."""
    yield
    for record in JobRecords(tmp_path / "jobs").all():
        if not record.is_over:
            os.kill(record.process, signal.SIGTERM)


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("ended_jobs")
def test_on_spark_a_detached_job_is_listed_saved_stopped_and_started_again(program, tmp_path):
    path = str(program(COUNTING))
    done = command("run", "-d", "--log", "first.log", path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    job_id = done.stdout.split()[1]
    listed = command("list", cwd=tmp_path).stdout
    assert re.search(rf"^{job_id} +(INITIALIZING|CREATED|RUNNING) .* counting forever$", listed, re.MULTILINE)
    while " rows/s" not in command("status", job_id[:6], cwd=tmp_path).stdout:
        threading.Event().wait(0.1)
    assert f"{job_id}  RUNNING" in command("list", cwd=tmp_path).stdout
    saved = command("savepoint", job_id, str(tmp_path / "saved"), cwd=tmp_path)
    assert saved.returncode == 0, saved.stderr
    command("savepoint", "--dispose", saved.stdout.split("Path: ")[1].strip(), cwd=tmp_path)
    assert list((tmp_path / "saved").iterdir()) == []
    stopped = command("stop", job_id, "-p", str(tmp_path / "saved"), cwd=tmp_path)
    assert stopped.returncode == 0, stopped.stderr
    savepoint = re.search(r"^Path: (.*)$", stopped.stdout, re.MULTILINE).group(1)
    assert command("list", cwd=tmp_path).stdout.startswith("No jobs are running.")
    again = command("run", "-d", "--log", "second.log", "-s", savepoint, path, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    second = again.stdout.split()[1]
    while not (tmp_path / "second.log").read_text().strip():
        threading.Event().wait(0.1)
    cancelled = command("cancel", second, cwd=tmp_path)
    assert cancelled.stdout == f"Cancelled job {second}.\n", cancelled.stderr
    while not (said := (tmp_path / "second.log").read_text()).endswith("job 'counting forever' was cancelled\n"):
        threading.Event().wait(0.1)
    numbers = [int(line) for line in ((tmp_path / "first.log").read_text() + said).splitlines()[:-1]]
    assert numbers == list(range(len(numbers)))
    assert command("cancel", second, cwd=tmp_path).returncode == 1
