"""``penstock cluster stop --savepoint``."""

import pytest

from penstock.cli.command_line import RunCommand
from penstock.cli.job_records import JobRecord, JobRecords
from penstock.cli.stop_all import stop_all
from penstock.cluster.detached_program import Started
from penstock.common.errors import JobExecutionError

DIRECTORY = "execution.checkpointing.dir=file:///checkpoints/a"


class Service:
    """Takes savepoints of jobs, except of those whose id begins with b."""

    def __init__(self):
        self.asked = []

    def send(self, method, path, body):
        self.asked.append((method, path, body))
        return {"request-id": "1"}

    def wait_for(self, path, trigger):
        job_id = path.split("/")[2]
        if job_id.startswith("b"):
            raise JobExecutionError("the disk is full")
        return {"location": f"file:///savepoints/{job_id}"}


@pytest.fixture
def records(tmp_path):
    found = JobRecords(tmp_path / "jobs")
    for job_id, options in (("a1", ["-D", DIRECTORY]), ("a2", ["-p", "2"])):
        command = RunCommand("/job.py", options, ["--x"], "/")
        found.write(JobRecord(job_id, "job", "FINISHED", "/job.py", 0, 1.0, "", command=command))
    return found


def jobs(*ids):
    return [{"jid": job_id, "name": "job"} for job_id in ids]


def test_o23_every_job_is_stopped_with_a_savepoint(records, capsys):
    service, started = Service(), []
    stop_all(service, jobs("a1", "a2"), "/savepoints", records, lambda line, log: started.append(line))
    assert service.asked[0] == ("POST", "/jobs/a1/stop", {"targetDirectory": "/savepoints"})
    assert "file:///savepoints/a2" in capsys.readouterr().err
    assert started == []


def test_o23_if_a_savepoint_fails_those_that_were_stopped_run_again(records):
    started = []

    def start(line, log):
        started.append(line)
        return Started(1, "new" if "-p" in line else None, 1, records.archive.parent / "a1.json")

    with pytest.raises(JobExecutionError, match=r"job b1 .* the disk is full") as failed:
        stop_all(Service(), jobs("a1", "a2", "b1"), "/savepoints", records, start)
    assert started == [
        ["-D", DIRECTORY, "/job.py", "--x"],
        ["-p", "2", "--from-savepoint", "file:///savepoints/a2", "/job.py", "--x"],
    ]
    assert "Job a2 runs again from file:///savepoints/a2, as new" in str(failed.value)
    assert "Job a1 has ended, and could not be started again" in str(failed.value)
