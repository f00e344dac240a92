"""Commands about running jobs: list, status, savepoint, stop, cancel, rescale; by files and a socket, without Spark."""

import json
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from penstock.cli import job_server
from penstock.cli.command_line import RunCommand, run_options
from penstock.cli.job_records import JobRecord, JobRecords
from penstock.cli.job_server import JobServer
from penstock.cli.main import build_parser, main
from penstock.common.completable_future import CompletableFuture
from penstock.common.errors import JobCancelledError, JobExecutionError, SavepointError
from penstock.common.job_client import JobClient
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus
from penstock.runtime.job.job_progress import JobProgress


class Client(JobClient):
    """A job that does what it is told and writes down what that was."""

    def __init__(self, job_id=None):
        self.job_id = JobID(job_id)
        self.status = JobStatus.RUNNING
        self.over = CompletableFuture()
        self.told = []
        self.progress = JobProgress(SimpleNamespace(vertices=[]))

    def get_job_id(self):
        return self.job_id

    def get_job_status(self):
        return CompletableFuture.completed(self.status)

    def get_job_execution_result(self):
        return self.over

    def get_accumulators(self):
        return CompletableFuture.completed({})

    def end(self, status):
        self.status = status
        if status is JobStatus.CANCELED:
            self.over.complete_exceptionally(JobCancelledError("job 'fake' was cancelled"))
        else:
            self.over.complete(None)

    def cancel(self):
        self.told.append("cancel")
        self.end(JobStatus.CANCELED)
        return CompletableFuture.completed(None)

    def trigger_savepoint(self, savepoint_directory=None):
        self.told.append(("savepoint", savepoint_directory))
        if savepoint_directory is None:
            return CompletableFuture.failed(SavepointError("no directory was given"))
        return CompletableFuture.completed(f"{savepoint_directory}/savepoint-1")

    def stop_with_savepoint(self, advance_to_end_of_event_time, savepoint_directory=None):
        self.told.append(("stop", advance_to_end_of_event_time, savepoint_directory))
        self.end(JobStatus.FINISHED)
        return CompletableFuture.completed(f"{savepoint_directory}/savepoint-2")

    def cancel_with_savepoint(self, savepoint_directory=None):
        self.told.append(("cancel", savepoint_directory))
        return CompletableFuture.completed("/default/savepoint-3")

    def rescale(self, parallelism):
        self.told.append(("rescale", parallelism))
        return CompletableFuture.completed(None)


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    """Starts jobs of this process, which commands find."""
    monkeypatch.setenv("PENSTOCK_JOBS", str(tmp_path / "jobs"))
    server = JobServer(RunCommand("/programs/job.py", [], [], str(tmp_path), detached=True), log="/logs/job.log")

    def start(client, name="a job"):
        server.submitting(name)
        server.follow(client)
        return client

    yield start
    server.close()


def test_running_jobs_are_listed_and_ended_ones_with_all(jobs, capsys):
    assert main(["list"]) == 0
    assert capsys.readouterr().out.startswith("No jobs are running.")
    running, ended = jobs(Client("a" * 32), "counting"), jobs(Client("b" * 32), "averages")
    ended.end(JobStatus.FINISHED)
    assert main(["list"]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.split() == ["JOB", "STATUS", "STARTED", "PROCESS", "NAME"]
    assert line.split()[:2] == [str(running.job_id), "RUNNING"]
    assert line.endswith("counting")
    assert main(["list", "--all"]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[1:]] == ["RUNNING", "FINISHED"]


def test_the_list_asks_jobs_how_they_are(jobs, capsys):
    client = Client("a" * 32)
    client.status = JobStatus.CREATED
    jobs(client)
    client.status = JobStatus.RESTARTING
    assert main(["list"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[1] == "RESTARTING"


def test_the_status_of_a_running_job_has_its_progress(jobs, capsys):
    jobs(Client("c" * 32), "counting")
    assert main(["status", "ccc"]) == 0
    printed = capsys.readouterr().out
    assert "status    RUNNING\n" in printed
    assert "progress  starting ...\n" in printed
    assert "program   /programs/job.py\n" in printed
    assert "output    /logs/job.log\n" in printed


def test_the_status_of_a_failed_job_has_its_error(jobs, capsys):
    client = jobs(Client("c" * 32))
    client.over.complete_exceptionally(JobExecutionError("no luck\nand a long story"))
    assert main(["status", "c"]) == 0
    printed = capsys.readouterr().out
    assert "status    FAILED\n" in printed
    assert "error     no luck\n" in printed
    assert "ended " in printed


def test_a_savepoint_is_taken_and_its_path_told(jobs, capsys):
    client = jobs(Client("d" * 32))
    assert main(["savepoint", "d", "/saved"]) == 0
    assert capsys.readouterr().out.endswith("Savepoint completed.\nPath: /saved/savepoint-1\n")
    assert client.told == [("savepoint", "/saved")]


def test_an_error_of_the_job_is_the_commands(jobs, capsys):
    jobs(Client("d" * 32))
    assert main(["savepoint", "d"]) == 1
    assert capsys.readouterr().err == "error: no directory was given\n"


@pytest.mark.parametrize(("options", "drain"), [([], False), (["--drain"], True)])
def test_stop_is_the_end_with_a_savepoint(jobs, capsys, options, drain):
    client = jobs(Client("e" * 32))
    assert main(["stop", "e", "-p", "/saved", *options]) == 0
    assert client.told == [("stop", drain, "/saved")]
    printed = capsys.readouterr().out
    assert "Path: /saved/savepoint-2\n" in printed
    assert ("run -d -s /saved/savepoint-2 /programs/job.py" in printed) is not drain
    assert main(["stop", "e"]) == 1
    assert "is no longer running: FINISHED" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["savepoint", "d", "here"], ("savepoint",)),
        (["stop", "d", "-p", "here"], ("stop", False)),
        (["cancel", "d", "--with-savepoint", "here"], ("cancel",)),
    ],
)
def test_a_relative_directory_is_one_of_whoever_types_it(jobs, tmp_path, monkeypatch, command, told):
    client = Client("d" * 32)
    jobs(client)
    monkeypatch.chdir(tmp_path)
    assert main(command) == 0
    assert client.told == [(*told, str(tmp_path / "here"))]


def test_cancel_without_and_with_a_savepoint(jobs, capsys):
    first, second, third = (jobs(Client(letter * 32)) for letter in "123")
    assert main(["cancel", "1"]) == 0
    assert main(["cancel", "2", "-s", "/saved"]) == 0
    assert main(["cancel", "3", "--with-savepoint"]) == 0
    assert (first.told, second.told, third.told) == (["cancel"], [("cancel", "/saved")], [("cancel", None)])
    assert "Path: /default/savepoint-3\n" in capsys.readouterr().out
    assert main(["status", "1"]) == 0
    printed = capsys.readouterr().out
    assert "status    CANCELED\n" in printed
    assert "error" not in printed


def test_a_job_that_ends_by_itself_while_it_is_cancelled_was_not_cancelled(jobs, capsys):
    class Faster(Client):
        def cancel(self):
            self.end(JobStatus.FINISHED)
            return CompletableFuture.completed(None)

    jobs(Faster("7" * 32))
    assert main(["cancel", "7"]) == 0
    assert capsys.readouterr().out == f"Job {'7' * 32} was not cancelled: it had already ended (FINISHED).\n"


@pytest.mark.parametrize(
    "command", [["savepoint", "8", "/s"], ["stop", "8", "-p", "/s"], ["cancel", "8"], ["rescale", "8", "-p", "2"]]
)
def test_a_job_that_has_ended_since_it_was_looked_up_does_not_run_any_more(
    jobs, tmp_path, capsys, monkeypatch, command
):
    """Its process is about to end and answers no more."""
    record = JobRecord("8" * 32, "a job", "RUNNING", "job.py", os.getpid(), 0.0, str(tmp_path / "no-socket"))
    JobRecords().write(record)
    ask = job_server.ask

    def ended_meanwhile(*arguments, **details):
        JobRecords().ended(record, "FINISHED")
        return ask(*arguments, **details)

    monkeypatch.setattr("penstock.cli.jobs.ask", ended_meanwhile)
    assert main(command) == 1
    assert capsys.readouterr().err.endswith("is no longer running: FINISHED\n")
    JobRecords().write(record)
    assert main(["status", "8"]) == 0
    assert "status    FINISHED\n" in capsys.readouterr().out


@pytest.mark.parametrize("status", JobStatus)
def test_a_job_is_listed_as_running_in_every_state_but_the_last(jobs, status, capsys):
    client = Client("9" * 32)
    client.status = status
    jobs(client)
    assert main(["list"]) == 0
    assert (status.name in capsys.readouterr().out) is not status.is_terminal_state()


def test_rescale(jobs):
    client = jobs(Client("f" * 32))
    assert main(["rescale", "f", "-p", "4"]) == 0
    assert client.told == [("rescale", 4)]


def test_an_id_that_nobody_or_that_several_have_is_refused(jobs, capsys):
    jobs(Client("12" + "0" * 30))
    jobs(Client("13" + "0" * 30))
    assert main(["cancel", "1"]) == 1
    assert "the ids of several jobs start with '1'" in capsys.readouterr().err
    assert main(["cancel", "9"]) == 1
    assert "there is no job '9'" in capsys.readouterr().err
    assert main(["savepoint"]) == 1
    assert "missing job id" in capsys.readouterr().err


def test_a_job_whose_process_was_killed_is_lost(jobs, tmp_path, capsys):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    record = JobRecord("a" * 32, "a job", "RUNNING", "job.py", gone.pid, 0.0, str(tmp_path / "socket"))
    JobRecords().write(record)
    (found,) = JobRecords().all()
    assert found.status == "LOST"
    assert main(["stop", "a"]) == 1
    assert "is no longer running: LOST" in capsys.readouterr().err


@pytest.fixture
def lost(tmp_path):
    """Writes down a job whose process was killed."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()

    def write(job_id, started=0.0, **fields):
        JobRecords().write(JobRecord(job_id, "a job", "RUNNING", "/job.py", gone.pid, started, "socket", **fields))

    return write


def test_lost_jobs_are_listed_until_they_are_cancelled(jobs, lost, capsys):
    lost("a" * 32)
    jobs(Client("b" * 32))
    assert main(["list"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in printed[1:3]] == ["LOST", "RUNNING"]
    assert "penstock status JOB shows how to start it again" in printed[3]
    assert main(["cancel", "a"]) == 0
    assert "was lost; it is no longer listed" in capsys.readouterr().out
    assert main(["list"]) == 0
    assert "LOST" not in capsys.readouterr().out


def test_lost_jobs_are_listed_until_they_are_started_again(jobs, lost):
    lost("a" * 32, started=1.0)
    assert [record.job_id[0] for record in JobRecords().current()] == ["a"]
    JobRecords().write(JobRecord("b" * 32, "a job", "FINISHED", "/job.py", 1, 2.0, "socket"))
    assert JobRecords().current() == []


def test_the_status_of_a_lost_job_shows_how_to_start_it_again(jobs, lost, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lost("a" * 32, command=RunCommand("/job.py", ["-D", "execution.checkpointing.dir=/c"], ["in"], str(tmp_path)))
    assert main(["status", "a"]) == 0
    assert "run -D execution.checkpointing.dir=/c /job.py in\n" in capsys.readouterr().out


@pytest.mark.parametrize("stopping", [["stop", "e", "-p"], ["cancel", "e", "--with-savepoint"]])
def test_the_line_that_resumes_a_job_works_when_it_is_pasted(tmp_path, monkeypatch, capsys, stopping):
    """Options, quoting and arguments are those of the first run; the same program runs in the same directory."""
    tools, work = tmp_path / "tools", tmp_path / "where it's run"
    tools.mkdir()
    work.mkdir()
    fake = tools / "penstock"
    fake.write_text(f"#!{sys.executable}\nimport json, os, sys\nprint(json.dumps([os.getcwd(), *sys.argv[1:]]))\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)
    monkeypatch.setenv("PENSTOCK_JOBS", str(tmp_path / "jobs"))
    program = work / "my job.py"
    program.touch()
    typed = [
        "run",
        "-p",
        "3",
        "-D",
        "pipeline.name=it's $HOME",
        "-s",
        "/old",
        str(program),
        "--since",
        "1 day",
        "*.csv",
    ]
    options = build_parser().parse_args(typed)
    command = RunCommand(str(program), run_options(options), options.arguments, str(work))
    server = JobServer(command)
    server.follow(Client("e" * 32))
    assert main([*stopping, "/saved"]) == 0
    server.close()
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("To resume: ")]
    pasted = subprocess.run(line.removeprefix("To resume: "), shell=True, check=True, capture_output=True)
    where, *words = json.loads(pasted.stdout)
    assert where == str(work)
    again = build_parser().parse_args(words)
    assert again.from_savepoint in {"/saved/savepoint-2", "/default/savepoint-3"}
    for name in ("parallelism", "settings", "program", "arguments", "master", "py_files"):
        assert getattr(again, name) == getattr(options, name)


def test_a_process_that_does_not_answer_is_told(jobs, tmp_path, capsys):
    record = JobRecord("a" * 32, "a job", "RUNNING", "job.py", os.getpid(), 0.0, str(tmp_path / "no-socket"))
    JobRecords().write(record)
    assert main(["status", "a"]) == 1
    assert f"does not answer (process {os.getpid()})" in capsys.readouterr().err


def test_files_that_are_no_records_are_passed_over_and_old_ones_forgotten(tmp_path):
    records = JobRecords(tmp_path)
    (tmp_path / "x.json").write_text("{", encoding="utf-8")
    (tmp_path / "y.json").write_text(json.dumps({"other": 1}), encoding="utf-8")
    for number in range(103):
        records.write(JobRecord(f"{number:032x}", "n", "FINISHED", "p", 1, float(number), "s"))
    records.forget_old()
    assert [record.started for record in records.all()] == [float(number) for number in range(3, 103)]


def test_who_has_asked_gets_an_answer_though_the_process_ends(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PENSTOCK_JOBS", str(tmp_path))
    server, asked, go_on = JobServer(RunCommand("job.py", [], [], "/")), threading.Event(), threading.Event()

    class Slow(Client):
        def cancel(self):
            asked.set()
            go_on.wait()
            return super().cancel()

    server.follow(Slow("a" * 32))
    codes = []
    asking = threading.Thread(target=lambda: codes.append(main(["cancel", "a"])))
    asking.start()
    asked.wait()
    threading.Timer(0.05, go_on.set).start()
    server.close()
    asking.join()
    assert codes == [0]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command_and_its_options(shell, capsys):
    assert main(["completion", shell]) == 0
    printed = capsys.readouterr().out
    for command in ("run", "plan", "doctor", "list", "status", "savepoint", "stop", "cancel", "rescale"):
        assert command in printed
    assert "from-savepoint" in printed


def test_bash_completes_with_it(tmp_path):
    script = subprocess.run(
        [sys.executable, "-m", "penstock", "completion", "bash"], capture_output=True, text=True, check=True
    ).stdout
    ask = "COMP_WORDS=(penstock {}); COMP_CWORD={}; _penstock; echo ${{COMPREPLY[*]}}\n"
    done = subprocess.run(
        ["bash"],
        input=script + ask.format("sa", 1) + ask.format("run --det", 2),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["savepoint", "--detached"]
    assert done.stderr == ""
